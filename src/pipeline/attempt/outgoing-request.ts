import type { Target, TranslateMode } from '../../config/types.ts'
import type { Exchange } from '../../context/exchange.ts'
import type { Gateway } from '../../context/gateway.ts'
import type { LiveUpstream } from '../../context/live-upstreams.ts'
import type { AttemptRequest } from '../../context/upstream-attempt.ts'
import { mayHoldCapsule } from '../../protocols/neutral/capsule.ts'
import type { CapsuleAccess } from '../../protocols/neutral/capsule.ts'
import { renameQuery } from '../../protocols/shared/query.ts'
import { renameEdits, renamePath } from '../../protocols/shared/rename.ts'
import { estimateTokens } from '../../protocols/shared/request-estimate.ts'
import { spliceBytes } from '../../protocols/shared/splice.ts'
import type { Edit } from '../../protocols/shared/splice.ts'
import { restoreOpaqueValues } from '../../protocols/translate.ts'
import type { OutgoingRequest } from '../../proxy/transport.ts'
import { upstreamPath } from '../../proxy/upstream-address.ts'
import { checkParseMemory } from './parse-memory.ts'
import { headerSource, targetProtocols, translatedRequest, translationHost, translatorFor } from './translated-request.ts'

/**
 * The request as it is sent to the target: path, headers and body are rewritten where they have to be.
 *
 * @param mode what becomes of a request whose target does not speak its protocol
 * @param continuationEdits edits of the body that ask for the rest of a response; null = all of it is requested
 * @param trace headers that name the attempt's span; flat
 * @returns the request, and what later phases need to know of it
 * @throws GatewayError not_translatable, translation_lossy, body_too_large, overloaded, and what opening a capsule throws
 */
export function outgoingRequest(
  gateway: Gateway, exchange: Exchange, upstream: LiveUpstream, target: Target, mode: TranslateMode,
  continuationEdits: ((body: Buffer) => Edit[]) | null, trace: readonly string[], capsules: CapsuleAccess,
): { readonly request: OutgoingRequest, readonly sent: AttemptRequest } {
  const protocols = targetProtocols(target, upstream.provider, exchange.request.model)
  const translator = translatorFor(exchange.classified.endpoint, protocols, mode)
  if (translator !== null) {
    checkParseMemory(gateway, exchange)
    return translatedRequest(exchange, upstream, target, { translator, isStrict: mode === 'strict', capsules, continuationEdits, trace })
  }
  const { req, target: { path, query }, classified, request: { body } } = exchange
  const model = target.model ?? exchange.request.model
  const usageEdits = requestUsage(exchange, upstream)
  const edits = body === null ? [] : [
    ...renameEdits(classified, body, exchange.request.model, model),
    ...usageEdits ?? [],
    ...continuationEdits?.(body.bytes) ?? [],
  ]
  const edited = body !== null && edits.length > 0 ? spliceBytes(body.bytes, edits) : null
  if (body?.json && mayHoldCapsule(body.bytes)) checkParseMemory(gateway, exchange)
  const restored = body?.json ? restoreOpaqueValues(classified.endpoint, edited ?? body.bytes, {
    host: translationHost(upstream), isStrict: mode === 'strict', capsules,
  }) : null
  const changed = restored?.body ?? edited
  // A provider that changes the body reads it.
  const isPlain = changed !== null || upstream.provider?.bodyOf !== undefined
  const plain = changed ?? body?.bytes ?? null
  const bytes = isPlain ? plain : body?.wire ?? plain
  const isRenamed = model !== null && model !== exchange.request.model
  // Where the request named no model, the query means something else by it.
  const isQueryRenamed = isRenamed && exchange.request.model !== null
  const request = {
    method: req.method ?? 'GET',
    path: upstreamPath(upstream.config, isRenamed ? renamePath(classified, path, model) : path)
      + (isQueryRenamed ? renameQuery(query, model) : query),
    headers: [],
    body: bytes,
    source: headerSource(exchange, {
      raw: req.rawHeaders,
      uncompressed: exchange.request.stream,
      dropContentEncoding: isPlain && body?.wire !== null,
      trace,
    }),
  }
  const continuationBody = continuationEdits === null ? null : changed
  const estimatedInput = continuationBody === null
    ? exchange.reserved?.estimatedInput ?? null
    : estimateTokens(continuationBody)
  const sent = { sentBody: continuationBody, estimatedInput, hidesUsage: usageEdits !== null, dropped: restored?.dropped ?? [], translated: null }
  return { request, sent }
}

/**
 * Some streams report their usage only where the request asks for it. Where the client does not ask, the gateway
 * does, and hides the usage from the client.
 *
 * @returns null = the client asks itself, or usage is not to be requested
 */
function requestUsage(exchange: Exchange, upstream: LiveUpstream): Edit[] | null {
  const { classified: { endpoint: { usageOption } }, request: { body, stream } } = exchange
  if (!stream || upstream.config.usage === 'as_is' || !body?.json || usageOption === null) return null
  return usageOption.edits(body.bytes, body.json)
}
