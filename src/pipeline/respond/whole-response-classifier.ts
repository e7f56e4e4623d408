import { GatewayError } from '../../base/errors.ts'
import type { ReserveMemory } from '../../base/memory-reservation.ts'
import { isFormatUnknown, type Exchange } from '../exchange/exchange.ts'
import type { UpstreamAttempt } from '../exchange/upstream-attempt.ts'
import { createStreamMeter } from '../../protocols/endpoint/create-stream-meter.ts'
import { beginsJson } from '../../protocols/json/json-text.ts'
import { missingEndOf, type MissingEnd } from '../../protocols/endpoint/missing-end.ts'
import type { Endpoint, UsageFilter } from '../../protocols/endpoint/protocol.ts'
import { kindOf, type EventReader, type StreamEvent } from '../../protocols/events/stream-event.ts'
import type { StreamMeter } from '../../protocols/events/stream-meter.ts'
import { isEventStream, type ResponseHead } from '../../proxy/upstream/response-head.ts'
import { BodyClassifier } from './body-classifier.ts'
import { MAX_RESPONSE_BYTES, invalidEvent, responseTooLarge } from './classification.ts'
import type { ResponseClassifier, Classification, FramedStream } from './classification.ts'

const NOTHING = Buffer.alloc(0)

/** For a response that is held until it is complete: it is good if it ends properly. */
export class WholeResponseClassifier implements ResponseClassifier {
  readonly maxBytes = MAX_RESPONSE_BYTES
  readonly timeoutMs = null
  readonly anyByteCounts = true
  fault: GatewayError | null = null
  readonly #endpoint: Endpoint
  /** The client's body; null = not JSON. */
  readonly #request: Buffer | null
  readonly #meter: StreamMeter
  /** null = the response is a stream. */
  readonly #bodyClassifier: BodyClassifier | null
  /** true = the head does not show whether the response is a stream or a whole body. */
  readonly #isFormatUnknown: boolean
  #isMalformed = false
  /** true = a response with a malformed event is bad. */
  readonly #checksEvents: boolean
  readonly #reader: EventReader
  readonly #filter: UsageFilter | null

  /** @param reserveMemory for incomplete events, in addition to the memory for the response */
  constructor(exchange: Exchange, attempt: UpstreamAttempt, head: ResponseHead, reserveMemory: ReserveMemory) {
    const { classified, request: { body } } = exchange
    const endpoint = attempt.endpoint ?? classified.endpoint
    const isEvents = isEventStream(head)
    this.#endpoint = endpoint
    // Only for untranslated streams: the missing end of a translated stream is in another protocol than the client's body.
    this.#request = body?.json && attempt.translated === null ? body.bytes : null
    this.#meter = createStreamMeter(endpoint, { contentType: head.contentType, reserveMemory })
    this.#bodyClassifier = isEvents || endpoint.streamsByPath ? null : new BodyClassifier(head)
    this.#isFormatUnknown = isFormatUnknown(exchange, head)
    this.#checksEvents = isEvents && endpoint.respondsWithJson
    this.#reader = this.#meter.createReader(this)
    this.#filter = attempt.hidesUsage ? endpoint.usageOption?.createFilter(this.#reader) ?? null : null
  }

  get framed(): FramedStream | null {
    if (this.#bodyClassifier) return null
    return { meter: this.#meter, reader: this.#reader, filter: this.#filter }
  }

  push(chunk: Buffer): Classification {
    if (this.#bodyClassifier && !this.#isFormatUnknown) return 'open'
    this.#reader.push(chunk)
    return this.#isMalformed || this.#meter.sawError ? 'bad' : 'open'
  }

  event(event: StreamEvent): void {
    this.#meter.event(event)
    if (this.#checksEvents && event.terminated && kindOf(event) === 'malformed') {
      this.#isMalformed = true
      this.fault ??= invalidEvent(event.text)
    }
    this.#filter?.event(event)
  }

  decide(body: Buffer, whole: boolean): 'good' | 'bad' {
    const isStream = this.#bodyClassifier === null || (this.#isFormatUnknown && !beginsJson(body))
    // A body that is too long to be held is decided by its beginning, as on routes that do not hold whole responses.
    if (!isStream) return this.#classifyBody(this.#bodyClassifier as BodyClassifier, body, whole)
    if (!whole) {
      this.fault = responseTooLarge()
      return 'bad'
    }
    const isWhole = this.#meter.missingEnd !== null && this.#reader.atBoundary
    this.#reader.end()
    if (this.#meter.sawError) return 'bad'
    if (isWhole || this.#meter.terminated !== false) return 'good'
    this.fault = new GatewayError('upstream_cut', 'the upstream ended the stream before it was complete')
    return 'bad'
  }

  missingEnd(body: Buffer): MissingEnd | null {
    if (!this.#checksEvents || this.#isMalformed || this.#meter.sawError) return null
    if (this.#meter.terminated === true && !this.#endpoint.streams?.endsWithEach) {
      return { completeBytes: this.#reader.blockStart, suffix: NOTHING }
    }
    return this.#request && missingEndOf(this.#endpoint, this.#request, body)
  }

  #classifyBody(classifier: BodyClassifier, body: Buffer, whole: boolean): 'good' | 'bad' {
    const classification = classifier.decide(body, whole)
    this.fault = classifier.fault
    return classification
  }
}
