import type { ReserveMemory } from '../../base/memory-reservation.ts'
import { isFormatUnknown, type Exchange } from '../exchange/exchange.ts'
import type { Gateway } from '../parts/gateway.ts'
import { LedgerCheckpoint } from '../parts/ledger-checkpoint.ts'
import type { ResponseContent, UpstreamAttempt } from '../exchange/upstream-attempt.ts'
import { createStreamMeter } from '../../protocols/endpoint/create-stream-meter.ts'
import { SseReader } from '../../protocols/events/sse.ts'
import type { EventReader } from '../../protocols/events/stream-event.ts'
import { translateError, translateWhole, translatedResponseHeaders } from '../../protocols/translate.ts'
import type { ResponseTranslation, TranslatedAttempt } from '../../protocols/translate.ts'
import { headerValue } from '../../proxy/http/raw-headers.ts'
import { isEventStream, type ResponseHead } from '../../proxy/upstream/response-head.ts'
import { plainText } from './body-classifier.ts'
import { BodyCollector, ErrorReader, bodyStages, sinkOf } from './body-stages.ts'
import type { ContinuationStage, OnStreamFault } from './continuation-stage.ts'
import type { Continuation } from './continuation.ts'
import { ResponseFactsStage, ResponseStream, type HeaderTranslation, type ResponseStages, type Stage } from './response-stream.ts'
import { TranslationStage, translationOf } from './translation-stage.ts'

const NOTHING = Buffer.alloc(0)
const takeNothing = (): Buffer => NOTHING

export interface TranslatedStageContext {
  readonly gateway: Gateway
  readonly exchange: Exchange
  readonly attempt: UpstreamAttempt
  readonly head: ResponseHead
  readonly continuation: Continuation | null
  /** Called with the error of an event that cannot be translated. */
  readonly onStreamFault: OnStreamFault
  /** A whole body that a response gate has held; null = a stream or an error. */
  readonly body: Buffer | null
}

/** @throws GatewayError, before the client gets anything, if a whole body cannot be translated */
export function createTranslatedStream(context: TranslatedStageContext, translated: TranslatedAttempt): ResponseStream {
  const { gateway, exchange, head } = context
  const translation = translationOf(exchange, translated)
  const headers = headerTranslation(translation, head)
  if (head.status >= 400) {
    const reader = new ErrorReader(head)
    const body = (): Buffer => Buffer.from(translateError(translated, head.status, reader.errorBody ?? NOTHING, exchange.id))
    return new ResponseStream(translatedBodyStages(headers, reader, body))
  }
  if (isEventStream(head) || isFormatUnknown(exchange, head)) return new ResponseStream(translatedEvents(context, translation, headers))
  const { body } = context
  const whole = body === null ? NOTHING : translateWhole(translation, plainText(body, head).toString('utf8'))
  return new ResponseStream(translatedBodyStages(headers, new BodyCollector(gateway, exchange, head), () => whole))
}

function translatedEvents(
  { gateway, exchange, attempt, head, continuation, onStreamFault }: TranslatedStageContext, translation: ResponseTranslation,
  translateHeaders: HeaderTranslation,
): ResponseStages {
  const { format } = exchange.classified.endpoint
  const reserveMemory = exchange.memory.reserveForResponse
  const meter = createStreamMeter(exchange.meteredEndpoint, { contentType: head.contentType, reserveMemory })
  const continued = continuation?.follows(head) === true ? continuedStage(continuation, reserveMemory) : null
  const stage = new TranslationStage({ translation, format, clock: gateway.clock, onStreamFault, continued })
  const all: Stage[] = [meter]
  if (exchange.trace?.isSampled === true) {
    const facts = new ResponseFactsStage()
    attempt.facts = facts.facts
    all.push(facts)
  }
  all.push(stage)
  return {
    all, isRead: false, reader: meter.createReader(sinkOf(all)), meter, filter: null, outlet: stage, translateHeaders,
    content: { metered: { kind: 'stream', meter }, encoding: null, errorBody: null },
    continuation: continued?.stage ?? null,
    checkpoint: new LedgerCheckpoint(gateway, exchange),
  }
}

/** Creates the continuation stage of a translated stream, and a reader that splits the translated bytes into events. */
function continuedStage(
  continuation: Continuation, reserveMemory: ReserveMemory,
): { readonly reader: EventReader, readonly stage: ContinuationStage } {
  const sinks: Stage[] = []
  const reader = new SseReader(sinkOf(sinks), { reserveMemory })
  const stage = continuation.createStage({ reader, filter: null, reserveMemory })
  sinks.push(stage)
  return { reader, stage }
}

/** @param collector keeps the upstream's body @param body makes the client's body */
function translatedBodyStages(translateHeaders: HeaderTranslation, collector: Stage & ResponseContent, body: () => Buffer): ResponseStages {
  return { ...bodyStages(collector, [collector]), outlet: { take: takeNothing, rest: body }, translateHeaders }
}

const BODY_HEADERS = new Set(['content-type', 'content-length', 'content-encoding', 'etag', 'content-md5', 'digest'])

function headerTranslation(translation: ResponseTranslation, { status }: ResponseHead): HeaderTranslation {
  return headers => {
    const kept = headers.filter((_, i) => !BODY_HEADERS.has((headers[i - i % 2] as string).toLowerCase()))
    return [...kept, ...translatedResponseHeaders(translation, name => headerValue(headers, name), status)]
  }
}
