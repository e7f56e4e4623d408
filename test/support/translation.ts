import { PROTOCOLS } from '../../src/protocols/index.ts'
import { acceptedBy, modelRules } from '../../src/protocols/vendors/model-rules.ts'
import type { JsonObject } from '../../src/protocols/neutral/json.ts'
import { translateRequest } from '../../src/protocols/neutral/translate/translate-request.ts'
import { StreamTranslator, translateBody } from '../../src/protocols/neutral/translate/translate-response.ts'
import type { ClientContext, ClientSide, Translation, UpstreamSide } from '../../src/protocols/neutral/translation.ts'
import type { Protocol } from '../../src/protocols/endpoint/protocol.ts'
import { SseReader } from '../../src/protocols/events/sse.ts'
import { CAPSULES } from './capsules.ts'

/** The tag of the upstream in tests. */
export const PROVIDER = 'provider-tag'

function translationOf(name: string): Translation {
  const { translation } = PROTOCOLS.find(protocol => protocol.name === name) as Protocol
  return translation as Translation
}

export function clientSide(name: string): ClientSide {
  return translationOf(name).client as ClientSide
}

export function upstreamSide(name: string): UpstreamSide {
  return translationOf(name).upstream as UpstreamSide
}

/** Translates a request from one protocol to another. @param host of the upstream */
export function requestBetween(
  from: string, to: string, body: JsonObject, model = 'upstream-model', provider = PROVIDER, host = '',
): ReturnType<typeof translateRequest> {
  return translateRequest(clientSide(from), upstreamSide(to), body, {
    stream: false, model, asksForUsage: true, provider, accepts: acceptedBy(modelRules({ models: new Map(), url: host === '' ? null : new URL(`https://${host}`), provider: null }, to, model, null)), capsules: CAPSULES,
  })
}

/** For a client that asks for a stream. */
export function contextOf(from: string, body: JsonObject = {}): ClientContext {
  const { request } = requestBetween(from, from === 'chat' ? 'messages' : 'chat', body)
  return { created: 1_700_000_000, requestId: 'request-1', uniqueId: 'unique', model: 'client-model', isEventStream: true, capsuleKeys: CAPSULES.keys, request: { ...request, stream: true } }
}

/**
 * Translates a stream of the upstream's bytes, in the chunks given, for a client that sent the body.
 *
 * @param isWhole is the stream complete? Decides for protocols without a last event
 */
export function streamBetween(to: string, from: string, chunks: readonly Buffer[], body: JsonObject = {}, isWhole = false): string {
  const translator = new StreamTranslator(clientSide(to), upstreamSide(from), contextOf(to, body), PROVIDER)
  const reader = new SseReader({
    event: event => {
      translator.event(event.buf.toString('utf8', event.nameStart, event.nameEnd), event.value)
    },
  })
  for (const chunk of chunks) reader.push(chunk)
  reader.end()
  if (isWhole) translator.end()
  return translator.take().toString()
}

/** Translates a whole response. */
export function bodyBetween(to: string, from: string, response: JsonObject, body: JsonObject = {}): JsonObject {
  return translateBody(clientSide(to), upstreamSide(from), response, contextOf(to, body), PROVIDER)
}

/** Events as the bytes of a stream; text stays as it is. */
export function sse(...events: readonly (JsonObject | string)[]): Buffer {
  return Buffer.from(events.map(event => {
    if (typeof event === 'string') return `data: ${event}\n\n`
    return (typeof event['type'] === 'string' ? `event: ${event['type']}\n` : '') + `data: ${JSON.stringify(event)}\n\n`
  }).join(''))
}

/** The data of a stream's events. */
export function dataOf(stream: string): JsonObject[] {
  return stream.split('\n').filter(line => line.startsWith('data: {')).map(line => JSON.parse(line.slice(6)) as JsonObject)
}
