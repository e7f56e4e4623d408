import { GatewayError } from '../../base/errors.ts'
import { SseReader } from '../../protocols/shared/sse.ts'
import { kindOf } from '../../protocols/shared/stream-event.ts'
import type { StreamEvent } from '../../protocols/shared/stream-event.ts'
import { beginsJson } from './body-classifier.ts'
import type { BodyClassifier } from './body-classifier.ts'
import type { ResponseClassifier, Classification } from './classification.ts'

/** Bytes of a stream that are waited for its first event. */
const MAX_EVENT_BYTES = 256 * 1024

/** A stream, which has to begin with a whole event that is no error. Pings and comments are no events. */
export class FirstEventClassifier implements ResponseClassifier {
  readonly maxBytes = MAX_EVENT_BYTES
  readonly timeoutMs = null
  readonly anyByteCounts: boolean = false
  fault: GatewayError | null = null
  #classification: Classification = 'open'
  readonly #reader = new SseReader(this)

  push(chunk: Buffer): Classification {
    this.#reader.push(chunk)
    return this.#classification
  }

  decide(_body: Buffer, whole: boolean): 'good' | 'bad' {
    // One event that is so large is no error.
    if (!whole) return 'good'
    this.#reader.end()
    if (this.#classification !== 'open') return this.#classification
    return this.#reject('upstream_cut', 'the upstream ended the stream before its first event')
  }

  event(event: StreamEvent): void {
    if (this.#classification === 'open') this.#classification = this.#classify(event)
  }

  #classify(event: StreamEvent): Classification {
    switch (kindOf(event)) {
      case 'ping':
        return 'open'
      case 'data':
        return 'good'
      case 'error':
        return 'bad'
      case 'done':
        return this.#reject('upstream_cut', 'the upstream ended the stream without an answer')
      case 'malformed':
        return event.terminated
          ? this.#reject('upstream_invalid', "the stream's first event is not well-formed")
          : this.#reject('upstream_cut', 'the upstream ended the stream in its first event')
    }
  }

  #reject(code: 'upstream_cut' | 'upstream_invalid', message: string): 'bad' {
    this.fault = new GatewayError(code, message)
    return 'bad'
  }
}

/** Perhaps a stream, perhaps an answer in one piece: it does not say, and is judged by how it begins. */
export class UnknownFormatClassifier extends FirstEventClassifier {
  override readonly anyByteCounts = true
  readonly #bodyClassifier: BodyClassifier

  constructor(piece: BodyClassifier) {
    super()
    this.#bodyClassifier = piece
  }

  override push(chunk: Buffer): Classification {
    const opinion = super.push(chunk)
    return opinion === 'open' ? this.#bodyClassifier.push(chunk) : opinion
  }

  override decide(body: Buffer, whole: boolean): 'good' | 'bad' {
    if (!beginsJson(body)) return super.decide(body, whole)
    const opinion = this.#bodyClassifier.decide(body, whole)
    this.fault = this.#bodyClassifier.fault
    return opinion
  }
}
