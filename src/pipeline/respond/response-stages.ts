import { MemoryReservation } from '../../base/memory-reservation.ts'
import { callsModel, isRead, isFormatUnknown } from '../../context/exchange.ts'
import type { Exchange } from '../../context/exchange.ts'
import type { Gateway } from '../../context/gateway.ts'
import { LedgerCheckpoint } from '../../context/ledger-checkpoint.ts'
import { DELIVERED, NOT_DELIVERED } from '../../context/upstream-attempt.ts'
import type { ResponseContent, UpstreamAttempt } from '../../context/upstream-attempt.ts'
import { isMetered, isText, reportsTokensAtEnd } from '../../pricing/settle-usage.ts'
import type { MeteredResponse } from '../../pricing/settle-usage.ts'
import { fieldMasks } from '../../protocols/field-masks.ts'
import { decompressed, decompressedOrRaw } from '../../protocols/shared/decompress.ts'
import { readBodyUsage } from '../../protocols/shared/reported-usage.ts'
import { ChunkReader } from '../../protocols/shared/stream-event.ts'
import type { EventSink, StreamEvent } from '../../protocols/shared/stream-event.ts'
import { createStreamMeter } from '../../protocols/shared/stream-meter.ts'
import { ChunkList } from '../../proxy/chunk-list.ts'
import { isEventStream } from '../../proxy/response-head.ts'
import type { ResponseHead } from '../../proxy/response-head.ts'
import type { FramedStream } from './classification.ts'
import type { Continuation } from './continuation.ts'
import { ResponseFactsStage } from './response-facts-stage.ts'
import { responseMemoryFor } from './response-memory.ts'
import { ResponseStream } from './response-stream.ts'
import type { ResponseStages, Stage } from './response-stream.ts'

/** Bytes of a whole body that are kept to read its usage; a longer one passes unread. */
const MAX_BODY_BYTES = 32 * 1024 * 1024
/** Bytes of an error that is read. */
const MAX_ERROR_BYTES = 64 * 1024
/** Bytes of a compressed body that is decompressed at once: no error with status 200 is longer. */
const MAX_SYNC_DECOMPRESS_BYTES = 4 * 1024

/**
 * Chooses the stages of a response by its head: the meter of a stream, or a collector of a whole body whose usage is
 * read at the end.
 *
 * @param continuation prepares another target to continue the stream; null = none does
 * @param framed the stream, if it was read while it was held; null = it was not
 * @returns null where every byte passes and nothing is read
 */
export function createResponseStream(
  gateway: Gateway, exchange: Exchange, attempt: UpstreamAttempt, head: ResponseHead, continuation: Continuation | null,
  framed: FramedStream | null = null,
): ResponseStream | null {
  // An upstream's error is not billed.
  if (head.status >= 400) {
    const reader = new ErrorReader(head)
    return new ResponseStream(bodyStages(reader, reader))
  }
  if (head.status < 200 || head.status >= 300) return null
  const { classified: { endpoint }, target, req } = exchange
  // What is only fetched was paid for when it was generated, also where it comes as a stream.
  if (!isMetered(endpoint) && isRead(exchange)) return null
  const host = attempt.target.upstream.url?.hostname ?? ''
  const masks = isText(endpoint) ? fieldMasks(endpoint, target, req.headers, host) : []
  const context = { gateway, exchange, attempt, head, continuation, masks, framed }
  if (isEventStream(head) || endpoint.streamsByPath || isFormatUnknown(exchange, head)) {
    // A JSON array of Google's API is a stream too.
    const isEither = !endpoint.streamsByPath && !isEventStream(head)
    return new ResponseStream(streamStages(context), isEither ? () => collectorStages(context) : null)
  }
  // The usage of an unknown path is unknown: where it called a model, so is its cost, which is not 0.
  if (!isMetered(endpoint) && !callsModel(exchange)) return null
  // Clients read what can only be JSON as JSON, whatever its content type.
  const isJson = head.contentType.includes('json') || endpoint.respondsWithJson
  return new ResponseStream(isMetered(endpoint) && isJson ? collectorStages(context) : unreadStages(context))
}

interface StageContext {
  readonly gateway: Gateway
  readonly exchange: Exchange
  readonly attempt: UpstreamAttempt
  readonly head: ResponseHead
  readonly continuation: Continuation | null
  /** The parts of the response that the request asks for alone; usually none. */
  readonly masks: readonly string[]
  readonly framed: FramedStream | null
}

/** With a field mask the usage may be incomplete. */
function masksUsage(masks: readonly string[]): boolean {
  return masks.some(mask => /usage|\*/i.test(mask))
}

function streamStages(
  { gateway, exchange, attempt, head, continuation, masks, framed }: StageContext,
): ResponseStages {
  // A response that is compressed although the request forbids it passes unread.
  const isUnread = head.coding !== null || masksUsage(masks)
  const { endpoint } = exchange.classified
  const reserveMemory = responseMemoryFor(gateway, exchange)
  const meter = framed?.meter ?? createStreamMeter(endpoint, { contentType: head.contentType, reserveMemory })
  const all: Stage[] = []
  const isFollowed = continuation?.follows(head) === true
  // A plain stream's events go straight to the meter.
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
  // The continuation gives the filter the events that it passes on.
  const outlet = stage ?? filter
  if (outlet) all.push(outlet)
  return {
    all, isRead, reader, content, filter, outlet,
    meter: isUnread || isMasked ? null : meter,
    continuation: stage,
    checkpoint: isUnread ? null : new LedgerCheckpoint(gateway, exchange),
  }
}

/** A whole body whose usage is read. */
function collectorStages(context: StageContext): ResponseStages {
  const { gateway, exchange, head, masks } = context
  if (masksUsage(masks)) return unreadStages(context)
  const collector = new BodyCollector(gateway, exchange, head)
  if (masks.length === 0) return bodyStages(collector, collector)
  const masked = new MaskedUsage(exchange, collector)
  return bodyStages(masked, collector, masked)
}

function unreadStages({ gateway, exchange }: StageContext): ResponseStages {
  const recorder = new DeliveryRecorder(gateway, exchange)
  return bodyStages(recorder, recorder)
}

function bodyStages(content: ResponseContent, ...all: readonly Stage[]): ResponseStages {
  const reader = new ChunkReader(sinkOf(all))
  return {
    all, isRead: false, reader, content, meter: null, filter: null, continuation: null, outlet: null, checkpoint: null,
  }
}

/** Gives each event to the stages in their order. @param stages may be completed before the first event */
function sinkOf(stages: readonly Stage[]): EventSink {
  return {
    event: event => {
      for (const stage of stages) stage.event(event)
    },
  }
}

/** Keeps a whole body, as long as there is memory for it and all others that are kept. */
class BodyCollector implements Stage, ResponseContent {
  readonly errorBody = null
  encoding: string | null
  metered: MeteredResponse = NOT_DELIVERED
  readonly #memory: MemoryReservation
  /** null = a part of the body is worth nothing. */
  readonly #checkpoint: LedgerCheckpoint | null
  /** null = there was no memory, and the body passes unread. */
  #chunks: ChunkList | null = new ChunkList()
  #size = 0

  constructor(gateway: Gateway, exchange: Exchange, { coding }: ResponseHead) {
    this.encoding = coding
    this.#memory = new MemoryReservation(responseMemoryFor(gateway, exchange))
    this.#checkpoint = reportsTokensAtEnd(exchange.classified.endpoint) ? new LedgerCheckpoint(gateway, exchange) : null
  }

  /** If the process dies before the end, the ledger has that a body came; its cost is unknown. */
  begin(): void {
    if (this.#checkpoint === null) return
    this.metered = DELIVERED
    this.#checkpoint.schedule()
  }

  event({ buf }: StreamEvent): void {
    if (this.#chunks === null) return
    this.#size += buf.length
    if (this.#size > MAX_BODY_BYTES || !this.#memory.resize(this.#size)) this.#giveUp()
    else this.#chunks.push(buf)
  }

  end(): void {
    if (this.#chunks === null) return
    const received = this.#chunks.concat()
    // After the join the bytes are in memory twice.
    this.#chunks.clear()
    const body = this.#decompress(received)
    if (body !== null) this.encoding = null
    this.metered = { kind: 'body', body: body ?? received }
  }

  /** @returns null = it is plain, too long for now, has no memory, or cannot be decompressed */
  #decompress(received: Buffer): Buffer | null {
    if (this.encoding === null || received.length > MAX_SYNC_DECOMPRESS_BYTES) return null
    const body = decompressed(received, this.encoding)
    return body !== null && body !== 'broken' && this.#memory.resize(this.#size + body.length) ? body : null
  }

  #giveUp(): void {
    this.#memory.resize(0)
    this.metered = DELIVERED
    this.#chunks = null
  }
}

/**
 * Reads whether the usage is in a response although the request asked for other parts of it alone: then the upstream
 * ignored the mask, and the response is settled like one without a mask. Otherwise it is unknown what is missing.
 */
class MaskedUsage implements Stage, ResponseContent {
  readonly errorBody = null
  metered: MeteredResponse = NOT_DELIVERED
  readonly #exchange: Exchange
  /** What the stage before it reads. */
  readonly #content: ResponseContent

  constructor(exchange: Exchange, content: ResponseContent) {
    this.#exchange = exchange
    this.#content = content
  }

  get encoding(): string | null {
    return this.#content.encoding
  }

  begin(): void {
    this.metered = DELIVERED
  }

  event(): void {
    // The meter or the collector before it reads the response.
  }

  end(): void {
    const { metered } = this.#content
    if (metered !== null && this.#reportsUsage(metered)) this.metered = metered
  }

  #reportsUsage(metered: MeteredResponse): boolean {
    if (metered.kind === 'none') return false
    const { usage } = this.#exchange.classified.endpoint
    const reading = metered.kind === 'stream' ? metered.meter.reading() : readBodyUsage(usage, metered.body)
    return reading !== null && reading.usage.inputTokens !== null && reading.usage.outputTokens !== null
  }
}

/** Keeps the body of an upstream's error, which says why the request failed. */
class ErrorReader implements Stage, ResponseContent {
  readonly metered = null
  readonly encoding = null
  errorBody: Buffer | null = null
  readonly #coding: string | null
  readonly #chunks = new ChunkList()
  #size = 0

  constructor({ coding }: ResponseHead) {
    this.#coding = coding
  }

  event({ buf }: StreamEvent): void {
    this.#size += buf.length
    if (this.#size <= MAX_ERROR_BYTES) this.#chunks.push(buf)
    else this.#chunks.clear()
  }

  end(): void {
    this.errorBody = decompressedOrRaw(this.#chunks.concat(), this.#coding)
  }
}

/** Keeps nothing of a response, but that it came. */
class DeliveryRecorder implements Stage, ResponseContent {
  readonly encoding = null
  readonly errorBody = null
  metered: MeteredResponse = NOT_DELIVERED
  readonly #checkpoint: LedgerCheckpoint

  constructor(gateway: Gateway, exchange: Exchange) {
    this.#checkpoint = new LedgerCheckpoint(gateway, exchange)
  }

  begin(): void {
    this.#checkpoint.schedule()
    this.metered = DELIVERED
  }

  event(): void {
    // It passes unread.
  }
}
