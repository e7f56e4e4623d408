import { MemoryReservation, type ReserveMemory } from '../../base/memory-reservation.ts'
import { GrowingBytes } from './growing-bytes.ts'
import { StreamEvent, type EventReader, type EventSink } from './stream-event.ts'

/** The line ends that the last event of a stream lacks. Clients drop an event that no blank line ends. */
export function missingLineEnds(event: Buffer): Buffer {
  const lineEnd = event.includes('\r\n') ? '\r\n' : event.includes('\r') ? '\r' : '\n'
  const ends = lineEnd + lineEnd
  const tail = event.toString('latin1', Math.max(0, event.length - ends.length))
  let has = ends.length
  while (!tail.endsWith(ends.slice(0, has))) has--
  return Buffer.from(ends.slice(has))
}

/** Limits of an event that a reader has not completely received. */
export interface ReaderLimits {
  /** Maximum bytes of the event. */
  readonly maxEvent?: number | undefined
  /** Reserves memory for the event; absent = the memory is not limited. */
  readonly reserveMemory?: ReserveMemory | undefined
}

/** Default maximum bytes of an event that a reader keeps. */
export const MAX_EVENT = 16 * 1024 * 1024

const LF = 0x0a
const CR = 0x0d
const COLON = 0x3a
const SPACE = 0x20
const DATA = Buffer.from('data')
const EVENT = Buffer.from('event')
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf])
const LINE_FEED = Buffer.from('\n')
const NO_BYTES = Buffer.alloc(0)

/**
 * Reads Server-Sent Events from chunks with any boundaries (HTML standard, "Interpreting an event stream"). Blocks without a data line are
 * not events. An event that the end of the stream cuts off is reported with `terminated` false. An event inside one chunk is reported
 * without a copy. For other events the reader keeps the bytes so far; an event over the limits is `oversize`.
 */
export class SseReader implements EventReader {
  readonly #sink: EventSink
  readonly #maxEvent: number
  readonly #memory: MemoryReservation
  readonly #event = new StreamEvent()

  // Offsets that are kept between chunks count from the start of the stream.
  /** Offset of the next chunk's first byte. */
  #offset = 0
  #blockStart = 0
  #lineStart = 0
  /** Number of bytes so far of a byte order mark at the beginning of the stream; -1 = the beginning has been read. */
  #markBytes = 0
  /** true if the last byte was a CR. A following LF belongs to the same line end. */
  #afterCR = false
  /** true if the CR ended the block. A following LF belongs to that block. */
  #ended = false

  /** The bytes of the incomplete block from `blockStart` on, if the block began in an earlier chunk. */
  readonly #buffered = new GrowingBytes()
  #isBuffering = false
  #oversize = false
  #dataLines = 0
  #dataStart = 0
  #dataEnd = 0
  #nameStart = 0
  #nameEnd = 0
  /** The lines of the data, joined, if the data has more than one line. */
  readonly #joined = new GrowingBytes()

  /** @param sink called synchronously by `push` and `end` */
  constructor(sink: EventSink, options: ReaderLimits = {}) {
    this.#sink = sink
    this.#maxEvent = options.maxEvent ?? MAX_EVENT
    this.#memory = new MemoryReservation(options.reserveMemory)
  }

  get offset(): number {
    return this.#markBytes > 0 ? this.#markBytes : this.#offset
  }

  get blockStart(): number {
    return this.#blockStart
  }

  get atBoundary(): boolean {
    return this.#blockStart === this.offset
  }

  push(received: Buffer): void {
    const chunk = this.#markBytes === -1 ? received : this.#withoutMark(received)
    const length = chunk.length
    if (length === 0) return
    const base = this.#offset
    this.#offset = base + length
    let at = this.#afterCR ? this.#resume(chunk, base) : 0

    // Index of the next LF and the next CR; `length` = this chunk has no more of them.
    let lf = -1
    let cr = -1
    while (at < length) {
      if (lf < at && (lf = chunk.indexOf(LF, at)) === -1) lf = length
      if (cr < at && (cr = chunk.indexOf(CR, at)) === -1) cr = length
      const lineEnd = lf < cr ? lf : cr
      if (lineEnd === length) break
      let next = lineEnd + 1
      if (lineEnd === cr) {
        if (next === length) this.#afterCR = true
        else if (chunk[next] === LF) next++
      }
      if (this.#isBuffering) this.#buffer(chunk, at, next)
      const blank = base + lineEnd === this.#lineStart
      if (blank && this.#afterCR) {
        this.#ended = true
      } else if (blank) {
        if (this.#isBuffering) this.#endBlock(this.#buffered.bytes, this.#blockStart, base + next, true)
        else this.#endBlock(chunk, base, base + next, true)
      } else if (this.#isBuffering) {
        this.#readLine(this.#buffered.bytes, this.#blockStart, base + lineEnd)
      } else {
        this.#readLine(chunk, base, base + lineEnd)
      }
      this.#lineStart = base + next
      at = next
    }

    if (this.#isBuffering) {
      this.#buffer(chunk, at, length)
    } else if (this.#blockStart < base + length) {
      this.#isBuffering = true
      this.#buffer(chunk, this.#blockStart - base, length)
    }
  }

  /** Removes a byte order mark from the beginning of the stream. The mark may arrive in several chunks. */
  #withoutMark(chunk: Buffer): Buffer {
    let i = 0
    while (i < chunk.length && chunk[i] === BYTE_ORDER_MARK[this.#markBytes]) {
      i++
      if (++this.#markBytes < BYTE_ORDER_MARK.length) continue
      this.#markBytes = -1
      this.#offset = this.#blockStart = this.#lineStart = BYTE_ORDER_MARK.length
      this.#nameStart = this.#nameEnd = BYTE_ORDER_MARK.length
      return chunk.subarray(i)
    }
    if (i === chunk.length) return NO_BYTES
    const earlier = BYTE_ORDER_MARK.subarray(0, this.#markBytes - i)
    this.#markBytes = -1
    this.push(earlier)
    return chunk
  }

  end(): void {
    if (this.#ended) this.#endBlock(this.#buffered.bytes, this.#blockStart, this.#offset, true)
    if (this.#blockStart === this.#offset) return
    if (this.#lineStart < this.#offset) this.#readLine(this.#buffered.bytes, this.#blockStart, this.#offset)
    this.#endBlock(this.#buffered.bytes, this.#blockStart, this.#offset, false)
  }

  /** Continues after a CR at the end of the previous chunk. @returns the index in this chunk at which to continue */
  #resume(chunk: Buffer, base: number): number {
    this.#afterCR = false
    const at = chunk[0] === LF ? 1 : 0
    this.#lineStart += at
    if (this.#isBuffering) this.#buffer(chunk, 0, at)
    if (this.#ended) this.#endBlock(this.#buffered.bytes, this.#blockStart, base + at, true)
    return at
  }

  #buffer(chunk: Buffer, from: number, to: number): void {
    if (this.#oversize) return
    const length = this.#buffered.length + to - from
    if (length > this.#maxEvent || !this.#memory.resize(length + this.#joined.length)) this.#drop()
    else this.#buffered.append(chunk, from, to)
  }

  #drop(): void {
    this.#oversize = true
    this.#forget()
  }

  #forget(): void {
    this.#buffered.clear()
    this.#joined.clear()
    this.#memory.resize(0)
  }

  /** Reads the line from `lineStart` up to `end`, exclusive. `buf` begins at the stream's offset `base`. */
  #readLine(buf: Buffer, base: number, end: number): void {
    if (end - this.#blockStart > this.#maxEvent) this.#drop()
    if (this.#oversize) return
    const from = this.#lineStart - base
    const to = end - base
    const isData = buf[from] === DATA[0]
    const value = valueOf(buf, from, to, isData ? DATA : EVENT)
    if (value === -1) return
    if (!isData) {
      this.#nameStart = base + value
      this.#nameEnd = end
    } else if (++this.#dataLines > 1) {
      this.#join(buf, base, value, to)
    } else {
      this.#dataStart = base + value
      this.#dataEnd = end
    }
  }

  #join(buf: Buffer, base: number, from: number, to: number): void {
    if (this.#dataLines === 2) this.#joined.append(buf, this.#dataStart - base, this.#dataEnd - base)
    this.#joined.append(LINE_FEED, 0, 1)
    this.#joined.append(buf, from, to)
  }

  /** Ends the block at `end`, exclusive. `buf` begins at the stream's offset `base`, and contains the whole block. */
  #endBlock(buf: Buffer, base: number, end: number, terminated: boolean): void {
    const event = this.#event
    const lines = this.#dataLines
    event.start = this.#blockStart
    event.end = end
    event.terminated = terminated
    event.oversize = this.#oversize || end - event.start > this.#maxEvent
    if (event.oversize) {
      event.buf = NO_BYTES
      event.dataStart = event.dataEnd = event.nameStart = event.nameEnd = 0
    } else if (lines === 1) {
      event.buf = buf
      event.dataStart = this.#dataStart - base
      event.dataEnd = this.#dataEnd - base
      event.nameStart = this.#nameStart - base
      event.nameEnd = this.#nameEnd - base
    } else if (lines > 1) {
      event.dataStart = 0
      event.dataEnd = event.nameStart = this.#joined.length
      this.#joined.append(buf, this.#nameStart - base, this.#nameEnd - base)
      event.nameEnd = this.#joined.length
      event.buf = this.#joined.bytes
    }

    this.#blockStart = this.#lineStart = end
    this.#nameStart = this.#nameEnd = end
    this.#ended = this.#isBuffering = this.#oversize = false
    this.#dataLines = 0
    if (this.#buffered.length > 0 || this.#joined.length > 0) this.#forget()
    if (event.oversize || lines > 0) {
      this.#sink.event(event)
      event.clear()
    }
  }
}

/** The index of the value of the line in [from, to), after the colon and one space; -1 = the line's field is not `name`. */
function valueOf(buf: Buffer, from: number, to: number, name: Buffer): number {
  const end = from + name.length
  if (end > to || (end < to && buf[end] !== COLON)) return -1
  for (let i = 0; i < name.length; i++) {
    if (buf[from + i] !== name[i]) return -1
  }
  if (end === to) return to
  return end + 1 < to && buf[end + 1] === SPACE ? end + 2 : end + 1
}
