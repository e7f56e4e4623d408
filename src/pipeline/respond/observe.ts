import { MemoryReservation } from '../../base/memory-reservation.ts'
import type { ReserveMemory } from '../../base/memory-reservation.ts'
import { callsModel, isRead, isFormatUnknown } from '../../context/exchange.ts'
import type { Exchange } from '../../context/exchange.ts'
import type { Gateway } from '../../context/gateway.ts'
import { isMetered, isText, reportsTokensAtEnd } from '../../pricing/settle-usage.ts'
import type { MeteredResponse } from '../../pricing/settle-usage.ts'
import { fieldMasks } from '../../protocols/field-masks.ts'
import { decompressed, decompressedOrRaw } from '../../protocols/shared/decompress.ts'
import type { UsageFilter } from '../../protocols/shared/protocol.ts'
import { readBodyUsage } from '../../protocols/shared/reported-usage.ts'
import { createStreamMeter } from '../../protocols/shared/stream-meter.ts'
import type { StreamMeter } from '../../protocols/shared/stream-meter.ts'
import { ChunkList } from '../../proxy/chunk-list.ts'
import { isEventStream } from '../../proxy/response-head.ts'
import type { ResponseHead } from '../../proxy/response-head.ts'
import { LedgerCheckpoint } from '../settle/ledger-checkpoint.ts'
import { FormatDetectingObserver } from './format-detecting-observer.ts'
import type { Observer } from './relay.ts'

/** Bytes of a whole answer that are kept to read its usage; a longer one passes unread. */
const MAX_BODY_BYTES = 32 * 1024 * 1024
/** Bytes of an error that is read. */
const MAX_ERROR_BYTES = 64 * 1024
/** Bytes of a compressed answer that is unpacked at once: no error with status 200 is longer. */
const MAX_SYNC_DECOMPRESS_BYTES = 4 * 1024

/**
 * Who looks on while an answer passes: the meter of a stream, or a collector of a
 * whole body whose usage is read at the end. What is seen stands in
 * `exchange.answer`, for the settlement.
 */
export function observe(gateway: Gateway, exchange: Exchange, head: ResponseHead): Observer | null {
  // The upstream's refusals are nobody's usage.
  if (head.status >= 400) return new ErrorReader(exchange, head)
  if (head.status < 200 || head.status >= 300) return null
  const { classified: { endpoint }, target, req, candidate } = exchange
  const host = candidate?.upstream.url?.hostname ?? ''
  const masks = isText(endpoint) ? fieldMasks(endpoint, target, req.headers, host) : []
  if (masks.length === 0) return observeUnmasked(gateway, exchange, head)
  // What it tells of the usage may be a part of that.
  if (masks.some(mask => /usage|\*/i.test(mask))) return observeDelivery(gateway, exchange)
  const observer = observeUnmasked(gateway, exchange, head)
  return observer && new MaskedObserver(exchange, observer)
}

function observeUnmasked(gateway: Gateway, exchange: Exchange, head: ResponseHead): Observer | null {
  const { endpoint } = exchange.classified
  // What is only fetched was paid for when it was made, also where it comes as a stream.
  if (!isMetered(endpoint) && isRead(exchange)) return null
  if (isEventStream(head) || endpoint.streamsByPath || isFormatUnknown(exchange, head)) {
    // Compressed against our asking, its bytes pass unread.
    if (head.coding !== null) return observeDelivery(gateway, exchange)
    const room = responseMemoryFor(gateway, exchange)
    const meter = createStreamMeter(endpoint, { contentType: head.contentType, reserveMemory: room })
    exchange.response = { kind: 'stream', meter }
    const stream = new StreamObserver(gateway, exchange, meter)
    // An array of Google's is a stream too.
    const isEither = !endpoint.streamsByPath && !isEventStream(head)
    return isEither ? new FormatDetectingObserver(stream, () => new BodyCollector(gateway, exchange)) : stream
  }
  // What an unknown path used nobody can tell: where it asked a model, its cost is unknown, not nothing.
  if (!isMetered(endpoint)) return callsModel(exchange) ? observeDelivery(gateway, exchange) : null
  // What can only be JSON is read as such whatever it is called, as the client does too.
  if (!head.contentType.includes('json') && !endpoint.respondsWithJson) return observeDelivery(gateway, exchange)
  exchange.responseEncoding = head.coding
  return new BodyCollector(gateway, exchange)
}

/** The memory for what is kept of an exchange's answers: all that is taken comes back with its end. */
export function responseMemoryFor({ config, sharedState: { bodyMemory: bodies } }: Gateway, exchange: Exchange): ReserveMemory {
  return bytes => {
    if (bytes < 0) bodies.releaseForResponse(-bytes)
    else if (!bodies.reserveForResponse(bytes, config.server.bodyMemory)) return false
    exchange.responseBytesHeld += bytes
    return true
  }
}

class StreamObserver implements Observer {
  readonly filter: UsageFilter | null
  readonly #meter: StreamMeter
  readonly #checkpoint: LedgerCheckpoint
  #isFirst = true

  constructor(gateway: Gateway, exchange: Exchange, meter: StreamMeter) {
    this.#meter = meter
    this.#checkpoint = new LedgerCheckpoint(gateway, exchange)
    this.filter = exchange.hidesUsage ? exchange.classified.endpoint.usageOption?.createFilter() ?? null : null
  }

  get terminated(): boolean | null {
    // An error event of the protocol's own is an honest end too.
    return this.#meter.sawError ? true : this.#meter.terminated
  }

  get atBoundary(): boolean {
    return this.filter?.holding === true || this.#meter.atBoundary
  }

  push(chunk: Buffer): void {
    this.#meter.push(chunk)
    // The first piece is drafted at once: it tells who answers, and with what status.
    if (this.#isFirst) this.#checkpoint.writeNow()
    else this.#checkpoint.schedule()
    this.#isFirst = false
  }

  end(): void {
    this.#meter.end()
  }
}

/** Keeps a whole answer, as far as it and all others that are kept have room. */
class BodyCollector implements Observer {
  readonly filter = null
  readonly terminated = null
  readonly atBoundary = false
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

  push(chunk: Buffer): void {
    if (this.#pieces === null) return
    if (this.#checkpoint && this.#size === 0) this.#recordDelivery(this.#checkpoint)
    this.#size += chunk.length
    if (this.#size > MAX_BODY_BYTES || !this.#memory.resize(this.#size)) this.#giveUp()
    else this.#pieces.push(chunk)
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

  /** Should the process die before the end, it came, and nobody knows what it comes to. */
  #recordDelivery(news: LedgerCheckpoint): void {
    this.#exchange.response = DELIVERED
    news.schedule()
  }

  #giveUp(): void {
    this.#memory.resize(0)
    this.#exchange.response = DELIVERED
    this.#pieces = null
  }
}

/**
 * Of an answer of which the request asked for other parts than its usage: where that is there, the mask
 * was ignored, and all is as it would be without one. Otherwise nobody knows what is missing.
 */
class MaskedObserver implements Observer {
  readonly filter: Observer['filter']
  readonly terminated = null
  readonly atBoundary = false
  readonly #exchange: Exchange
  readonly #inner: Observer
  /** A stream's; a whole answer is there at its end. */
  readonly #streamResponse: MeteredResponse | null

  constructor(exchange: Exchange, inner: Observer) {
    this.#exchange = exchange
    this.#inner = inner
    this.filter = inner.filter
    this.#streamResponse = exchange.response?.kind === 'stream' ? exchange.response : null
    exchange.response = NOT_DELIVERED
  }

  push(chunk: Buffer): void {
    this.#inner.push(chunk)
    this.#exchange.response = DELIVERED
  }

  end(): void {
    const delivered = this.#exchange.response
    this.#inner.end()
    const answer = this.#streamResponse ?? this.#exchange.response
    this.#exchange.response = this.#reportsUsage(answer) ? answer : delivered
  }

  #reportsUsage(answer: MeteredResponse | null): boolean {
    if (answer === null || answer.kind === 'none') return false
    const { usage } = this.#exchange.classified.endpoint
    const reading = answer.kind === 'stream' ? answer.meter.reading() : readBodyUsage(usage, answer.body)
    return reading !== null && reading.usage.inputTokens !== null && reading.usage.outputTokens !== null
  }
}

/** Keeps what an upstream's error says, for whoever looks into why the request failed. */
class ErrorReader implements Observer {
  readonly filter = null
  readonly terminated = null
  readonly atBoundary = false
  readonly #exchange: Exchange
  readonly #coding: string | null
  readonly #pieces = new ChunkList()
  #size = 0

  constructor(exchange: Exchange, { coding }: ResponseHead) {
    this.#exchange = exchange
    this.#coding = coding
  }

  push(chunk: Buffer): void {
    this.#size += chunk.length
    if (this.#size <= MAX_ERROR_BYTES) this.#pieces.push(chunk)
    else this.#pieces.clear()
  }

  end(): void {
    this.#exchange.upstreamErrorBody = decompressedOrRaw(this.#pieces.concat(), this.#coding)
  }
}

/** Nothing of it is kept, only that it came. */
function observeDelivery(gateway: Gateway, exchange: Exchange): Observer {
  const news = new LedgerCheckpoint(gateway, exchange)
  exchange.response = NOT_DELIVERED
  return {
    filter: null,
    terminated: null,
    atBoundary: false,
    push: () => {
      if (exchange.response === NOT_DELIVERED) news.schedule()
      exchange.response = DELIVERED
    },
    end: () => {},
  }
}

const NOT_DELIVERED: MeteredResponse = { kind: 'none', delivered: false }
const DELIVERED: MeteredResponse = { kind: 'none', delivered: true }
