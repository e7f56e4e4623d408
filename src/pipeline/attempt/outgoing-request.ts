import { GatewayError, overloaded } from '../../base/errors.ts'
import { MAX_OBJECT_BYTES, objectBytes } from '../../base/json-size.ts'
import type { TranslateMode } from '../../config/types.ts'
import { wantsEventStream, type Exchange } from '../exchange/exchange.ts'
import type { Gateway } from '../parts/gateway.ts'
import type { LiveTarget } from '../../upstreams/live-targets.ts'
import type { LiveUpstream } from '../../upstreams/live-upstreams.ts'
import type { AttemptRequest } from '../exchange/upstream-attempt.ts'
import { mayHoldCapsule, type CapsuleAccess } from '../../protocols/neutral/capsule.ts'
import { acceptBetas } from '../../protocols/vendors/accepted-betas.ts'
import { acceptedBy, modelRules } from '../../protocols/vendors/model-rules.ts'
import type { Endpoint } from '../../protocols/endpoint/protocol.ts'
import { renameQuery } from '../../protocols/request/query.ts'
import { renameEdits, renamePath } from '../../protocols/request/rename.ts'
import { spliceBytes, type Edit } from '../../protocols/json/splice.ts'
import { findTranslator, restoreOpaqueValues, translate, type Translator } from '../../protocols/translate.ts'
import type { NativeRequest } from '../../providers/shared/provider.ts'
import { translatedHeaders, upstreamHeaders, type HeaderSource } from '../../proxy/upstream/headers.ts'
import type { OutgoingRequest } from '../../proxy/upstream/transport.ts'
import { upstreamPath } from '../../proxy/upstream/upstream-address.ts'
import type { CallOptions } from '../../proxy/upstream/upstream-call.ts'

/**
 * Makes the request that the target gets.
 * @param continuationEdits edits that request the rest of a response; null = request a whole response
 * @param trace headers that name the attempt's span; flat
 * @throws GatewayError not_translatable, translation_lossy, body_too_large, overloaded, and errors of opening a capsule
 */
export function outgoingRequest(
  gateway: Gateway, exchange: Exchange, live: LiveTarget, mode: TranslateMode,
  continuationEdits: ((body: Buffer) => Edit[]) | null, trace: readonly string[], capsules: () => CapsuleAccess,
): { readonly request: OutgoingRequest, readonly sent: AttemptRequest } {
  const { upstream, model } = live
  const translator = live.isSpoken ? null : translatorFor(exchange.classified.endpoint, live.speaks, mode)
  if (translator !== null) {
    checkParseMemory(gateway, exchange)
    return translatedRequest(exchange, live, { translator, isStrict: mode === 'strict', capsules: capsules(), continuationEdits, trace })
  }
  const { req, target: { path, query }, classified, request: { body } } = exchange
  const usageEdits = exchange.request.stream ? requestUsage(exchange, upstream) : null
  const accepted = () => acceptedBy(modelRules(upstream.config, classified.endpoint.protocol, model ?? '', exchange.request.model)).betas
  const betas = acceptBetas(accepted, req.rawHeaders, body, mode === 'strict')
  const isRenamed = model !== null && model !== exchange.request.model
  const isDeployment = classified.endpoint.modelIn === 'deployment'
  const edits = body === null ? [] : [
    ...isRenamed || isDeployment ? renameEdits(classified, body, exchange.request.model, model) : [],
    ...usageEdits ?? [],
    ...betas.edits,
    ...continuationEdits?.(body.bytes) ?? [],
  ]
  const edited = body !== null && edits.length > 0 ? spliceBytes(body.bytes, edits) : null
  const mayHold = body !== null && body.json !== null && mayHoldCapsule(edited ?? body.bytes)
  if (mayHold) checkParseMemory(gateway, exchange)
  const restored = mayHold ? restoreOpaqueValues(classified.endpoint, edited ?? body.bytes, {
    host: translationHost(upstream), isStrict: mode === 'strict', capsules: capsules(),
  }) : null
  const changed = restored?.body ?? edited
  // A provider that changes the body needs it decompressed, and a body that rules changed is not compressed again.
  const isPlain = changed !== null || upstream.provider?.bodyOf !== undefined || body?.isEdited === true
  const plain = changed ?? body?.bytes ?? null
  const bytes = isPlain ? plain : body?.wire ?? plain
  // If the gateway read no model from the request, a `model` in its query is not the name of the model.
  const isQueryRenamed = isRenamed && exchange.request.model !== null
  const request = {
    method: req.method ?? 'GET',
    path: upstreamPath(upstream.config, isRenamed ? renamePath(classified, path, model) : path)
      + (isQueryRenamed ? renameQuery(query, model) : query),
    headers: [],
    body: bytes,
    source: headerSource(exchange, {
      raw: exchange.edits?.onRequest(betas.headers) ?? betas.headers,
      // A recording is searched for the client's own credential.
      uncompressed: exchange.request.stream || (exchange.recording !== null && exchange.credentials !== null),
      dropContentEncoding: isPlain && body?.wire !== null,
      trace,
    }),
  }
  const sent = {
    sentBody: continuationEdits === null ? null : changed, hidesUsage: usageEdits !== null, dropped: [...betas.dropped, ...restored?.dropped ?? []], translated: null,
  }
  return { request, sent }
}

/** Checks that memory has room for the objects that parsing the body creates. @throws GatewayError body_too_large, overloaded */
function checkParseMemory({ config: { server }, sharedState: { bodyMemory } }: Gateway, { request: { body } }: Exchange): void {
  if (!body?.json) return
  const { size, length } = body.json
  const bytes = objectBytes(size)
  if (bytes > Math.min(MAX_OBJECT_BYTES, server.bodyMemory)) {
    throw new GatewayError(
      'body_too_large', `the request has too many values to be translated: ${size.containers} objects and lists, `
      + `${size.members} members, ${size.values} values`,
    )
  }
  if (!bodyMemory.hasRoom(bytes + length, server.bodyMemory)) {
    throw overloaded('the bodies of running requests leave too little of server.body_memory to translate the request')
  }
}

/** Edits that request usage, because some streams report usage only on request. @returns null = no edits */
function requestUsage(exchange: Exchange, upstream: LiveUpstream): Edit[] | null {
  const { classified: { endpoint: { usageOption } }, request: { body } } = exchange
  if (upstream.config.usage === 'as_is' || !body?.json || usageOption === null) return null
  return usageOption.edits(body.bytes, body.json)
}

/** @param speaks protocols of the target; null = all @returns null = no translation is needed @throws GatewayError not_translatable */
export function translatorFor(endpoint: Endpoint, speaks: readonly string[] | null, mode: TranslateMode): Translator | null {
  const translator = findTranslator(endpoint, speaks)
  if (translator !== null && mode === 'off') {
    const { from, to } = translator
    throw new GatewayError('not_translatable', `the target speaks ${to}, and the route does not translate requests of ${from}`)
  }
  return translator
}

export function headerSource(
  { id: requestId, req: { httpVersion }, presentedSecrets: presentedKeys, trustedPeer }: Exchange,
  own: Pick<HeaderSource, 'raw' | 'uncompressed' | 'dropContentEncoding' | 'trace'>,
): HeaderSource {
  return { ...own, requestId, presentedKeys, httpVersion, trustedPeer }
}

/** The name under which opaque values of the upstream are stored. */
export function translationHost({ config: { url, name } }: LiveUpstream): string {
  return url?.host ?? name
}

/** The upstream gets only translated parts of the request. @throws GatewayError not_translatable, translation_lossy, capsule errors */
export function translatedRequest(
  exchange: Exchange, { upstream, model }: Pick<LiveTarget, 'upstream' | 'model'>, { translator, isStrict, capsules, continuationEdits, trace }: {
    readonly translator: Translator
    readonly isStrict: boolean
    readonly capsules: CapsuleAccess
    readonly continuationEdits: ((body: Buffer) => Edit[]) | null
    readonly trace: readonly string[]
  },
): { readonly request: OutgoingRequest, readonly sent: AttemptRequest } {
  const { req, request: { body, stream } } = exchange
  const { config } = upstream
  const own = body?.bytes ?? Buffer.alloc(0)
  const target = model ?? ''
  const { written, dropped, ...translated } = translate(translator, continuationEdits === null ? own : spliceBytes(own, continuationEdits(own)), {
    model: target,
    accepts: acceptedBy(modelRules(config, translator.to, target, exchange.request.model)),
    host: translationHost(upstream),
    stream: stream || wantsEventStream(exchange),
    asksForUsage: config.usage === 'ask',
    isStrict,
    capsules,
  })
  const bytes = Buffer.from(JSON.stringify(written.body))
  const headers = translatedHeaders(req.rawHeaders, written.headers)
  const [path, query] = written.path.split('?', 2) as [string, string?]
  const request = {
    method: 'POST',
    path: upstreamPath(config, path) + (query === undefined ? '' : `?${query}`),
    headers: [],
    body: bytes,
    source: headerSource(exchange, { raw: exchange.edits?.onRequest(headers) ?? headers, uncompressed: true, trace }),
  }
  return { request, sent: { sentBody: bytes, hidesUsage: false, dropped, translated } }
}

type ProviderRequest = Pick<CallOptions, 'request' | 'readResponse'>

/** Converts a request of the vendor's own API to the API of the upstream's cloud provider. @throws GatewayError not_translatable */
export function providerRequest(
  { provider, headerRules }: LiveUpstream, request: OutgoingRequest, part: Pick<NativeRequest, 'endpoint' | 'model' | 'stream'>,
): ProviderRequest {
  if (provider === null) return { request }
  const at = request.path.indexOf('?')
  const native = { ...part, path: at === -1 ? request.path : request.path.slice(0, at), query: at === -1 ? '' : request.path.slice(at) }
  const { path, query } = provider.addressOf(native)
  // The provider takes from the body some values that the vendor's API takes from headers.
  const vendorHeaders = () => upstreamHeaders({ ...headerRules, dropped: NONE }, request.source, null)
  const body = request.body && (provider.bodyOf?.(native, request.body, vendorHeaders()) ?? request.body)
  return {
    request: { ...request, path: path + query, body },
    readResponse: provider.readResponse ? (status, headers) => provider.readResponse!(native, status, headers) : null,
  }
}

const NONE: ReadonlySet<string> = new Set()
