import { GatewayError } from '../../base/errors.ts'
import { SseReader } from '../../protocols/shared/sse.ts'
import type { SseEvent } from '../../protocols/shared/sse.ts'
import type { Judge, Opinion } from '../../proxy/response-gate.ts'
import { beginsJson } from './body-classifier.ts'
import type { WholeBody } from './body-classifier.ts'
import { kindOf } from './stream-event.ts'

/** Bytes of a stream that are waited for its first event. */
const MOST_EVENT = 256 * 1024

/** A stream, which has to begin with a whole event that is no error. Pings and comments are no events. */
export class FirstEvent implements Judge {
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
export class Untold extends FirstEvent {
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
