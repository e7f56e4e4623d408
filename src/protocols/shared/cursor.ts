import { parseBounded } from '../../base/json-size.ts'
import { matchesName } from './json-text.ts'

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
// Up to here a loop beats the call into native code, which beats it by far after.
const LOOP_BYTES = 64
/** Bytes of a character that is escaped: `\u0065`. */
const ESCAPED_BYTES = 6
const NO_BYTES = Buffer.alloc(0)

/**
 * Walks JSON text where it lies: no tree, no strings, no copies. The caller asks
 * for the members and elements it knows and skips the others, each at about the
 * cost of looking at its bytes; a long string costs one native search.
 *
 * It reads well-formed JSON right, and on anything else stops: `broken` is set
 * and every further question is answered with no. It does not check that what it
 * skipped was well formed.
 */
export class JsonCursor {
  /** The text is cut or malformed as far as it was walked. */
  broken = false
  /** Bounds of the last key, without its quotes, escapes left as they are. */
  keyStart = 0
  keyEnd = 0
  /** Bounds of the last value skipped, or of the inside of the last string read. */
  valueStart = 0
  valueEnd = 0

  #buffer: Buffer
  #pos = 0
  #end = 0

  constructor(buffer: Buffer = NO_BYTES, start = 0, end = buffer.length) {
    this.#buffer = buffer
    this.#pos = start
    this.#end = end
  }

  /** Starts over on the bytes from `start` up to `end`. */
  reset(buffer: Buffer, start: number, end: number): void {
    this.#buffer = buffer
    this.#pos = start
    this.#end = end
    this.broken = false
  }

  /** Keeps the bytes no longer in memory. */
  release(): void {
    this.reset(NO_BYTES, 0, 0)
  }

  /** Enters an object, if one comes next. */
  beginObject(): boolean {
    return this.#begin(OPEN_BRACE)
  }

  /** Enters an array, if one comes next. */
  beginArray(): boolean {
    return this.#begin(OPEN_BRACKET)
  }

  /** Moves to the next member's value; its key is in keyStart and keyEnd. No at the end, which is passed. */
  nextMember(): boolean {
    if (!this.#more(CLOSE_BRACE)) return false
    if (this.#peek() !== QUOTE || !this.string()) return this.#fail()
    this.keyStart = this.valueStart
    this.keyEnd = this.valueEnd
    if (this.#peek() !== COLON) return this.#fail()
    this.#pos++
    return true
  }

  /** Moves to the next element of an array. No at the end, which is passed. */
  nextElement(): boolean {
    return this.#more(CLOSE_BRACKET)
  }

  /** Is the last key this one, however it is written? */
  keyIs(name: Uint8Array): boolean {
    const length = this.keyEnd - this.keyStart
    if (length < name.length + ESCAPED_BYTES - 1) return bytesEqual(this.#buffer, this.keyStart, this.keyEnd, name)
    return length <= name.length * ESCAPED_BYTES && matchesName(this.#buffer, this.keyStart, this.keyEnd, name)
  }

  /** Has the text ended, or been found broken: is nothing left to read? */
  atEnd(): boolean {
    return this.#peek() === -1
  }

  /** Does the next value start like an object, an array, a string? */
  isObject(): boolean {
    return this.#peek() === OPEN_BRACE
  }

  isArray(): boolean {
    return this.#peek() === OPEN_BRACKET
  }

  isString(): boolean {
    return this.#peek() === QUOTE
  }

  /** Reads a string: its inside is in valueStart and valueEnd. */
  string(): boolean {
    if (this.#peek() !== QUOTE) return false
    this.valueStart = this.#pos + 1
    this.valueEnd = closingQuote(this.#buffer, this.valueStart, this.#end)
    if (this.valueEnd === -1) {
      this.valueEnd = this.#end
      return this.#fail()
    }
    this.#pos = this.valueEnd + 1
    return true
  }

  /** Skips any value: its text, quotes included, is in valueStart and valueEnd. */
  skip(): boolean {
    const first = this.#peek()
    const start = this.#pos
    if (first === QUOTE) {
      if (!this.string()) return false
    } else if (first === OPEN_BRACE || first === OPEN_BRACKET) {
      if (!this.#skipNested()) return this.#fail()
    } else {
      this.#pos = literalEnd(this.#buffer, start, this.#end)
      if (this.#pos === start) return this.#fail()
    }
    this.valueStart = start
    this.valueEnd = this.#pos
    return true
  }

  /** The last value skipped, parsed; NaN, which no reader believes, when it is not JSON after all. */
  parsed(): unknown {
    return parseJson(this.#buffer, this.valueStart, this.valueEnd)
  }

  #begin(bracket: number): boolean {
    if (this.#peek() !== bracket) return false
    this.#pos++
    return true
  }

  /** Past the comma, if any, to the next member or element; past the closing bracket at the end. */
  #more(close: number): boolean {
    let byte = this.#peek()
    if (byte === COMMA) {
      this.#pos++
      byte = this.#peek()
    }
    if (byte === -1) return this.#fail()
    if (byte !== close) return true
    this.#pos++
    return false
  }

  #skipNested(): boolean {
    const buffer = this.#buffer
    const end = this.#end
    let depth = 0
    let pos = this.#pos
    while (pos < end) {
      const byte = buffer[pos++]
      if (byte === QUOTE) {
        pos = closingQuote(buffer, pos, end) + 1
        if (pos === 0) return false
      } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
        depth++
      } else if ((byte === CLOSE_BRACE || byte === CLOSE_BRACKET) && --depth === 0) {
        this.#pos = pos
        return true
      }
    }
    return false
  }

  /** The next byte that is not white space; -1 at the end, or once broken. */
  #peek(): number {
    if (this.broken) return -1
    while (this.#pos < this.#end) {
      const byte = this.#buffer[this.#pos] as number
      if (byte > 0x20) return byte
      this.#pos++
    }
    return -1
  }

  #fail(): false {
    this.broken = true
    return false
  }
}

/** Parses the bytes from `start` up to `end`; NaN when they are not JSON, or too large for `parseBounded`. */
export function parseJson(buffer: Buffer, start: number, end: number): unknown {
  try {
    return parseBounded(buffer.toString('utf8', start, end))
  } catch {
    return NaN
  }
}

/** Do the bytes from `start` up to `end` spell `text`? */
export function bytesEqual(buffer: Uint8Array, start: number, end: number, text: Uint8Array): boolean {
  if (end - start !== text.length) return false
  for (let i = 0; i < text.length; i++) {
    if (buffer[start + i] !== text[i]) return false
  }
  return true
}

/**
 * Where the JSON string whose inside starts at `start` ends.
 *
 * @returns the place of its closing quote, -1 when there is none before `end`
 */
export function closingQuote(buffer: Uint8Array, start: number, end: number): number {
  let pos = start
  for (;;) {
    const near = Math.min(pos + LOOP_BYTES, end)
    while (pos < near) {
      const byte = buffer[pos]
      if (byte === QUOTE) return pos
      pos += byte === BACKSLASH ? 2 : 1
    }
    if (pos >= end) return -1
    const quote = buffer.indexOf(QUOTE, pos)
    if (quote === -1 || quote >= end) return -1
    let slashes = 0
    while (quote - slashes > pos && buffer[quote - slashes - 1] === BACKSLASH) slashes++
    if (slashes % 2 === 0) return quote
    pos = quote + 1
  }
}

/** The end of a number, true, false or null. */
function literalEnd(buffer: Uint8Array, start: number, end: number): number {
  let pos = start
  while (pos < end) {
    const byte = buffer[pos] as number
    if (byte <= 0x20 || byte === COMMA || byte === COLON || byte === QUOTE) break
    if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET || byte === OPEN_BRACE || byte === OPEN_BRACKET) break
    pos++
  }
  return pos
}
