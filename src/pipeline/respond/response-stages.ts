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
 * Chooses the stages by the response's head: the meter of a stream, or the collector of a whole body.
 * @param onStreamFault called with the error of an event that the client must not get @param held the part that a response gate has read
 * @returns null = all bytes pass unread @throws GatewayError if a whole body cannot be translated
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
  // Do not meter a response that was generated and billed before, and is now only fetched, even if it arrives as a stream.
  if (!isMetered(endpoint) && isRead(exchange)) return null
  const host = attempt.target.upstream.url?.hostname ?? ''
  const masks = respondsWithText(endpoint) ? fieldMasks(endpoint, target, req.headers, host) : []
  const context = { gateway, exchange, attempt, head, continuation, masks, framed: held.framed }
  if (isEventStream(head) || endpoint.streamsByPath || isFormatUnknown(exchange, head)) {
    // If the format is unknown, the beginning of the body shows whether it is a stream.
    const isEither = !endpoint.streamsByPath && !isEventStream(head)
    return new ResponseStream(streamStages(context), isEither ? () => stagesOf(bodyReader(context)) : null)
  }
  // An unmetered request that calls no model costs nothing. The cost of another unmetered request is unknown, so record the delivery.
  if (!isMetered(endpoint) && !callsModel(exchange)) return null
  // On these endpoints clients parse the body as JSON even if its content type is wrong, so meter it as JSON.
  const isJson = head.contentType.includes('json') || endpoint.respondsWithJson
  const reader = isMetered(endpoint) && isJson ? bodyReader(context) : new DeliveryRecorder(gateway, exchange)
  return reader instanceof WholeBody ? reader : new ResponseStream(stagesOf(reader))
}

export type ReadBody = ResponseBody & ResponseContent

/** The part that a response gate has read of a response that goes to the client. */
export interface HeldContent {
  /** The stream that all stages have read; null = they have not. */
  readonly framed: FramedStream | null
  /** The held body; null = not a whole body, or not held. */
  readonly body: Buffer | null
}

export const NOTHING_HELD: HeldContent = { framed: null, body: null }

interface StageContext {
  readonly gateway: Gateway
  readonly exchange: Exchange
  readonly attempt: UpstreamAttempt
  readonly head: ResponseHead
  readonly continuation: Continuation | null
  /** The field masks of the request: parts of the response to send. Usually empty, which means all parts. */
  readonly masks: readonly string[]
  readonly framed: FramedStream | null
}

/** @returns true = a field mask can remove a part of the usage */
function masksUsage(masks: readonly string[]): boolean {
  return masks.some(mask => /usage|\*/i.test(mask))
}

function streamStages({ gateway, exchange, attempt, head, continuation, masks, framed }: StageContext): ResponseStages {
  // A compressed response, which the request did not allow, is not read.
  const isUnread = head.coding !== null || masksUsage(masks)
  const { meteredEndpoint: endpoint } = exchange
  const reserveMemory = exchange.memory.reserveForResponse
  const meter = framed?.meter ?? createStreamMeter(endpoint, { contentType: head.contentType, reserveMemory })
  const all: Stage[] = []
  const isFollowed = continuation?.follows(head) === true
  // If only the meter reads the events, let the reader pass events directly to the meter.
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
  // If there is a continuation stage, that stage passes its events to the filter.
  const outlet = stage ?? filter
  if (outlet) all.push(outlet)
  return {
    all, isRead, reader, content, filter, outlet, translateHeaders: null,
    meter: isUnread || isMasked ? null : meter,
    continuation: stage,
    checkpoint: isUnread ? null : new LedgerCheckpoint(gateway, exchange),
  }
}

/** @returns the stage that reads the body; with a field mask, also a stage that checks whether the body contains usage */
function bodyReader({ gateway, exchange, head, masks }: StageContext): WholeBody | [WholeBody, MaskedUsage] {
  if (masksUsage(masks)) return new DeliveryRecorder(gateway, exchange)
  const collector = new BodyCollector(gateway, exchange, head)
  return masks.length === 0 ? collector : [collector, new MaskedUsage(exchange, collector)]
}

function stagesOf(reader: WholeBody | [WholeBody, MaskedUsage]): ResponseStages {
  return reader instanceof WholeBody ? bodyStages(reader, [reader]) : bodyStages(reader[1], reader)
}
