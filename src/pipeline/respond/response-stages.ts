import { MemoryReservation } from '../../base/memory-reservation.ts'
import { callsModel, isRead, isFormatUnknown } from '../../context/exchange.ts'
import type { Exchange } from '../../context/exchange.ts'
import type { Gateway } from '../../context/gateway.ts'
import { LedgerCheckpoint } from '../../context/ledger-checkpoint.ts'
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
import type { Continuation } from './continuation.ts'
import { responseMemoryFor } from './response-memory.ts'
import { ResponseStream } from './response-stream.ts'
import type { ResponseStages, Stage } from './response-stream.ts'

/** Bytes of a whole answer that are kept to read its usage; a longer one passes unread. */
const MAX_BODY_BYTES = 32 * 1024 * 1024
/** Bytes of an error that is read. */
const MAX_ERROR_BYTES = 64 * 1024
/** Bytes of a compressed answer that is unpacked at once: no error with status 200 is longer. */
const MAX_SYNC_DECOMPRESS_BYTES = 4 * 1024

/**
 * Chooses the stages of a response by its head: the meter of a stream, or a collector of a whole body
 * whose usage is read at the end. What they find is in `exchange.response`, for the settlement.
 *
 * @param continuation prepares another upstream to continue the stream; null = none does
 * @returns null where every byte passes and nothing is read
 */
export function createResponseStream(
  gateway: Gateway, exchange: Exchange, head: ResponseHead, continuation: Continuation | null,
): ResponseStream | null {
  // An upstream's error is nobody's usage.
  if (head.status >= 400) return new ResponseStream(bodyStages(new ErrorReader(exchange, head)))
  if (head.status < 200 || head.status >= 300) return null
  const { classified: { endpoint }, target, req, candidate } = exchange
  // What is only fetched was paid for when it was made, also where it comes as a stream.
  if (!isMetered(endpoint) && isRead(exchange)) return null
  const host = candidate?.upstream.url?.hostname ?? ''
  const masks = isText(endpoint) ? fieldMasks(endpoint, target, req.headers, host) : []
  const context = { gateway, exchange, head, continuation, masks }
  if (isEventStream(head) || endpoint.streamsByPath || isFormatUnknown(exchange, head)) {
    // An array of Google's is a stream too.
    const isEither = !endpoint.streamsByPath && !isEventStream(head)
    return new ResponseStream(streamStages(context), isEither ? () => collectorStages(context) : null)
  }
  // What an unknown path used nobody can tell: where it asked a model, its cost is unknown, not nothing.
  if (!isMetered(endpoint) && !callsModel(exchange)) return null
  // What can only be JSON is read as such whatever it is called, as the client does too.
  const isJson = head.contentType.includes('json') || endpoint.respondsWithJson
  return new ResponseStream(
    isMetered(endpoint) && isJson ? collectorStages(context) : bodyStages(new DeliveryRecorder(gateway, exchange)),
  )
}

interface StageContext {
  readonly gateway: Gateway
  readonly exchange: Exchange
  readonly head: ResponseHead
  readonly continuation: Continuation | null
  /** The parts of the response that the request asks for alone; usually none. */
  readonly masks: readonly string[]
}

function streamStages({ gateway, exchange, head, continuation, masks }: StageContext): ResponseStages {
  // What a mask asks for of the usage may be a part of it. Compressed against our asking, bytes pass unread.
  const isUnread = head.coding !== null || masks.some(mask => /usage|\*/i.test(mask))
  const { endpoint } = exchange.classified
  const reserveMemory = responseMemoryFor(gateway, exchange)
  const meter = createStreamMeter(endpoint, { contentType: head.contentType, reserveMemory })
  const all: Stage[] = []
  const isFollowed = continuation?.follows(head) === true
  // A plain stream's events go straight to the meter.
  const isPlain = !isUnread && !isFollowed && masks.length === 0 && !exchange.hidesUsage
  const sink = isPlain ? meter : sinkOf(all)
  const reader = isUnread && !isFollowed ? new ChunkReader(sink) : meter.createReader(sink)
  if (isUnread) all.push(new DeliveryRecorder(gateway, exchange))
  else all.push(meter)
  if (!isUnread) exchange.response = { kind: 'stream', meter }
  const isMasked = !isUnread && masks.length > 0
  if (isMasked) all.push(new MaskedUsage(exchange))
  const filter = exchange.hidesUsage && !isUnread ? endpoint.usageOption?.createFilter(reader) ?? null : null
  const stage = isFollowed ? continuation.createStage({ reader, filter, reserveMemory }) : null
  // The continuation gives the filter the events that it passes on.
  const outlet = stage ?? filter
  if (outlet) all.push(outlet)
  return {
    all, reader, filter, outlet,
    meter: isUnread || isMasked ? null : meter,
    continuation: stage,
    checkpoint: isUnread ? null : new LedgerCheckpoint(gateway, exchange),
  }
}

/** A whole body whose usage is read. */
function collectorStages({ gateway, exchange, head, masks }: StageContext): ResponseStages {
  if (masks.some(mask => /usage|\*/i.test(mask))) return bodyStages(new DeliveryRecorder(gateway, exchange))
  exchange.responseEncoding = head.coding
  const collector = new BodyCollector(gateway, exchange)
  return masks.length === 0 ? bodyStages(collector) : bodyStages(collector, new MaskedUsage(exchange))
}

function bodyStages(...all: readonly Stage[]): ResponseStages {
  const reader = new ChunkReader(sinkOf(all))
  return { all, reader, meter: null, filter: null, continuation: null, outlet: null, checkpoint: null }
}

/** Gives each event to the stages in their order. @param stages may be completed before the first event */
function sinkOf(stages: readonly Stage[]): EventSink {
  return {
    event: event => {
      for (const stage of stages) stage.event(event)
    },
  }
}

/** Keeps a whole answer, as far as it and all others that are kept have room. */
class BodyCollector implements Stage {
  readonly #exchange: Exchange
  readonly #memory: MemoryReservation
  /** Of an answer that is not worth its parts; null = it is. */
  readonly #checkpoint: LedgerCheckpoint | null
  /** null: there was no room, and it passes unread. */
  #pieces: ChunkList | null = new ChunkList()
  #size = 0

  constructor(gateway: Gateway, exchange: Exchange) {
    this.#exchange = exchange
    this.#memory = new MemoryReservation(responseMemoryFor(gateway, exchange))
    this.#checkpoint = reportsTokensAtEnd(exchange.classified.endpoint) ? new LedgerCheckpoint(gateway, exchange) : null
    exchange.response = NOT_DELIVERED
  }

  /** Should the process die before the end, the ledger has that it came; what it costs is unknown. */
  begin(): void {
    if (this.#checkpoint === null) return
    this.#exchange.response = DELIVERED
    this.#checkpoint.schedule()
  }

  event({ buf }: StreamEvent): void {
    if (this.#pieces === null) return
    this.#size += buf.length
    if (this.#size > MAX_BODY_BYTES || !this.#memory.resize(this.#size)) this.#giveUp()
    else this.#pieces.push(buf)
  }

  end(): void {
    if (this.#pieces === null) return
    const packed = this.#pieces.concat()
    // Joined, it is there twice.
    this.#pieces.clear()
    const body = this.#decompressed(packed)
    if (body !== null) this.#exchange.responseEncoding = null
    this.#exchange.response = { kind: 'body', body: body ?? packed }
  }

  /** null: it is not packed, takes too long for now, has no room, or cannot be unpacked. */
  #decompressed(packed: Buffer): Buffer | null {
    const { responseEncoding: answerEncoding } = this.#exchange
    if (answerEncoding === null || packed.length > MAX_SYNC_DECOMPRESS_BYTES) return null
    const body = decompressed(packed, answerEncoding)
    return body !== null && body !== 'broken' && this.#memory.resize(this.#size + body.length) ? body : null
  }

  #giveUp(): void {
    this.#memory.resize(0)
    this.#exchange.response = DELIVERED
    this.#pieces = null
  }
}

/**
 * Reads whether the usage is in a response of which the request asked for other parts: then the mask was
 * ignored, and all is as it would be without one. Otherwise it is unknown what is missing.
 */
class MaskedUsage implements Stage {
  readonly #exchange: Exchange
  /** A stream's; a whole body is there at its end. */
  readonly #streamResponse: MeteredResponse | null
  #delivered = NOT_DELIVERED

  constructor(exchange: Exchange) {
    this.#exchange = exchange
    this.#streamResponse = exchange.response?.kind === 'stream' ? exchange.response : null
    exchange.response = NOT_DELIVERED
  }

  begin(): void {
    this.#exchange.response = this.#delivered = DELIVERED
  }

  event(): void {
    // The meter or the collector before it reads the response.
  }

  end(): void {
    const response = this.#streamResponse ?? this.#exchange.response
    this.#exchange.response = this.#reportsUsage(response) ? response : this.#delivered
  }

  #reportsUsage(answer: MeteredResponse | null): boolean {
    if (answer === null || answer.kind === 'none') return false
    const { usage } = this.#exchange.classified.endpoint
    const reading = answer.kind === 'stream' ? answer.meter.reading() : readBodyUsage(usage, answer.body)
    return reading !== null && reading.usage.inputTokens !== null && reading.usage.outputTokens !== null
  }
}

/** Keeps what an upstream's error says, for whoever looks into why the request failed. */
class ErrorReader implements Stage {
  readonly #exchange: Exchange
  readonly #coding: string | null
  readonly #pieces = new ChunkList()
  #size = 0

  constructor(exchange: Exchange, { coding }: ResponseHead) {
    this.#exchange = exchange
    this.#coding = coding
  }

  event({ buf }: StreamEvent): void {
    this.#size += buf.length
    if (this.#size <= MAX_ERROR_BYTES) this.#pieces.push(buf)
    else this.#pieces.clear()
  }

  end(): void {
    this.#exchange.upstreamErrorBody = decompressedOrRaw(this.#pieces.concat(), this.#coding)
  }
}

/** Keeps nothing of a response, but that it came. */
class DeliveryRecorder implements Stage {
  readonly #exchange: Exchange
  readonly #checkpoint: LedgerCheckpoint

  constructor(gateway: Gateway, exchange: Exchange) {
    this.#exchange = exchange
    this.#checkpoint = new LedgerCheckpoint(gateway, exchange)
    exchange.response = NOT_DELIVERED
  }

  begin(): void {
    this.#checkpoint.schedule()
    this.#exchange.response = DELIVERED
  }

  event(): void {
    // It passes unread.
  }
}

const NOT_DELIVERED: MeteredResponse = { kind: 'none', delivered: false }
const DELIVERED: MeteredResponse = { kind: 'none', delivered: true }
