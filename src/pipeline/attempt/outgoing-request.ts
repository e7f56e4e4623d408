import type { Target } from '../../config/types.ts'
import type { Exchange } from '../../context/exchange.ts'
import type { LiveUpstream } from '../../context/gateway.ts'
import { renameQuery } from '../../protocols/shared/query.ts'
import { renameEdits, renamePath } from '../../protocols/shared/rename.ts'
import { estimateTokens } from '../../protocols/shared/request-estimate.ts'
import { spliceBytes } from '../../protocols/shared/splice.ts'
import type { Edit } from '../../protocols/shared/splice.ts'
import { upstreamPath } from '../../proxy/address.ts'
import { upstreamHeaders } from '../../proxy/headers.ts'
import type { OutgoingRequest } from '../../proxy/transport.ts'

/**
 * The request as it goes upstream: path, headers and body rewritten for the candidate, and not one byte more.
 *
 * @param extraEdits further edits of the body; null = none
 */
export function outgoingRequest(
  exchange: Exchange, upstream: LiveUpstream, candidate: Target, extraEdits: ((body: Buffer) => Edit[]) | null,
): OutgoingRequest {
  const { req, target, classified, request: { body } } = exchange
  const model = candidate.model ?? exchange.request.model
  const edits = body === null ? [] : [
    ...renameEdits(classified, body, exchange.request.model, model),
    ...requestUsage(exchange, upstream),
    ...extraEdits?.(body.bytes) ?? [],
  ]
  const changed = body !== null && edits.length > 0 ? spliceBytes(body.bytes, edits) : null
  if (extraEdits !== null && changed !== null) {
    exchange.continuationBody = changed
    exchange.estimatedInput = estimateTokens(changed)
  }
  const bytes = changed ?? body?.wire ?? body?.bytes ?? null
  const isRenamed = model !== null && model !== exchange.request.model
  const path = isRenamed ? renamePath(classified, target.path, model) : target.path
  // Of a request that named no model a query means something else by it.
  const query = isRenamed && exchange.request.model !== null ? renameQuery(target.query, model) : target.query
  return {
    method: req.method ?? 'GET',
    path: upstreamPath(upstream.config, path) + query,
    headers: upstreamHeaders(req.rawHeaders, {
      upstream: upstream.config,
      requestId: exchange.id,
      httpVersion: req.httpVersion,
      trustedPeer: exchange.trustedPeer,
      uncompressed: exchange.request.stream,
      dropContentEncoding: changed !== null && body?.wire !== null,
      contentLength: bytes === null ? null : bytes.length,
    }),
    body: bytes,
  }
}

/**
 * Some streams report their usage only where the request asks for it. Where the client did
 * not ask, the gateway does, and hides what it asked for.
 */
function requestUsage(exchange: Exchange, upstream: LiveUpstream): Edit[] {
  const { classified: { endpoint: { usageOption } }, request: { body, stream } } = exchange
  exchange.hidesUsage = false
  if (!stream || upstream.config.usage === 'as_is' || !body?.json || usageOption === null) return []
  const edits = usageOption.edits(body.bytes, body.json)
  exchange.hidesUsage = edits !== null
  return edits ?? []
}
