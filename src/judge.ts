import { decoded, legible } from './decoded.ts'
import { GatewayError } from './errors.ts'
import { isUntold } from './exchange.ts'
import type { Exchange } from './exchange.ts'
import { isErrorBody } from './metering/body.ts'
import type { TakeRoom } from './metering/room.ts'
import { SseReader } from './metering/sse.ts'
import type { SseEvent } from './metering/sse.ts'
import { createStreamMeter } from './metering/stream-meter.ts'
import type { StreamMeter } from './metering/stream-meter.ts'
import { withoutMark } from './protocols/json-text.ts'
import type { EndpointName } from './protocols/names.ts'
import { refusalReason } from './protocols/refusal.ts'
import type { RefusalReason } from './protocols/refusal.ts'
import { speaksJson } from './protocols/speaks-json.ts'
import { isEventStream } from './proxy/head.ts'
import type { AnswerHead } from './proxy/head.ts'
import type { Ending, Judge, Opinion } from './proxy/prelude.ts'
import { isRetryableStatus } from './proxy/retry.ts'
import { endingOf } from './resume/index.ts'
import { isThere, kindOf, member, parsed } from './stream-event.ts'

/** Bytes of an error answer that are kept for the client, and milliseconds that it may take to come. */
const MOST_REFUSAL = 1024 * 1024
const REFUSAL_PATIENCE = 2_000
/** Bytes of a whole answer that are looked at. */
const MOST_BODY = 256 * 1024
/** Bytes of an answer that is kept back until it is whole. */
const MOST_WHOLE = 32 * 1024 * 1024
/** Bytes of a stream that are waited for its first event. */
const MOST_EVENT = 256 * 1024

/** Bytes of a growing array in which its first element's first name has to stand. */
const MOST_START = 256

const NOTHING = Buffer.alloc(0)

/** Refusals for which the route names another target. */
type Reasons = Pick<ReadonlySet<RefusalReason>, 'has' | 'size'>

/** Statuses with which a provider refuses what it was asked, rather than to be asked. */
const REFUSALS = new Set([400, 403, 413, 422])

export interface Demands {
  readonly reasons: Reasons
  /** Nothing goes to the client before all of it is there. */
  readonly whole: boolean
  /** The client's stream has begun: only another stream can go on with it. */
  begun(): boolean
}

/**
 * Chooses who looks at the beginning of an answer that another candidate could
 * still replace.
 *
 * @returns null when the answer may go to the client as it is
 */
export function judgeOf(
  exchange: Exchange, head: AnswerHead, { reasons, whole, begun }: Demands, room: TakeRoom,
): Judge | null {
  const { status } = head
  if (isRetryableStatus(status)) return new Refusal(true, head, reasons)
  if (REFUSALS.has(status) && reasons.size > 0) return new Refusal(false, head, reasons)
  const endpoint = exchange.classified.endpoint.name
  const isEvents = isEventStream(head)
  if (begun() && (status !== 200 || !isEvents || head.coding !== null)) {
    return new Refusal(true, head, reasons)
  }
  if (status < 200 || status > 299) return null
  if (whole && (isEvents || speaksJson(endpoint)) && head.coding === null) {
    return new Whole(exchange, head, room)
  }
  if (!speaksJson(endpoint)) return new AnyByte()
  if (!isEvents) {
    const isArray = endpoint === 'generate.stream' && head.coding === null
    const piece = isArray ? new FirstElement(head) : new WholeBody(head)
    return isUntold(exchange, head) && head.coding === null ? new Untold(piece) : piece
  }
  // Compressed against our asking, its events pass unread.
  return head.coding === null ? new FirstEvent() : new AnyByte()
}

/** An answer with the status of an error. */
export class Refusal implements Judge {
  readonly most = MOST_REFUSAL
  readonly patience = REFUSAL_PATIENCE
  readonly anyByteCounts = true
  readonly fault = null
  /** What it refuses the request for, where the route names another target for that or the status is 403. */
  reason: RefusalReason | null = null
  readonly #isFailure: boolean
  readonly #head: AnswerHead
  readonly #reasons: Reasons

  /** @param isFailure another attempt may fare better whatever it says */
  constructor(isFailure: boolean, head: AnswerHead, reasons: Reasons) {
    this.#isFailure = isFailure
    this.#head = head
    this.#reasons = reasons
  }

  push(): Opinion {
    return 'open'
  }

  decide(body: Buffer, whole: boolean): 'good' | 'bad' {
    const { status, coding } = this.#head
    // A 403 is a refused credential, unless it says that it is none.
    const isMistakable = status === 403
    if (whole && (isMistakable || (this.#reasons.size > 0 && REFUSALS.has(status)))) {
      const reason = refusalReason(legible(body, coding))
      if (reason !== null && (isMistakable || this.#reasons.has(reason))) this.reason = reason
    }
    return this.#isFailure || this.reason !== null ? 'bad' : 'good'
  }
}

/** An answer of which nothing can be read: that its body begins has to do. */
class AnyByte implements Judge {
  readonly most = 0
  readonly patience = null
  readonly anyByteCounts = true
  readonly fault = null

  push(): Opinion {
    return 'good'
  }

  decide(): 'good' {
    return 'good'
  }
}

/** An answer in one piece, which has to be JSON and must not be an error alone. */
class WholeBody implements Judge {
  readonly most = MOST_BODY
  readonly patience = null
  readonly anyByteCounts = true
  fault: GatewayError | null = null
  readonly #encoding: string | null

  constructor(head: AnswerHead) {
    this.#encoding = head.coding
  }

  push(_chunk: Buffer): Opinion {
    return 'open'
  }

  decide(body: Buffer, whole: boolean): 'good' | 'bad' {
    // The beginning of something compressed shows nothing, and a coding
    // unknown here may be the client's wish.
    const plain = this.#encoding === null ? body : whole ? decoded(body, this.#encoding) : null
    if (plain === null) return 'good'
    if (plain !== 'broken') {
      const text = withoutMark(plain)
      if (isErrorAnswer(text)) return 'bad'
      if (whole ? isJson(text) : beginsJson(text)) return 'good'
    }
    this.fault = new GatewayError(
      'upstream_invalid', 'the upstream answered with something that is no answer',
    )
    return 'bad'
  }
}

/** A stream that is one growing JSON array: its first element must not be an error. */
class FirstElement extends WholeBody {
  #start = ''

  override push(chunk: Buffer): Opinion {
    if (this.#start.length < MOST_START) this.#start += chunk.toString('latin1', 0, MOST_START)
    const first = /^\s*\[\s*\{\s*"(\w+)"/.exec(this.#start)
    return first && first[1] !== 'error' ? 'good' : 'open'
  }
}

/** A stream, which has to begin with a whole event that is no error. Pings and comments are no events. */
class FirstEvent implements Judge {
  readonly most = MOST_EVENT
  readonly patience = null
  readonly anyByteCounts: boolean = false
  fault: GatewayError | null = null
  #opinion: Opinion = 'open'
  readonly #reader = new SseReader(event => {
    if (this.#opinion === 'open') this.#opinion = this.#judge(event)
  })

  push(chunk: Buffer): Opinion {
    this.#reader.push(chunk)
    return this.#opinion
  }

  decide(_body: Buffer, whole: boolean): 'good' | 'bad' {
    // One event that is so large is no error.
    if (!whole) return 'good'
    this.#reader.end()
    if (this.#opinion !== 'open') return this.#opinion
    return this.#broken('upstream_cut', 'the upstream ended the stream before its first event')
  }

  #judge(event: SseEvent): Opinion {
    switch (kindOf(event)) {
      case 'ping':
        return 'open'
      case 'data':
        return 'good'
      case 'error':
        return 'bad'
      case 'done':
        return this.#broken('upstream_cut', 'the upstream ended the stream without an answer')
      case 'malformed':
        return event.terminated
          ? this.#broken('upstream_invalid', "the stream's first event is not well-formed")
          : this.#broken('upstream_cut', 'the upstream ended the stream in its first event')
    }
  }

  #broken(code: 'upstream_cut' | 'upstream_invalid', message: string): 'bad' {
    this.fault = new GatewayError(code, message)
    return 'bad'
  }
}

/** Perhaps a stream, perhaps an answer in one piece: it does not say, and is judged by how it begins. */
class Untold extends FirstEvent {
  override readonly anyByteCounts = true
  readonly #piece: WholeBody

  constructor(piece: WholeBody) {
    super()
    this.#piece = piece
  }

  override push(chunk: Buffer): Opinion {
    const opinion = super.push(chunk)
    return opinion === 'open' ? this.#piece.push(chunk) : opinion
  }

  override decide(body: Buffer, whole: boolean): 'good' | 'bad' {
    if (!beginsJson(body)) return super.decide(body, whole)
    const opinion = this.#piece.decide(body, whole)
    this.fault = this.#piece.fault
    return opinion
  }
}

/** An answer that is kept back to its end, and has to have one. */
class Whole implements Judge {
  readonly most = MOST_WHOLE
  readonly patience = null
  readonly anyByteCounts = true
  fault: GatewayError | null = null
  readonly #endpoint: EndpointName
  /** The client's body; null where it is no JSON. */
  readonly #request: Buffer | null
  readonly #meter: StreamMeter
  /** null: it is a stream. */
  readonly #body: WholeBody | null
  /** It may be a stream all the same. */
  readonly #isUntold: boolean
  #isMalformed = false
  readonly #reader: SseReader | null

  /** @param room memory for events that are not whole yet, beside that for the answer */
  constructor(exchange: Exchange, head: AnswerHead, room: TakeRoom) {
    const { classified, body } = exchange
    const endpoint = classified.endpoint.name
    const isEvents = isEventStream(head)
    this.#endpoint = endpoint
    this.#request = body?.json ? body.bytes : null
    this.#meter = createStreamMeter(endpoint, { contentType: head.contentType, room })
    this.#body = isEvents || endpoint === 'generate.stream' ? null : new WholeBody(head)
    this.#isUntold = isUntold(exchange, head)
    this.#reader = isEvents && speaksJson(endpoint)
      ? new SseReader(event => {
        if (event.terminated && kindOf(event) === 'malformed') this.#isMalformed = true
      }, { room })
      : null
  }

  push(chunk: Buffer): Opinion {
    if (this.#body && !this.#isUntold) return 'open'
    this.#meter.push(chunk)
    this.#reader?.push(chunk)
    if (this.#isMalformed) {
      this.fault = new GatewayError('upstream_invalid', 'the upstream sent an event that is not well-formed')
    }
    return this.#isMalformed || this.#meter.sawError ? 'bad' : 'open'
  }

  decide(body: Buffer, whole: boolean): 'good' | 'bad' {
    // One that is longer than what is kept passes, as it does on every other route.
    if (this.#body && !(this.#isUntold && !beginsJson(body))) return this.#inOnePiece(this.#body, body, whole)
    if (!whole) {
      const most = MOST_WHOLE >> 20
      this.fault = new GatewayError(
        'answer_too_large', `the answer is larger than the ${most} MB that are held`,
      )
      return 'bad'
    }
    this.#meter.end()
    if (this.#meter.sawError) return 'bad'
    if (this.#meter.terminated !== false) return 'good'
    this.fault = new GatewayError('upstream_cut', 'the upstream ended the stream before its end')
    return 'bad'
  }

  ending(body: Buffer): Ending | null {
    if (this.#reader === null || this.#isMalformed || this.#meter.sawError) return null
    // A generate stream is also over with one answer of several that were asked for.
    if (this.#meter.terminated === true && this.#endpoint !== 'generate.stream') {
      return { whole: this.#reader.blockStart, rest: NOTHING }
    }
    return this.#request && endingOf(this.#endpoint, this.#request, body)
  }

  #inOnePiece(piece: WholeBody, body: Buffer, whole: boolean): 'good' | 'bad' {
    const opinion = piece.decide(body, whole)
    this.fault = piece.fault
    return opinion
  }
}

/**
 * `{"error": ...}`, or the same as the first element of a list: a
 * generate stream that is no stream of events.
 */
function isErrorAnswer(body: Buffer): boolean {
  const text = body.toString('latin1', 0, 64).trimStart()
  if (!text.startsWith('[')) return isErrorBody(body)
  const value = parsed(body.toString('utf8'))
  return Array.isArray(value) && isThere(member(value[0], 'error'))
}

/** As an object or an array does. */
function beginsJson(body: Buffer): boolean {
  return /^\s*[[{]/.test(body.toString('latin1', 0, 64))
}

/** An object or an array: no answer is a bare value. */
function isJson(body: Buffer): boolean {
  const value = parsed(body.toString('utf8'))
  return typeof value === 'object' && value !== null
}
