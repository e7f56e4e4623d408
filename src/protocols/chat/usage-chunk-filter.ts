import { JsonCursor } from '../json/cursor.ts'
import type { EventReader, StreamEvent } from '../events/stream-event.ts'

const CHOICES = Buffer.from('choices')
const USAGE = Buffer.from('usage')
const DATA = Buffer.from('data:')
const NO_BYTES = Buffer.alloc(0)
const COLON = 0x3a
const LF = 0x0a
const CR = 0x0d
/** Events longer than this are never held, because the usage chunk has only a few hundred bytes. */
const MAX_HELD_BYTES = 16 * 1024

/** Whether the client gets an event. `open`: the bytes so far do not decide. */
type Visibility = 'hidden' | 'shown' | 'open'

/**
 * Removes the usage chunk (the event with `choices: []` and a usage object) from the stream of a client that did not ask for usage. All
 * other bytes pass unchanged. An incomplete event is held only as long as it may be the usage chunk.
 */
export class UsageChunkFilter {
  readonly #reader: EventReader
  readonly #cursor = new JsonCursor()
  #held: Buffer = NO_BYTES
  /** Ranges of the stream to hide. */
  #hidden: { start: number; end: number }[] = []
  /** Start of the incomplete event that the client gets; -1 = none. */
  #shown = -1

  /** @param reader must read each chunk and pass the chunk's events to `event` before `take` gets the chunk */
  constructor(reader: EventReader) {
    this.#reader = reader
  }

  /** @returns true if the client gets the event */
  event({ buf, dataStart, dataEnd, start, end, oversize }: StreamEvent): boolean {
    if (oversize || end - start > MAX_HELD_BYTES || start === this.#shown) return true
    if (this.#visibility(buf, dataStart, dataEnd) !== 'hidden') return true
    this.#hidden.push({ start, end })
    return false
  }

  /** Takes the next bytes of the stream. @returns the bytes to send now, possibly none */
  take(chunk: Buffer): Buffer {
    const bytes = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk])
    const start = this.#reader.offset - bytes.length
    const keep = this.#keepFrom(bytes, start)
    this.#held = keep === bytes.length ? NO_BYTES : Buffer.from(bytes.subarray(keep))
    return this.withoutHidden(keep === bytes.length ? bytes : bytes.subarray(0, keep), start)
  }

  /** true if bytes of an incomplete event are held. The client then has only whole events. */
  get holding(): boolean {
    return this.#held.length > 0
  }

  /** Returns the bytes that are still held at the end of the stream. */
  rest(): Buffer {
    const bytes = this.#held
    this.#held = NO_BYTES
    return this.withoutHidden(bytes, this.#reader.offset - bytes.length)
  }

  /** Index of the first byte to hold. @param start offset of the bytes in the stream */
  #keepFrom(bytes: Buffer, start: number): number {
    const { blockStart, offset } = this.#reader
    if (blockStart === offset || blockStart === this.#shown) return bytes.length
    const open = afterComments(bytes, Math.max(0, blockStart - start))
    if (bytes.length - open <= MAX_HELD_BYTES && this.#mayBeHidden(bytes, open)) return open
    this.#shown = blockStart
    return bytes.length
  }

  #mayBeHidden(bytes: Buffer, open: number): boolean {
    const line = dataLine(bytes, open)
    // Fewer bytes than `data:` have arrived: hold the event.
    if (bytes.length - line < DATA.length) return true
    return this.#visibility(bytes, line + DATA.length, bytes.length) !== 'shown'
  }

  #visibility(bytes: Buffer, start: number, end: number): Visibility {
    const cursor = this.#cursor
    let empty = false
    let used = false
    cursor.reset(bytes, start, end)
    if (!cursor.beginObject()) return cursor.atEnd() ? 'open' : 'shown'
    while (cursor.nextMember()) {
      if (cursor.keyIs(CHOICES)) {
        if (cursor.atEnd()) return 'open'
        if (!cursor.beginArray() || cursor.nextElement()) return 'shown'
        empty = true
      } else {
        const isUsage = cursor.keyIs(USAGE)
        const isObject = cursor.isObject()
        if (isUsage && !isObject && !cursor.atEnd()) return 'shown'
        if (cursor.skip() && isUsage) used = true
      }
    }
    if (cursor.broken) return 'open'
    return empty && used ? 'hidden' : 'shown'
  }

  /** Removes the hidden events from the bytes. @param start offset of the bytes in the stream */
  withoutHidden(bytes: Buffer, start: number): Buffer {
    if (this.#hidden.length === 0) return bytes
    const pieces: Buffer[] = []
    let from = 0
    const later: { start: number; end: number }[] = []
    for (const hidden of this.#hidden) {
      if (hidden.start - start >= bytes.length) {
        later.push(hidden)
        continue
      }
      pieces.push(bytes.subarray(from, Math.max(from, hidden.start - start)))
      from = hidden.end - start
    }
    this.#hidden = later
    pieces.push(bytes.subarray(from))
    return Buffer.concat(pieces)
  }
}

/** Skips whole comment lines, because keep-alives must not be held. */
function afterComments(bytes: Buffer, from: number): number {
  let at = from
  while (bytes[at] === COLON) {
    const next = nextLine(bytes, at)
    if (next === -1) break
    at = next
  }
  return at
}

/** Finds the first data line, which may be incomplete. */
function dataLine(bytes: Buffer, from: number): number {
  const { length } = DATA
  let at = from
  while (bytes.length - at >= length && bytes.compare(DATA, 0, length, at, at + length) !== 0) {
    const next = nextLine(bytes, at)
    if (next === -1) return bytes.length
    at = next
  }
  return at
}

/** The start of the next line; -1 = the line is incomplete, or ends with a CR that may be half of a CRLF. */
function nextLine(bytes: Buffer, from: number): number {
  for (let i = from; i < bytes.length; i++) {
    if (bytes[i] === LF) return i + 1
    if (bytes[i] === CR && i + 1 < bytes.length) return bytes[i + 1] === LF ? i + 2 : i + 1
  }
  return -1
}
