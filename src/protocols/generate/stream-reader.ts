import { JsonArrayReader } from '../events/json-array.ts'
import { SseReader, type ReaderLimits } from '../events/sse.ts'
import type { EventReader, EventSink } from '../events/stream-event.ts'

const OPEN_BRACKET = 0x5b
const OPEN_BRACE = 0x7b
const SPACE = 0x20
/** Sent to the array reader before a single object, so that the object is read as an array with one element. */
const ARRAY_OF_ONE = Buffer.from('[')

/** Reads server-sent events, one JSON array, or a single object, which is one event. The first byte shows the format. */
export class GenerateReader implements EventReader {
  isSingleObject = false
  /** Until the format is known, both readers get the bytes, because white space is no event in either format. */
  #sse: SseReader | null
  #array: JsonArrayReader | null

  constructor(sink: EventSink, limits: ReaderLimits) {
    this.#sse = new SseReader(sink, limits)
    this.#array = new JsonArrayReader(sink, limits)
  }

  get offset(): number {
    return this.#reader.offset
  }

  get blockStart(): number {
    return this.#reader.blockStart
  }

  get atBoundary(): boolean {
    return this.#reader.atBoundary
  }

  /** true if no bracket of an array is open. */
  get closed(): boolean {
    return this.#sse !== null || this.#array === null || this.#array.closed
  }

  push(chunk: Buffer): void {
    if (this.#sse && this.#array) this.#detect(chunk)
    this.#sse?.push(chunk)
    this.#array?.push(chunk)
  }

  end(): void {
    this.#sse?.end()
    this.#array?.end()
  }

  get #reader(): EventReader {
    return this.#sse ?? (this.#array as JsonArrayReader)
  }

  #detect(chunk: Buffer): void {
    const first = chunk.find(byte => byte > SPACE)
    if (first === undefined) return
    if (first !== OPEN_BRACKET && first !== OPEN_BRACE) {
      this.#array = null
      return
    }
    this.#sse = null
    this.isSingleObject = first === OPEN_BRACE
    if (this.isSingleObject) this.#array?.push(ARRAY_OF_ONE)
  }
}
