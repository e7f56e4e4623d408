import { boundedBody } from '../../base/bounded-body.ts'
import { credentialUnavailable } from '../../base/errors.ts'

const MAX_RESPONSE_BYTES = 64 * 1024

/**
 * Uses the runtime's `fetch` and not that of the bundled undici, because libraries check the class of the response.
 * @throws GatewayError credential_unavailable if the response is longer than `MAX_RESPONSE_BYTES`
 */
export async function boundedFetch(url: string | URL, init: object): Promise<Response> {
  const response = await globalThis.fetch(url, init)
  const body = await boundedBody(response.body, MAX_RESPONSE_BYTES)
  if (body === null) throw credentialUnavailable('the response of the token server is too long')
  return new globalThis.Response(body, { status: response.status, headers: response.headers })
}
