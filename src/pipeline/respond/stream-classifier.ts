import { GatewayError } from '../../base/errors.ts'
import { exceededBound } from '../../base/json-size.ts'
import { beginsJson } from '../../protocols/json/json-text.ts'
import { SseReader } from '../../protocols/events/sse.ts'
import { kindOf } from '../../protocols/events/stream-event.ts'
import type { EventReader, StreamEvent } from '../../protocols/events/stream-event.ts'
import type { StreamMeter } from '../../protocols/events/stream-meter.ts'
import type { BodyClassifier } from './body-classifier.ts'
import type { ResponseClassifier, Classification } from './classification.ts'

/** Bytes within which the first event of a stream has to be complete. */
const MAX_EVENT_BYTES = 256 * 1024

/** Classifies a stream: it must begin with a whole event that is not an error. Pings and comments do not count. */
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
    // An event of this size is not an error.
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
        return this.#reject('upstream_cut', 'the upstream ended the stream without a response')
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

/**
 * Classifies a stream that runs beside another one: its first content makes it good. Providers send the first event
 * before the model has begun.
 */
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

/** Classifies a stream or a whole body; its beginning shows which one it is. */
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
