import type { ReserveMemory } from '../../base/memory-reservation.ts'
import { isFormatUnknown, wantsEventStream } from '../../context/exchange.ts'
import type { Exchange } from '../../context/exchange.ts'
import type { Gateway } from '../../context/gateway.ts'
import { LedgerCheckpoint } from '../../context/ledger-checkpoint.ts'
import type { ResponseContent, UpstreamAttempt } from '../../context/upstream-attempt.ts'
import { SseReader } from '../../protocols/shared/sse.ts'
import type { EventReader } from '../../protocols/shared/stream-event.ts'
import { createStreamMeter } from '../../protocols/shared/stream-meter.ts'
import { responseTranslation, translatedResponseHeaders } from '../../protocols/translate.ts'
import type { ResponseTranslation, TranslatedAttempt } from '../../protocols/translate.ts'
import { headerValue } from '../../proxy/headers.ts'
import { isEventStream } from '../../proxy/response-head.ts'
import type { ResponseHead } from '../../proxy/response-head.ts'
import { BodyCollector, ErrorReader, bodyStages, sinkOf } from './body-stages.ts'
import type { ContinuationStage } from './continuation-stage.ts'
import type { Continuation } from './continuation.ts'
import { ResponseFactsStage } from './response-facts-stage.ts'
import { responseMemoryFor } from './response-memory.ts'
import { ResponseStream } from './response-stream.ts'
import type { HeaderTranslation, ResponseStages, Stage } from './response-stream.ts'
import { TranslatedBody, TranslationStage, translatedError, translatedWhole } from './translation-stage.ts'

export interface TranslatedStageContext {
  readonly gateway: Gateway
  readonly exchange: Exchange
  readonly attempt: UpstreamAttempt
  readonly head: ResponseHead
  /** Prepares another target to continue the stream; null = none does. */
  readonly continuation: Continuation | null
}

/** The stages of a response that is translated: of an error, of the events of a stream, or of a whole body. */
export function createTranslatedStream(context: TranslatedStageContext, translated: TranslatedAttempt): ResponseStream {
  const { gateway, exchange, head } = context
  const { id, request: { model }, startedWall, classified: { endpoint: { format } } } = exchange
  const translation = responseTranslation(translated, { id, model, startedWall, isEventStream: wantsEventStream(exchange) })
  const headers = headerTranslation(translation, head)
  if (head.status >= 400) {
    return new ResponseStream(translatedBodyStages(headers, new ErrorReader(head), translatedError(translation, head.status)))
  }
  if (isEventStream(head) || isFormatUnknown(exchange, head)) {
    return new ResponseStream(translatedEvents(context, translation, headers))
  }
  return new ResponseStream(translatedBodyStages(headers, new BodyCollector(gateway, exchange, head), translatedWhole(translation, format)))
}

function translatedEvents(
  { gateway, exchange, attempt, head, continuation }: TranslatedStageContext, translation: ResponseTranslation,
  translateHeaders: HeaderTranslation,
): ResponseStages {
  const { format } = exchange.classified.endpoint
  const reserveMemory = responseMemoryFor(gateway, exchange)
  const meter = createStreamMeter(exchange.meteredEndpoint, { contentType: head.contentType, reserveMemory })
  const continued = continuation?.follows(head) === true ? continuedStage(continuation, reserveMemory) : null
  const stage = new TranslationStage({ translation, format, clock: gateway.clock, continued })
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

/** The client's events, split again for the stage that remembers them. */
function continuedStage(
  continuation: Continuation, reserveMemory: ReserveMemory,
): { readonly reader: EventReader, readonly stage: ContinuationStage } {
  const sinks: Stage[] = []
  const reader = new SseReader(sinkOf(sinks), { reserveMemory })
  const stage = continuation.createStage({ reader, filter: null, reserveMemory })
  sinks.push(stage)
  return { reader, stage }
}

/** @param collector keeps the body @param translate makes the client's of the upstream's */
function translatedBodyStages(
  translateHeaders: HeaderTranslation, collector: Stage & ResponseContent, translate: (body: Buffer) => string,
): ResponseStages {
  return { ...bodyStages(collector, [collector]), outlet: new TranslatedBody(collector, translate), translateHeaders }
}

/** Headers that describe the upstream's bytes. */
const BODY_HEADERS = new Set(['content-type', 'content-length', 'content-encoding', 'etag', 'content-md5', 'digest'])

function headerTranslation(translation: ResponseTranslation, { status }: ResponseHead): HeaderTranslation {
  return headers => {
    const kept = headers.filter((_, i) => !BODY_HEADERS.has((headers[i - i % 2] as string).toLowerCase()))
    return [...kept, ...translatedResponseHeaders(translation, name => headerValue(headers, name), status)]
  }
}
