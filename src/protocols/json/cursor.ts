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
const BLANK = 0x20
// Up to this number of bytes a loop is faster than a native call. For more bytes, the native call is much faster.
const LOOP_BYTES = 64
/** Number of bytes of an escaped character, such as `\u0065`. */
const ESCAPED_BYTES = 6
const NO_BYTES = Buffer.alloc(0)

/**
 * Walks JSON text in place, without a tree, strings or copies: the caller reads the members that it knows, and skips the others. At
 * malformed JSON the cursor stops: `broken` is true, and all methods return false. Skipped text is not validated.
 */
export class JsonCursor {
  broken = false
  /** Bounds of the last key, between its quotes. Escapes are not decoded. */
  keyStart = 0
  keyEnd = 0
  /** Bounds of the last skipped value, or of the last string without its quotes. */
  valueStart = 0
  valueEnd = 0

  #buffer: Buffer
  /** Offset of the next byte to read, which is not white space. */
  #pos: number
  #end: number

  constructor(buffer: Buffer = NO_BYTES, start = 0, end = buffer.length) {
    this.#buffer = buffer
    this.#pos = buffer[start]! <= BLANK ? blanksEnd(buffer, start, end) : start
    this.#end = end
  }

  reset(buffer: Buffer, start: number, end: number): void {
    this.#buffer = buffer
    this.#pos = buffer[start]! <= BLANK ? blanksEnd(buffer, start, end) : start
    this.#end = end
    this.broken = false
  }

  release(): void {
    this.reset(NO_BYTES, 0, 0)
  }

  /** Enters the object at the cursor; false = the value at the cursor is not an object. */
  beginObject(): boolean {
    return this.#buffer[this.#pos] === OPEN_BRACE && this.#pos < this.#end && this.#goTo(this.#pos + 1)
  }

  beginArray(): boolean {
    return this.#buffer[this.#pos] === OPEN_BRACKET && this.#pos < this.#end && this.#goTo(this.#pos + 1)
  }

  /**
   * Moves to the value of the next member; `keyStart` and `keyEnd` are the bounds of its key. false = the object has no more members; the
   * cursor is behind it.
   */
  nextMember(): boolean {
    const buffer = this.#buffer
    const end = this.#end
    let pos = this.#pos
    if (buffer[pos] === COMMA && buffer[++pos]! <= BLANK) pos = blanksEnd(buffer, pos, end)
    if (pos >= end) return this.#fail()
    if (buffer[pos] === CLOSE_BRACE) {
      this.#goTo(pos + 1)
      return false
    }
    const close = buffer[pos] === QUOTE ? closingQuote(buffer, pos + 1, end) : -1
    if (close === -1) return this.#fail()
    this.keyStart = pos + 1
    this.keyEnd = close
    pos = close + 1
    if (buffer[pos]! <= BLANK) pos = blanksEnd(buffer, pos, end)
    if (pos >= end || buffer[pos] !== COLON) return this.#fail()
    if (buffer[++pos]! <= BLANK) pos = blanksEnd(buffer, pos, end)
    this.#pos = pos
    return true
  }

  /** Moves to the next element of an array. false = the array has no more elements; the cursor is behind it. */
  nextElement(): boolean {
    const buffer = this.#buffer
    const end = this.#end
    let pos = this.#pos
    if (buffer[pos] === COMMA && buffer[++pos]! <= BLANK) pos = blanksEnd(buffer, pos, end)
    if (pos >= end) return this.#fail()
    const isElement = buffer[pos] !== CLOSE_BRACKET
    if (isElement) this.#pos = pos
    else this.#goTo(pos + 1)
    return isElement
  }

  /** Tells whether the last key equals `name`. The key may contain escapes. */
  keyIs(name: Uint8Array): boolean {
    const length = this.keyEnd - this.keyStart
    if (length === name.length && bytesEqual(this.#buffer, this.keyStart, this.keyEnd, name)) return true
    if (length < name.length + ESCAPED_BYTES - 1) return false
    return length <= name.length * ESCAPED_BYTES && matchesName(this.#buffer, this.keyStart, this.keyEnd, name)
  }

  /** true if the end of the text is reached, or the text is malformed. */
  atEnd(): boolean {
    return this.#pos >= this.#end
  }

  isObject(): boolean {
    return this.#buffer[this.#pos] === OPEN_BRACE && this.#pos < this.#end
  }

  isArray(): boolean {
    return this.#buffer[this.#pos] === OPEN_BRACKET && this.#pos < this.#end
  }

  isString(): boolean {
    return this.#buffer[this.#pos] === QUOTE && this.#pos < this.#end
  }

  /** Reads the string at the cursor; `valueStart` and `valueEnd` are the bounds between the quotes. */
  string(): boolean {
    if (this.#buffer[this.#pos] !== QUOTE || this.#pos >= this.#end) return false
    this.valueStart = this.#pos + 1
    this.valueEnd = closingQuote(this.#buffer, this.valueStart, this.#end)
    if (this.valueEnd !== -1) return this.#goTo(this.valueEnd + 1)
    this.valueEnd = this.#end
    return this.#fail()
  }

  /** Skips the value at the cursor; `valueStart` and `valueEnd` are its bounds, with quotes if it is a string. */
  skip(): boolean {
    const buffer = this.#buffer
    const start = this.#pos
    if (start >= this.#end) return this.#fail()
    const first = buffer[start]
    const end = first === QUOTE ? closingQuote(buffer, start + 1, this.#end) + 1
      : first === OPEN_BRACE || first === OPEN_BRACKET ? nestedEnd(buffer, start, this.#end)
        : literalEnd(buffer, start, this.#end)
    if (end <= start) return this.#fail()
    this.valueStart = start
    this.valueEnd = end
    this.#pos = buffer[end]! <= BLANK ? blanksEnd(buffer, end, this.#end) : end
    return true
  }

  /** Parses the last skipped value; NaN = not JSON. No reader of values accepts NaN. */
  parsed(): unknown {
    return parseJsonRange(this.#buffer, this.valueStart, this.valueEnd)
  }

  #goTo(pos: number): true {
    this.#pos = this.#buffer[pos]! <= BLANK ? blanksEnd(this.#buffer, pos, this.#end) : pos
    return true
  }

  #fail(): false {
    this.broken = true
    this.#pos = this.#end
    return false
  }
}

function blanksEnd(buffer: Uint8Array, start: number, end: number): number {
  let pos = start
  while (pos < end && buffer[pos]! <= BLANK) pos++
  return pos
}

/** The end of the object or array that begins at `start`; 0 = its end is not before `end`. */
function nestedEnd(buffer: Uint8Array, start: number, end: number): number {
  let depth = 0
  let pos = start
  while (pos < end) {
    const byte = buffer[pos++]
    if (byte === QUOTE) {
      pos = closingQuote(buffer, pos, end) + 1
      if (pos === 0) return 0
    } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      depth++
    } else if ((byte === CLOSE_BRACE || byte === CLOSE_BRACKET) && --depth === 0) {
      return pos
    }
  }
  return 0
}

/** Parses the bytes from `start` to `end`, exclusive; NaN = not JSON, or too large for `parseBounded`. */
export function parseJsonRange(buffer: Buffer, start: number, end: number): unknown {
  try {
    return parseBounded(buffer.toString('utf8', start, end))
  } catch {
    return NaN
  }
}

export function bytesEqual(buffer: Uint8Array, start: number, end: number, text: Uint8Array): boolean {
  if (end - start !== text.length) return false
  for (let i = 0; i < text.length; i++) {
    if (buffer[start + i] !== text[i]) return false
  }
  return true
}

/** The index of the closing quote of the JSON string whose content begins at `start`; -1 = no closing quote before `end`. */
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
