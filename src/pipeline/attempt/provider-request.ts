import type { LiveUpstream } from '../../context/live-upstreams.ts'
import type { NativeRequest } from '../../providers/shared/provider.ts'
import type { AttemptOptions } from '../../proxy/attempt.ts'
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
  { provider }: LiveUpstream, request: OutgoingRequest, part: Pick<NativeRequest, 'endpoint' | 'model' | 'stream'>,
): ProviderRequest {
  if (provider === null) return { request }
  const at = request.path.indexOf('?')
  const native = {
    ...part,
    path: at === -1 ? request.path : request.path.slice(0, at),
    query: at === -1 ? '' : request.path.slice(at),
  }
  const { path, query } = provider.addressOf(native)
  const body = request.body && (provider.bodyOf?.(native, request.body, request.headers) ?? request.body)
  const headers = providerHeaders(request.headers, body, provider.droppedHeaders ?? NONE)
  return {
    request: { ...request, path: path + query, headers, body },
    readResponse: provider.readResponse ? (status, headers) => provider.readResponse!(native, status, headers) : null,
  }
}

const NONE: ReadonlySet<string> = new Set()

function providerHeaders(headers: readonly string[], body: Buffer | null, dropped: ReadonlySet<string>): string[] {
  const out: string[] = []
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] as string
    const lower = name.toLowerCase()
    if (dropped.has(lower)) continue
    out.push(name, lower === 'content-length' && body !== null ? String(body.length) : headers[i + 1] as string)
  }
  return out
}
