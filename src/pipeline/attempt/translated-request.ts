import type { Target, TranslateMode } from '../../config/types.ts'
import { wantsEventStream } from '../../context/exchange.ts'
import type { Exchange } from '../../context/exchange.ts'
import type { LiveUpstream } from '../../context/live-upstreams.ts'
import type { AttemptRequest } from '../../context/upstream-attempt.ts'
import { GatewayError } from '../../base/errors.ts'
import type { Endpoint } from '../../protocols/shared/protocol.ts'
import { estimateTokens } from '../../protocols/shared/request-estimate.ts'
import { spliceBytes } from '../../protocols/shared/splice.ts'
import type { Edit } from '../../protocols/shared/splice.ts'
import type { CapsuleAccess } from '../../protocols/neutral/capsule.ts'
import { acceptedBy, modelRules } from '../../protocols/model-rules.ts'
import { findTranslator, translate } from '../../protocols/translate.ts'
import type { Translator } from '../../protocols/translate.ts'
import type { Provider } from '../../providers/shared/provider.ts'
import { upstreamPath } from '../../proxy/upstream-address.ts'
import { translatedHeaders } from '../../proxy/headers.ts'
import type { HeaderSource } from '../../proxy/headers.ts'
import type { OutgoingRequest } from '../../proxy/transport.ts'

/**
 * The protocols that a target takes.
 *
 * @param model as the client names it; null = it names none
 * @returns null = it takes all as they are
 */
export function targetProtocols({ upstream, model: own }: Target, provider: Provider | null, model: string | null): readonly string[] | null {
  return provider?.speaks ? provider.speaks(own ?? model) : upstream.speaks
}

/**
 * How the request reaches a target that does not speak its protocol.
 *
 * @param speaks the protocols that the target takes; null = it takes all as they are
 * @returns null = it speaks it
 * @throws GatewayError not_translatable
 */
export function translatorFor(endpoint: Endpoint, speaks: readonly string[] | null, mode: TranslateMode): Translator | null {
  const translator = findTranslator(endpoint, speaks)
  if (translator !== null && mode === 'off') {
    const { from, to } = translator
    throw new GatewayError('not_translatable', `the target speaks ${to}, and the route does not translate requests of ${from}`)
  }
  return translator
}

/** What the headers upstream are made of. */
export function headerSource(
  { id: requestId, req: { httpVersion }, presentedKeys, trustedPeer }: Exchange,
  own: Pick<HeaderSource, 'raw' | 'uncompressed' | 'dropContentEncoding' | 'trace'>,
): HeaderSource {
  return { ...own, requestId, presentedKeys, httpVersion, trustedPeer }
}

/** By which opaque values of the upstream are known. */
export function translationHost({ config: { url, name } }: LiveUpstream): string {
  return url?.host ?? name
}

/**
 * The request as a target of another protocol gets it: nothing of the client's body, path and headers crosses but what
 * was translated.
 *
 * @param continuationEdits edits of the client's body that ask for the rest of a response; null = all of it is requested
 * @param trace headers that name the attempt's span; flat
 * @throws GatewayError not_translatable, translation_lossy, and what opening a capsule throws
 */
export function translatedRequest(
  exchange: Exchange, upstream: LiveUpstream, { model }: Target, { translator, isStrict, capsules, continuationEdits, trace }: {
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
  const target = model ?? exchange.request.model ?? ''
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
  const [path, query] = written.path.split('?', 2) as [string, string?]
  const request = {
    method: 'POST',
    path: upstreamPath(config, path) + (query === undefined ? '' : `?${query}`),
    headers: [],
    body: bytes,
    source: headerSource(exchange, { raw: translatedHeaders(req.rawHeaders, written.headers), uncompressed: true, trace }),
  }
  return { request, sent: { sentBody: bytes, estimatedInput: estimateTokens(bytes), hidesUsage: false, dropped, translated } }
}
