import { MemoryReservation } from '../../base/memory-reservation.ts'
import { GrowingBytes } from './growing-bytes.ts'
import { endOfPlainText } from '../json/json-text.ts'
import { MAX_EVENT, type ReaderLimits } from './sse.ts'
import { StreamEvent, type EventReader, type EventSink } from './stream-event.ts'

// States: which token is expected next between elements, or which token of an element is being read.
const OPENING = 0
const FIRST_ELEMENT = 1
const ELEMENT = 2
const SEPARATOR = 3
const CLOSED = 4
const MALFORMED = 5
const NESTED = 6
const STRING = 7
const ESCAPED = 8
const SCALAR = 9

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const NO_BYTES = Buffer.alloc(0)

/**
 * Reads one JSON array that arrives in chunks with any boundaries: the stream of the generate protocol without `alt=sse`. Reports each
 * complete element; an element inside one chunk is not copied. `start`, `end` and the data cover exactly the element. An element that is
 * longer than the limit, or for which no memory is free, is `oversize` and has no data. The grammar inside elements is not checked.
 */
export class JsonArrayReader implements EventReader {
  readonly #sink: EventSink
  readonly #maxEvent: number
  readonly #memory: MemoryReservation
  readonly #element = new StreamEvent()
  /** Always false: no other event can follow an array. */
  readonly atBoundary = false

  #state = OPENING
  #offset = 0
  #depth = 0
  #start = 0
  /** The bytes of the current element that arrived in earlier chunks. */
  readonly #buffered = new GrowingBytes()
  #oversize = false

  /** @param sink called synchronously by `push` and `end` */
  constructor(sink: EventSink, options: ReaderLimits = {}) {
    this.#sink = sink
    this.#maxEvent = options.maxEvent ?? MAX_EVENT
    this.#memory = new MemoryReservation(options.reserveMemory)
  }

  get offset(): number {
    return this.#offset
  }

  get blockStart(): number {
    return this.#state >= NESTED ? this.#start : this.#offset
  }

  /** true if the closing bracket has arrived, and after it only white space. */
  get closed(): boolean {
    return this.#state === CLOSED
  }

  /** true if the stream is not one JSON array. The reader reads nothing after the first wrong byte. */
  get malformed(): boolean {
    return this.#state === MALFORMED
  }

  push(chunk: Buffer): void {
    const base = this.#offset
    this.#offset = base + chunk.length
    if (this.#state === MALFORMED) return
    const view = new DataView(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    let i = 0
    while (i < chunk.length) {
      switch (this.#state) {
        case NESTED:
          i = this.#readNested(chunk, base, i)
          break
        case STRING:
          i = this.#readString(chunk, view, base, i)
          break
        case ESCAPED:
          this.#state = STRING
          i++
          break
        case SCALAR:
          i = this.#readScalar(chunk, base, i)
          break
        default:
          if (!isSpace(chunk[i]!)) this.#readBetween(chunk[i]!, base + i)
          if (this.#state === MALFORMED) return
          i++
      }
    }
    if (this.#state >= NESTED) this.#buffer(chunk, Math.max(this.#start - base, 0), chunk.length)
  }

  end(): void {
    if (this.#state >= NESTED) this.#report(this.#buffered.bytes, this.#start, this.#offset, false)
  }

  #readBetween(byte: number, offset: number): void {
    const state = this.#state
    if (state === OPENING) {
      this.#state = byte === OPEN_BRACKET ? FIRST_ELEMENT : MALFORMED
    } else if (byte === CLOSE_BRACKET) {
      this.#state = state === FIRST_ELEMENT || state === SEPARATOR ? CLOSED : MALFORMED
    } else if (state === SEPARATOR) {
      this.#state = byte === COMMA ? ELEMENT : MALFORMED
    } else if (state === CLOSED || byte === COMMA || byte === CLOSE_BRACE) {
      this.#state = MALFORMED
    } else {
      this.#start = offset
      this.#depth = byte === OPEN_BRACE || byte === OPEN_BRACKET ? 1 : 0
      this.#state = this.#depth === 1 ? NESTED : byte === QUOTE ? STRING : SCALAR
    }
  }

  // Each of these methods continues at `chunk[from]` in the current state, and returns the index at which it stopped.

  #readNested(chunk: Buffer, base: number, from: number): number {
    for (let i = from; i < chunk.length; i++) {
      const byte = chunk[i]!
      if (byte === QUOTE) {
        this.#state = STRING
        return i + 1
      }
      if (byte === OPEN_BRACE || byte === OPEN_BRACKET) this.#depth++
      if ((byte === CLOSE_BRACE || byte === CLOSE_BRACKET) && --this.#depth === 0) {
        this.#complete(chunk, base, i + 1)
        return i + 1
      }
    }
    return chunk.length
  }

  #readString(chunk: Buffer, view: DataView, base: number, from: number): number {
    const i = endOfPlainText(chunk, view, from, chunk.length)
    if (i === chunk.length) return i
    if (chunk[i] === BACKSLASH) {
      this.#state = ESCAPED
    } else if (chunk[i] === QUOTE) {
      if (this.#depth === 0) this.#complete(chunk, base, i + 1)
      else this.#state = NESTED
    }
    return i + 1
  }

  #readScalar(chunk: Buffer, base: number, from: number): number {
    for (let i = from; i < chunk.length; i++) {
      const byte = chunk[i]!
      if (byte !== COMMA && byte !== CLOSE_BRACKET && !isSpace(byte)) continue
      this.#complete(chunk, base, i)
      return i
    }
    return chunk.length
  }

  #complete(chunk: Buffer, base: number, end: number): void {
    this.#state = SEPARATOR
    if (this.#start >= base) return this.#report(chunk, base, base + end, true)
    this.#buffer(chunk, 0, end)
    this.#report(this.#buffered.bytes, this.#start, base + end, true)
  }

  #buffer(chunk: Buffer, from: number, to: number): void {
    if (this.#oversize) return
    const length = this.#buffered.length + to - from
    if (length > this.#maxEvent || !this.#memory.resize(length)) {
      this.#oversize = true
      this.#buffered.clear()
      this.#memory.resize(0)
    } else {
      this.#buffered.append(chunk, from, to)
    }
  }

  /** Reports the element that ends before `end`. `buf` begins at the stream's offset `base`, and contains the whole element. */
  #report(buf: Buffer, base: number, end: number, terminated: boolean): void {
    const element = this.#element
    element.start = this.#start
    element.end = end
    element.terminated = terminated
    element.oversize = this.#oversize || end - element.start > this.#maxEvent
    element.buf = element.oversize ? NO_BYTES : buf
    element.dataStart = element.oversize ? 0 : element.start - base
    element.dataEnd = element.oversize ? 0 : end - base
    this.#oversize = false
    this.#buffered.clear()
    this.#memory.resize(0)
    this.#sink.event(element)
    element.clear()
  }
}

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09
}
