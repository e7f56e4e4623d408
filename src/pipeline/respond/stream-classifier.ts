import { GatewayError } from '../../base/errors.ts'
import { exceededBound } from '../../base/json-size.ts'
import { beginsJson } from '../../protocols/json/json-text.ts'
import { SseReader } from '../../protocols/events/sse.ts'
import { kindOf, type EventReader, type StreamEvent } from '../../protocols/events/stream-event.ts'
import type { StreamMeter } from '../../protocols/events/stream-meter.ts'
import type { BodyClassifier } from './body-classifier.ts'
import type { ResponseClassifier, Classification } from './classification.ts'

/** Bytes. A stream whose first event is longer is good, because an error is shorter. */
const MAX_EVENT_BYTES = 256 * 1024

/** A stream is good if its first event, except pings and comments, is complete and not an error. */
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
    // An event of `maxBytes` is too long for an error.
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
      case 'ping': return 'open'
      case 'data': return 'good'
      case 'error': return 'bad'
      case 'done': return this.#reject('upstream_cut', 'the upstream ended the stream without a response')
      case 'malformed':
        return event.terminated
          ? this.#reject('upstream_invalid', `the stream's first event ${exceededBound(event.text) ?? 'is not well-formed'}`)
          : this.#reject('upstream_cut', 'the upstream ended the stream in its first event')
    }
  }

  #reject(code: 'upstream_cut' | 'upstream_invalid', message: string): 'bad' {
    this.fault = new GatewayError(code, message)
    return 'bad'
  }
}

/** For hedged attempts: a stream is good at its first content, because providers send events before the model generates. */
export class FirstContentClassifier implements ResponseClassifier {
  readonly maxBytes = MAX_EVENT_BYTES
  readonly timeoutMs = null
  /** true from the first event on. */
  anyByteCounts = false
  fault: GatewayError | null = null
  readonly meter: StreamMeter
  readonly #first = new FirstEventClassifier()
  readonly #reader: EventReader

  constructor(meter: StreamMeter) {
    this.meter = meter
    this.#reader = meter.createReader(meter)
  }

  push(chunk: Buffer): Classification {
    if (!this.anyByteCounts) {
      const first = this.#first.push(chunk)
      this.fault = this.#first.fault
      if (first === 'bad') return 'bad'
      this.anyByteCounts = first === 'good'
    }
    this.#reader.push(chunk)
    if (this.meter.sawError) return 'bad'
    return this.meter.sawContent || this.meter.terminated === true ? 'good' : 'open'
  }

  decide(body: Buffer, whole: boolean): 'good' | 'bad' {
    if (!this.anyByteCounts) {
      const first = this.#first.decide(body, whole)
      this.fault = this.#first.fault
      return first
    }
    if (!whole) return 'good'
    this.#reader.end()
    if (this.meter.sawError) return 'bad'
    if (this.meter.terminated !== false || this.meter.missingEnd !== null) return 'good'
    this.fault = new GatewayError('upstream_cut', 'the upstream ended the stream before its first content')
    return 'bad'
  }
}

/** For a response whose head does not show its format: its first bytes show whether it is a stream or a whole body. */
export class UnknownFormatClassifier extends FirstEventClassifier {
  override readonly anyByteCounts = true
  readonly #bodyClassifier: BodyClassifier

  constructor(bodyClassifier: BodyClassifier) {
    super()
    this.#bodyClassifier = bodyClassifier
  }

  override push(chunk: Buffer): Classification {
    const classification = super.push(chunk)
    return classification === 'open' ? this.#bodyClassifier.push(chunk) : classification
  }

  override decide(body: Buffer, whole: boolean): 'good' | 'bad' {
    if (!beginsJson(body)) return super.decide(body, whole)
    const classification = this.#bodyClassifier.decide(body, whole)
    this.fault = this.#bodyClassifier.fault
    return classification
  }
}
