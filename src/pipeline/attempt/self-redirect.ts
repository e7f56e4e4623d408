import { GatewayError } from '../../base/errors.ts'
import type { Upstream } from '../../config/types.ts'
import { headerValue } from '../../proxy/raw-headers.ts'
import type { ResponseHead } from '../../proxy/response-head.ts'
import { sameAddress } from '../../proxy/upstream-address.ts'

/** Redirects that repeat the request at another address; 303 fetches something else. */
const REDIRECT_STATUSES = new Set([301, 302, 307, 308])

/**
 * A client that follows a redirect to the upstream itself comes back here endlessly, as where the vendor requires
 * `https:` in the upstream's url.
 *
 * @param path of the request at the upstream, with its query
 * @returns null = the response is no such redirect
 */
export function selfRedirectError({ status, headers }: ResponseHead, upstream: Upstream, path: string): GatewayError | null {
  if (!REDIRECT_STATUSES.has(status)) return null
  const location = headerValue(headers, 'location') ?? ''
  const same = sameAddress(location, upstream, path)
  if (same === null) return null
  const cause = new Error(`${status} to ${same}`)
  return new GatewayError('upstream_invalid', 'the upstream redirects the request to itself', { cause })
}
