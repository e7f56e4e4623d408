import { callsModel, isRead, isFormatUnknown, type Exchange } from '../exchange/exchange.ts'
import type { Gateway } from '../parts/gateway.ts'
import { LedgerCheckpoint } from '../parts/ledger-checkpoint.ts'
import type { ResponseContent, UpstreamAttempt } from '../exchange/upstream-attempt.ts'
import { isMetered, respondsWithText } from '../../pricing/metering.ts'
import { fieldMasks } from '../../protocols/vendors/field-masks.ts'
import { createStreamMeter } from '../../protocols/endpoint/create-stream-meter.ts'
import { ChunkReader } from '../../protocols/events/stream-event.ts'
import { isEventStream, type ResponseHead } from '../../proxy/upstream/response-head.ts'
import { BodyCollector, DeliveryRecorder, ErrorReader, MaskedUsage, WholeBody, bodyStages, sinkOf } from './body-stages.ts'
import type { FramedStream } from './classification.ts'
import type { Continuation } from './continuation.ts'
import type { OnStreamFault } from './continuation-stage.ts'
import { ResponseFactsStage, ResponseStream, type ResponseBody, type ResponseStages, type Stage } from './response-stream.ts'
import { createTranslatedStream } from './translated-stages.ts'

/**
 * Chooses the stages by the head: the meter of a stream, or the collector of a whole body.
 * @param onStreamFault called with the error of an event that the client must not get @param held what a gate has read
 * @throws GatewayError if a whole body cannot be translated @returns null if every byte passes unread
 */
export function createResponseStream(
  gateway: Gateway, exchange: Exchange, attempt: UpstreamAttempt, head: ResponseHead, continuation: Continuation | null,
  onStreamFault: OnStreamFault, held: HeldContent = NOTHING_HELD,
): ReadBody | null {
  const { translated } = attempt
  const isSuccess = head.status >= 200 && head.status < 300
  if (translated && (isSuccess || head.status >= 400)) {
    return createTranslatedStream({ gateway, exchange, attempt, head, continuation, onStreamFault, body: held.body }, translated)
  }
  // An upstream's error is not billed.
  if (head.status >= 400) return new ErrorReader(head)
  if (!isSuccess) return null
  const { meteredEndpoint: endpoint, target, req } = exchange
  // A response that is only fetched was billed when it was generated, even if it arrives as a stream.
  if (!isMetered(endpoint) && isRead(exchange)) return null
  const host = attempt.target.upstream.url?.hostname ?? ''
  const masks = respondsWithText(endpoint) ? fieldMasks(endpoint, target, req.headers, host) : []
  const context = { gateway, exchange, attempt, head, continuation, masks, framed: held.framed }
  if (isEventStream(head) || endpoint.streamsByPath || isFormatUnknown(exchange, head)) {
    // A JSON array of Google's API is a stream too.
    const isEither = !endpoint.streamsByPath && !isEventStream(head)
    return new ResponseStream(streamStages(context), isEither ? () => stagesOf(bodyReader(context)) : null)
  }
  // The usage of an unknown path is unknown. If it called a model, its cost is unknown too, not 0.
  if (!isMetered(endpoint) && !callsModel(exchange)) return null
  // Clients read what can only be JSON as JSON, whatever its content type.
  const isJson = head.contentType.includes('json') || endpoint.respondsWithJson
  const reader = isMetered(endpoint) && isJson ? bodyReader(context) : new DeliveryRecorder(gateway, exchange)
  return reader instanceof WholeBody ? reader : new ResponseStream(stagesOf(reader))
}

export type ReadBody = ResponseBody & ResponseContent

/** What a gate has read of a response that goes to the client. */
export interface HeldContent {
  /** null = not read by all stages. */
  readonly framed: FramedStream | null
  /** null = not a whole body, or not held. */
  readonly body: Buffer | null
}

export const NOTHING_HELD: HeldContent = { framed: null, body: null }

interface StageContext {
  readonly gateway: Gateway
  readonly exchange: Exchange
  readonly attempt: UpstreamAttempt
  readonly head: ResponseHead
  readonly continuation: Continuation | null
  /** The only parts of the response that the request asks for; usually empty. */
  readonly masks: readonly string[]
  readonly framed: FramedStream | null
}

/** Could a field mask make the usage incomplete? */
function masksUsage(masks: readonly string[]): boolean {
  return masks.some(mask => /usage|\*/i.test(mask))
}

function streamStages({ gateway, exchange, attempt, head, continuation, masks, framed }: StageContext): ResponseStages {
  // A response that is compressed although the request forbids it passes unread.
  const isUnread = head.coding !== null || masksUsage(masks)
  const { meteredEndpoint: endpoint } = exchange
  const reserveMemory = exchange.memory.reserveForResponse
  const meter = framed?.meter ?? createStreamMeter(endpoint, { contentType: head.contentType, reserveMemory })
  const all: Stage[] = []
  const isFollowed = continuation?.follows(head) === true
  // The events of a plain stream go straight to the meter.
  const tracesFacts = !isUnread && exchange.trace?.isSampled === true
  const isPlain = !isUnread && !isFollowed && masks.length === 0 && !attempt.hidesUsage && !tracesFacts
  const sink = isPlain ? meter : sinkOf(all)
  const isRead = framed !== null && !isUnread
  const reader = isRead ? framed.reader : isUnread && !isFollowed ? new ChunkReader(sink) : meter.createReader(sink)
  let content: ResponseContent = { metered: { kind: 'stream', meter }, encoding: null, errorBody: null }
  if (isUnread) {
    const recorder = new DeliveryRecorder(gateway, exchange)
    all.push(recorder)
    content = recorder
  } else {
    all.push(meter)
  }
  if (tracesFacts) {
    const stage = new ResponseFactsStage()
    attempt.facts = stage.facts
    all.push(stage)
  }
  const isMasked = !isUnread && masks.length > 0
  if (isMasked) {
    const masked = new MaskedUsage(exchange, content)
    all.push(masked)
    content = masked
  }
  const hidesUsage = attempt.hidesUsage && !isUnread
  const filter = isRead ? framed.filter : hidesUsage ? endpoint.usageOption?.createFilter(reader) ?? null : null
  const stage = isFollowed ? continuation.createStage({ reader, filter, reserveMemory }) : null
  // The continuation passes its events to the filter.
  const outlet = stage ?? filter
  if (outlet) all.push(outlet)
  return {
    all, isRead, reader, content, filter, outlet, translateHeaders: null,
    meter: isUnread || isMasked ? null : meter,
    continuation: stage,
    checkpoint: isUnread ? null : new LedgerCheckpoint(gateway, exchange),
  }
}

/** With a field mask that may leave usage out, a second stage reads the usage. */
function bodyReader({ gateway, exchange, head, masks }: StageContext): WholeBody | [WholeBody, MaskedUsage] {
  if (masksUsage(masks)) return new DeliveryRecorder(gateway, exchange)
  const collector = new BodyCollector(gateway, exchange, head)
  return masks.length === 0 ? collector : [collector, new MaskedUsage(exchange, collector)]
}

function stagesOf(reader: WholeBody | [WholeBody, MaskedUsage]): ResponseStages {
  return reader instanceof WholeBody ? bodyStages(reader, [reader]) : bodyStages(reader[1], reader)
}
