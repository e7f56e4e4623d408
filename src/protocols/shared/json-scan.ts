import {
  VALUE, FIRST_VALUE, FIRST_KEY, KEY, COLON, SEPARATOR, END, STRING, ESCAPE, HEX, LITERAL, NUMBER, MINUS,
  MAX_DEPTH, TOO_DEEP, WRONG,
  expectation, isEscapable, isHexDigit, isWholeNumber, numberState, valueType
} from './json-grammar.ts'
import { JsonMembers } from './json-members.ts'
import type { Field, JsonType } from './json-members.ts'
import { endOfPlainText } from './json-text.ts'
import { Utf8Check } from './utf8.ts'
import { WatchedKeys } from './watched-keys.ts'

export type { Field, JsonType }

export interface ValidJson {
  readonly ok: true
  readonly root: JsonType
  /** Bytes of the whole text. */
  readonly length: number
  /**
   * The watched members that occur, under the name that their key decodes to;
   * more than one field when a key is given twice, in the text's order.
   */
  readonly fields: ReadonlyMap<string, readonly Field[]>
  /** The root object's inside, from the byte after `{` to the `}`; null when the root is none. */
  readonly members: { readonly open: number; readonly close: number; readonly empty: boolean } | null
}

export interface InvalidJson {
  readonly ok: false
  /** Of the byte that is wrong, or the text's length when it ends too early. */
  readonly offset: number
  /** From 1; lines end at LF, and a column is a byte of its line. */
  readonly line: number
  readonly column: number
  /** For the client: what was expected, and where. */
  readonly message: string
}

/**
 * Reads one JSON text (RFC 8259, in UTF-8 without a byte order mark) as it
 * arrives, cut anywhere. It accepts what JSON.parse accepts of the decoded text,
 * as far as MAX_DEPTH, and notes where the values of the watched keys of the
 * root object stand; it builds nothing else, so that a step costs no more than a
 * walk over its chunk and memory does not grow with the text.
 */
export class JsonScan {
  readonly #utf8 = new Utf8Check()
  readonly #members: JsonMembers
  #failure: InvalidJson | null = null

  #state = VALUE
  /** Absolute offset of the next chunk's first byte. */
  #offset = 0
  #line = 1
  #lineStart = 0
  /** One byte for each open container: 1 is an object, 0 an array. */
  #stack = new Uint8Array(32)
  #depth = 0
  #inObject = false
  #hexDigits = 0
  #literal = ''
  #literalAt = 0

  #root: JsonType = 'null'
  #open = 0
  #close = 0

  /** The string being read is a key. */
  #isKey = false
  /** A backslash occurs in it. */
  #escaped = false

  /** @param keys Names of the members to record; to be compiled once where many texts are read. */
  constructor(keys: WatchedKeys | readonly string[]) {
    this.#members = new JsonMembers(keys instanceof WatchedKeys ? keys : new WatchedKeys(keys))
  }

  /** Reads the next chunk. False once the text is known to be wrong; what follows is not looked at. */
  push(chunk: Buffer): boolean {
    if (this.#failure !== null) return false
    const illFormed = this.#utf8.push(chunk)
    if (illFormed === -1) {
      this.#read(chunk, chunk.length)
    } else {
      // An error of the grammar counts first if it lies before, or on the same byte.
      this.#read(chunk, Math.max(illFormed - this.#offset + 1, 0))
      if (this.#failure === null) this.#fail(illFormed, 'expected well-formed UTF-8')
    }
    this.#offset += chunk.length
    return this.#failure === null
  }

  /** Ends the text and says what it is. To be called once, after the last chunk. */
  end(): ValidJson | InvalidJson {
    if (this.#failure === null) {
      const cut = this.#utf8.end()
      if (cut !== -1) this.#fail(cut, 'expected well-formed UTF-8')
      else if (isWholeNumber(this.#state)) this.#state = this.#finish(this.#offset)
      if (this.#state !== END && this.#failure === null) {
        this.#fail(this.#offset, `${this.#expected(this.#state)}, but the text ends`)
      }
    }
    if (this.#failure !== null) return this.#failure
    const inside = { open: this.#open, close: this.#close, empty: this.#members.count === 0 }
    return {
      ok: true,
      root: this.#root,
      length: this.#offset,
      fields: this.#members.fields,
      members: this.#root === 'object' ? inside : null
    }
  }

  #read(chunk: Buffer, to: number): void {
    const view = new DataView(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    const base = this.#offset
    let state = this.#state
    let i = 0
    while (i < to) {
      if (state === STRING) {
        i = endOfPlainText(chunk, view, i, to)
        if (i === to) break
        const byte = chunk[i]!
        if (byte === 0x22) {
          state = this.#endString(chunk, i + 1)
        } else if (byte === 0x5c) {
          this.#escaped = true
          // Most escapes are two bytes in one chunk: stay in the string.
          if (i + 1 < to && isEscapable(chunk[i + 1]!)) i++
          else state = ESCAPE
        } else {
          const code = byte.toString(16).padStart(4, '0')
          return this.#fail(base + i, `expected \\u${code} instead of the bare control character`)
        }
        i++
        continue
      }
      const byte = chunk[i]!
      if (state <= END && (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09)) {
        i++
        if (byte === 0x0a) {
          this.#line++
          this.#lineStart = base + i
          while (i < to && chunk[i] === 0x20) i++
        }
        continue
      }
      const next = state >= MINUS ? numberState(state, byte) : this.#step(state, byte, base + i)
      if (next >= 0) {
        state = next
        i++
      } else if (isWholeNumber(state)) {
        state = this.#finish(base + i)
      } else {
        return this.#fail(base + i, this.#expected(state, next))
      }
    }
    this.#state = state
    const inString = state >= STRING && state <= HEX
    if (inString && this.#isKey && this.#atMember()) this.#members.holdKey(chunk, base, to)
  }

  /** The state after `byte`, outside of plain string text, white space and numbers; below 0 is an error. */
  #step(state: number, byte: number, offset: number): number {
    switch (state) {
      case VALUE:
      case FIRST_VALUE:
        return byte === 0x5d && state === FIRST_VALUE ? this.#unnest(offset) : this.#begin(byte, offset)
      case FIRST_KEY:
      case KEY:
        if (byte === 0x7d && state === FIRST_KEY) return this.#unnest(offset)
        if (byte !== 0x22) return WRONG
        this.#isKey = true
        this.#escaped = false
        if (this.#atMember()) this.#members.beginKey(offset)
        return STRING
      case COLON:
        return byte === 0x3a ? VALUE : WRONG
      case SEPARATOR:
        if (byte === 0x2c) return this.#inObject ? KEY : VALUE
        return byte === (this.#inObject ? 0x7d : 0x5d) ? this.#unnest(offset) : WRONG
      case ESCAPE:
        this.#hexDigits = 0
        if (byte === 0x75) return HEX
        return isEscapable(byte) ? STRING : WRONG
      case HEX:
        if (!isHexDigit(byte)) return WRONG
        return ++this.#hexDigits === 4 ? STRING : HEX
      case LITERAL:
        if (byte !== this.#literal.charCodeAt(this.#literalAt)) return WRONG
        return ++this.#literalAt === this.#literal.length ? this.#finish(offset + 1) : LITERAL
      default:
        return WRONG
    }
  }

  /** The state after `byte` at `offset` as the first of a value. */
  #begin(byte: number, offset: number): number {
    const type = valueType(byte)
    if (type === null) return WRONG
    if (this.#depth === 0) this.#root = type
    else if (this.#atMember()) this.#members.beginValue(offset, type)
    switch (type) {
      case 'string':
        this.#isKey = false
        return STRING
      case 'number':
        return numberState(NUMBER, byte)
      case 'object':
      case 'array':
        return this.#nest(type === 'object', offset)
      default:
        this.#literal = type
        this.#literalAt = 1
        return LITERAL
    }
  }

  /** A value has ended before `end`. Returns the next state. */
  #finish(end: number): number {
    if (this.#depth === 0) return END
    if (this.#atMember()) this.#members.endValue(end)
    return SEPARATOR
  }

  /** Enters the container whose opening bracket is at `offset`. Returns the next state. */
  #nest(isObject: boolean, offset: number): number {
    if (this.#depth === MAX_DEPTH) return TOO_DEEP
    if (this.#depth === 0) this.#open = offset + 1
    if (this.#depth === this.#stack.length) {
      const stack = new Uint8Array(this.#depth * 2)
      stack.set(this.#stack)
      this.#stack = stack
    }
    this.#stack[this.#depth++] = isObject ? 1 : 0
    this.#inObject = isObject
    return isObject ? FIRST_KEY : FIRST_VALUE
  }

  /** Leaves the container whose closing bracket is at `offset`. Returns the next state. */
  #unnest(offset: number): number {
    this.#depth--
    if (this.#depth === 0) this.#close = offset
    else this.#inObject = this.#stack[this.#depth - 1] === 1
    return this.#finish(offset + 1)
  }

  /** A string has ended with the quote chunk[end - 1]. Returns the next state. */
  #endString(chunk: Buffer, end: number): number {
    if (!this.#isKey) return this.#finish(this.#offset + end)
    if (this.#atMember()) this.#members.endKey(chunk, this.#offset, end, this.#escaped)
    return COLON
  }

  /** Directly inside the root object. */
  #atMember(): boolean {
    return this.#depth === 1 && this.#root === 'object'
  }

  #expected(state: number, error = WRONG): string {
    if (error === TOO_DEEP) return `expected no more than ${MAX_DEPTH} levels of nesting`
    return `expected ${expectation(state, this.#inObject, this.#literal)}`
  }

  #fail(offset: number, message: string): void {
    const column = offset - this.#lineStart + 1
    this.#failure = {
      ok: false,
      offset,
      line: this.#line,
      column,
      message: `${message} at line ${this.#line}, column ${column}`
    }
  }
}

/** Scans a JSON text that is at hand as a whole, in one step: see JsonScan. */
export function scanJson(text: Buffer, keys: WatchedKeys | readonly string[]): ValidJson | InvalidJson {
  const scan = new JsonScan(keys)
  scan.push(text)
  return scan.end()
}
