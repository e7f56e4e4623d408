import { decoded, legible } from '../../protocols/shared/decompress.ts'
import { asksAModel, isRead, isUntold, masksOf } from '../../context/exchange.ts'
import type { Exchange } from '../../context/exchange.ts'
import type { Gateway } from '../../gateway/gateway.ts'
import { readBodyUsage } from '../../protocols/response-body.ts'
import { Room } from '../../base/memory-reservation.ts'
import type { TakeRoom } from '../../base/memory-reservation.ts'
import type { Answer } from '../../pricing/settle-usage.ts'
import { isMetered, isText, isToldAtItsEnd } from '../../pricing/settle-usage.ts'
import { StreamFilter } from '../../protocols/chat/usage-chunk-filter.ts'
import { createStreamMeter } from '../../protocols/stream-meter.ts'
import type { StreamMeter } from '../../protocols/stream-meter.ts'
import { speaksJson } from '../../protocols/responds-with-json.ts'
import { isEventStream } from '../../proxy/response-head.ts'
import type { AnswerHead } from '../../proxy/response-head.ts'
import { Pieces } from '../../proxy/chunk-list.ts'
import type { Observer } from '../../proxy/relay.ts'
import { News } from '../settle/ledger-checkpoint.ts'
import { UntoldObserver } from './format-detecting-observer.ts'

/** Bytes of a whole answer that are kept to read its usage; a longer one passes unread. */
const MOST_KEPT = 32 * 1024 * 1024
/** Bytes of an error that is read. */
const MOST_ERROR = 64 * 1024
/** Bytes of a compressed answer that is unpacked at once: no error with status 200 is longer. */
const MOST_AT_ONCE = 4 * 1024

/**
 * Who looks on while an answer passes: the meter of a stream, or a collector of a
 * whole body whose usage is read at the end. What is seen stands in
 * `exchange.answer`, for the settlement.
 */
export function observe(gateway: Gateway, exchange: Exchange, head: AnswerHead): Observer | null {
  // The upstream's refusals are nobody's usage.
  if (head.status >= 400) return new ErrorReader(exchange, head)
  if (head.status < 200 || head.status >= 300) return null
  const masks = isText(exchange.classified.endpoint.name) ? masksOf(exchange) : []
  if (masks.length === 0) return observeAll(gateway, exchange, head)
  // What it tells of the usage may be a part of that.
  if (masks.some(mask => /usage|\*/i.test(mask))) return collectNothing(gateway, exchange)
  const observer = observeAll(gateway, exchange, head)
  return observer && new MaskedObserver(exchange, observer)
}

function observeAll(gateway: Gateway, exchange: Exchange, head: AnswerHead): Observer | null {
  const endpoint = exchange.classified.endpoint.name
  // What is only fetched was paid for when it was made, also where it comes as a stream.
  if (!isMetered(endpoint) && isRead(exchange)) return null
  if (isEventStream(head) || endpoint === 'generate.stream' || isUntold(exchange, head)) {
    // Compressed against our asking, its bytes pass unread.
    if (head.coding !== null) return collectNothing(gateway, exchange)
    const room = roomFor(gateway, exchange)
    const meter = createStreamMeter(endpoint, { contentType: head.contentType, room })
    exchange.answer = { kind: 'stream', meter }
    const stream = new StreamObserver(gateway, exchange, meter)
    // An array of Google's is a stream too.
    const isEither = endpoint !== 'generate.stream' && !isEventStream(head)
    return isEither ? new UntoldObserver(stream, () => new BodyCollector(gateway, exchange)) : stream
  }
  // What an unknown path used nobody can tell: where it asked a model, its cost is unknown, not nothing.
  if (!isMetered(endpoint)) return asksAModel(exchange) ? collectNothing(gateway, exchange) : null
  // What can only be JSON is read as such whatever it is called, as the client does too.
  if (!head.contentType.includes('json') && !speaksJson(endpoint)) return collectNothing(gateway, exchange)
  exchange.answerEncoding = head.coding
  return new BodyCollector(gateway, exchange)
}

/** The memory for what is kept of an exchange's answers: all that is taken comes back with its end. */
export function roomFor({ config, lasting: { bodies } }: Gateway, exchange: Exchange): TakeRoom {
  return bytes => {
    if (bytes < 0) bodies.giveForAnswer(-bytes)
    else if (!bodies.takeForAnswer(bytes, config.server.bodyMemory)) return false
    exchange.answerHeld += bytes
    return true
  }
}

class StreamObserver implements Observer {
  readonly filter: StreamFilter | null
  readonly #meter: StreamMeter
  readonly #news: News
  #isFirst = true

  constructor(gateway: Gateway, exchange: Exchange, meter: StreamMeter) {
    this.#meter = meter
    this.#news = new News(gateway, exchange)
    this.filter = exchange.hidesUsage ? new StreamFilter() : null
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
    if (this.#isFirst) this.#news.draft()
    else this.#news.tell()
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
  readonly #room: Room
  /** Of an answer that is not worth its parts; null = it is. */
  readonly #news: News | null
  /** null: there was no room, and it passes unread. */
  #pieces: Pieces | null = new Pieces()
  #size = 0

  constructor(gateway: Gateway, exchange: Exchange) {
    this.#exchange = exchange
    this.#room = new Room(roomFor(gateway, exchange))
    this.#news = isToldAtItsEnd(exchange.classified.endpoint.name) ? new News(gateway, exchange) : null
    exchange.answer = NOT_YET
  }

  push(chunk: Buffer): void {
    if (this.#pieces === null) return
    if (this.#news && this.#size === 0) this.#begin(this.#news)
    this.#size += chunk.length
    if (this.#size > MOST_KEPT || !this.#room.hold(this.#size)) this.#giveUp()
    else this.#pieces.push(chunk)
  }

  end(): void {
    if (this.#pieces === null) return
    const packed = this.#pieces.whole()
    // Joined, it is there twice.
    this.#pieces.clear()
    const body = this.#unpacked(packed)
    if (body !== null) this.#exchange.answerEncoding = null
    this.#exchange.answer = { kind: 'body', body: body ?? packed }
  }

  /** null: it is not packed, takes too long for now, has no room, or cannot be unpacked. */
  #unpacked(packed: Buffer): Buffer | null {
    const { answerEncoding } = this.#exchange
    if (answerEncoding === null || packed.length > MOST_AT_ONCE) return null
    const body = decoded(packed, answerEncoding)
    return body !== null && body !== 'broken' && this.#room.hold(this.#size + body.length) ? body : null
  }

  /** Should the process die before the end, it came, and nobody knows what it comes to. */
  #begin(news: News): void {
    this.#exchange.answer = DELIVERED
    news.tell()
  }

  #giveUp(): void {
    this.#room.hold(0)
    this.#exchange.answer = DELIVERED
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
  readonly #answer: Answer | null

  constructor(exchange: Exchange, inner: Observer) {
    this.#exchange = exchange
    this.#inner = inner
    this.filter = inner.filter
    this.#answer = exchange.answer?.kind === 'stream' ? exchange.answer : null
    exchange.answer = NOT_YET
  }

  push(chunk: Buffer): void {
    this.#inner.push(chunk)
    this.#exchange.answer = DELIVERED
  }

  end(): void {
    const delivered = this.#exchange.answer
    this.#inner.end()
    const answer = this.#answer ?? this.#exchange.answer
    this.#exchange.answer = this.#tells(answer) ? answer : delivered
  }

  #tells(answer: Answer | null): boolean {
    if (answer === null || answer.kind === 'none') return false
    const { name } = this.#exchange.classified.endpoint
    const reading = answer.kind === 'stream' ? answer.meter.reading() : readBodyUsage(name, answer.body)
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
  readonly #pieces = new Pieces()
  #size = 0

  constructor(exchange: Exchange, { coding }: AnswerHead) {
    this.#exchange = exchange
    this.#coding = coding
  }

  push(chunk: Buffer): void {
    this.#size += chunk.length
    if (this.#size <= MOST_ERROR) this.#pieces.push(chunk)
    else this.#pieces.clear()
  }

  end(): void {
    this.#exchange.refusal = legible(this.#pieces.whole(), this.#coding)
  }
}

/** Nothing of it is kept, only that it came. */
function collectNothing(gateway: Gateway, exchange: Exchange): Observer {
  const news = new News(gateway, exchange)
  exchange.answer = NOT_YET
  return {
    filter: null,
    terminated: null,
    atBoundary: false,
    push: () => {
      if (exchange.answer === NOT_YET) news.tell()
      exchange.answer = DELIVERED
    },
    end: () => {},
  }
}

const NOT_YET: Answer = { kind: 'none', delivered: false }
const DELIVERED: Answer = { kind: 'none', delivered: true }
