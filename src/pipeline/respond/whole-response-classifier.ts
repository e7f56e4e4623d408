import { GatewayError } from '../../base/errors.ts'
import { isUntold } from '../../context/exchange.ts'
import type { Exchange } from '../../context/exchange.ts'
import type { TakeRoom } from '../../base/memory-reservation.ts'
import { SseReader } from '../../protocols/shared/sse.ts'
import { createStreamMeter } from '../../protocols/stream-meter.ts'
import type { StreamMeter } from '../../protocols/stream-meter.ts'
import type { EndpointName } from '../../protocols/shared/names.ts'
import { speaksJson } from '../../protocols/responds-with-json.ts'
import { isEventStream } from '../../proxy/response-head.ts'
import type { AnswerHead } from '../../proxy/response-head.ts'
import type { Ending, Judge, Opinion } from '../../proxy/response-gate.ts'
import { endingOf } from '../../protocols/continuation.ts'
import { WholeBody, beginsJson } from './body-classifier.ts'
import { kindOf } from './stream-event.ts'

/** Bytes of an answer that is kept back until it is whole. */
const MOST_WHOLE = 32 * 1024 * 1024

const NOTHING = Buffer.alloc(0)

/** An answer that is kept back to its end, and has to have one. */
export class Whole implements Judge {
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

  /** What has come of a stream so far; null: it is an answer in one piece. */
  get meter(): StreamMeter | null {
    return this.#body ? null : this.#meter
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
