import { JsonArrayReader } from '../events/json-array.ts'
import { SseReader } from '../events/sse.ts'
import type { ReaderLimits } from '../events/sse.ts'
import type { EventReader, EventSink } from '../events/stream-event.ts'

const OPEN_BRACKET = 0x5b
const OPEN_BRACE = 0x7b
const SPACE = 0x20
/** Put before a single object, so that it is read as an array of one. */
const ARRAY_OF_ONE = Buffer.from('[')

/**
 * Reads a stream of the generate protocol: server-sent events or one JSON array; the first byte shows which. A single
 * object is not a stream, and is one event.
 */
export class GenerateReader implements EventReader {
  isSingleObject = false
  /** Both read until the format is known: white space is not an event in either. */
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

  /** No bracket is open. */
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
