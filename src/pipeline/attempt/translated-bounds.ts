import { GatewayError } from '../../base/errors.ts'
import type { TranslateMode } from '../../config/types.ts'
import { wantsEventStream } from '../exchange/exchange.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { Gateway } from '../parts/gateway.ts'
import type { LiveTarget } from '../../upstreams/live-targets.ts'
import { jsonInspection } from '../../protocols/request/inspect.ts'
import { outputMembers, readOutputBounds } from '../../protocols/request/output-bounds.ts'
import type { OutputBounds } from '../../protocols/request/output-bounds.ts'
import { acceptedBy, modelRules } from '../../protocols/vendors/model-rules.ts'
import { translate } from '../../protocols/translate.ts'
import { translationHost, translatorFor } from './outgoing-request.ts'

/**
 * The output bounds of a request after translation, which can add bounds, such as the `max_tokens` that Anthropic's
 * protocol requires. Only the members that bound the output are translated.
 *
 * @returns null = the client's own bounds apply, or the request cannot be translated
 */
export function translatedBounds(gateway: Gateway, exchange: Exchange, live: LiveTarget, mode: TranslateMode): OutputBounds | null {
  const { classified: { endpoint }, request: { body, model, stream } } = exchange
  if (!body?.json) return null
  const { upstream } = live
  try {
    const translator = translatorFor(endpoint, live.speaks, mode)
    if (translator === null || translator.embeddings !== null) return null
    const name = live.model ?? ''
    const { endpoint: sentTo, written } = translate(translator, outputMembers(body.bytes, body.json.fields), {
      model: name,
      accepts: acceptedBy(modelRules(upstream.config, translator.to, name, model)),
      host: translationHost(upstream),
      stream: stream || wantsEventStream(exchange),
      asksForUsage: false,
      isStrict: false,
      // No conversation is translated, so no capsule is read.
      capsules: { keys: gateway.sharedState.capsuleKeys.keys, reserve: () => undefined },
    })
    const bytes = Buffer.from(JSON.stringify(written.body))
    const scan = jsonInspection()
    scan.push(bytes)
    const json = scan.end()
    return json.ok ? readOutputBounds(sentTo, bytes, json.fields) : null
  } catch (error) {
    // The attempt reports the error.
    if (error instanceof GatewayError) return null
    throw error
  }
}
