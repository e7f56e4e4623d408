import type { LiveUpstream } from '../../context/live-upstreams.ts'
import type { NativeRequest } from '../../providers/shared/provider.ts'
import type { AttemptOptions } from '../../proxy/attempt.ts'
import { upstreamHeaders } from '../../proxy/headers.ts'
import type { OutgoingRequest } from '../../proxy/transport.ts'

/** A request for a cloud provider, and how its response is read. */
type ProviderRequest = Pick<AttemptOptions, 'request' | 'readResponse'>

/**
 * A request of a vendor's own API as the upstream's cloud provider takes it.
 *
 * @param request its body is not compressed, where the provider changes it
 * @throws GatewayError not_translatable
 */
export function providerRequest(
  { provider, headerRules }: LiveUpstream, request: OutgoingRequest, part: Pick<NativeRequest, 'endpoint' | 'model' | 'stream'>,
): ProviderRequest {
  if (provider === null) return { request }
  const at = request.path.indexOf('?')
  const native = {
    ...part,
    path: at === -1 ? request.path : request.path.slice(0, at),
    query: at === -1 ? '' : request.path.slice(at),
  }
  const { path, query } = provider.addressOf(native)
  // Some of what the provider does not read in headers belongs into its body.
  const vendorHeaders = () => upstreamHeaders({ ...headerRules, dropped: NONE }, request.source, null)
  const body = request.body && (provider.bodyOf?.(native, request.body, vendorHeaders()) ?? request.body)
  return {
    request: { ...request, path: path + query, body },
    readResponse: provider.readResponse ? (status, headers) => provider.readResponse!(native, status, headers) : null,
  }
}

const NONE: ReadonlySet<string> = new Set()
