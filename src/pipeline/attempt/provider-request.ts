import type { LiveUpstream } from '../../context/gateway.ts'
import type { NativeRequest } from '../../providers/shared/provider.ts'
import type { OutgoingRequest } from '../../proxy/transport.ts'

/**
 * A request of a vendor's own API as the upstream's cloud provider takes it.
 *
 * @param request its body is not compressed
 * @throws GatewayError not_translatable
 */
export function providerRequest(
  { provider }: LiveUpstream, request: OutgoingRequest, native: Pick<NativeRequest, 'endpoint' | 'model' | 'stream'>,
): OutgoingRequest {
  if (provider === null) return request
  const at = request.path.indexOf('?')
  const whole = {
    ...native,
    path: at === -1 ? request.path : request.path.slice(0, at),
    query: at === -1 ? '' : request.path.slice(at),
  }
  const { path, query } = provider.addressOf(whole)
  return { ...request, path: path + query }
}
