import {
  AFTER_ELEMENT, AFTER_MEMBER, CLOSE, COLON, END, ESCAPE, EXPECTED, FIRST_KEY, FIRST_VALUE, KEY_START,
  LITERAL_END, NEXT, NUMBER_END, SPACE, STRING, VALUE, WRONG, valueType,
} from './json-grammar.ts'
import type { JsonType } from './json-grammar.ts'
import type { JsonSize } from '../../base/json-size.ts'
import { endOfPlainText } from './json-text.ts'
import { Utf8Check } from './utf8.ts'
import { WatchedKeys } from './watched-keys.ts'

/** Place of a member of the root object, in bytes of the whole text; `end` is exclusive. */
export interface Field {
  /** The key's opening quote. */
  readonly keyStart: number
  /** The value's first byte: a string's opening quote, an object's brace. */
  readonly start: number
  readonly end: number
  readonly type: JsonType
}

export interface ValidJson {
  readonly ok: true
  readonly root: JsonType
  readonly length: number
  /** The watched members by decoded key, in the order of the text. A duplicate key has at most MAX_DUPLICATES + 1 fields. */
  readonly fields: ReadonlyMap<string, readonly Field[]>
  /** The inside of the root object, from the byte after `{` to the `}`; null = the root is not an object. */
  readonly members: { readonly open: number; readonly close: number; readonly empty: boolean } | null
  readonly size: JsonSize
}

export interface InvalidJson {
  readonly ok: false
  /** Offset of the first wrong byte, or the length of a text that ends too early. */
  readonly offset: number
  /** From 1; lines end at LF, and a column is a byte of its line. */
  readonly line: number
  readonly column: number
  readonly message: string
  /** At `offset` begins one level of nesting too many. */
  readonly isTooDeep: boolean
}

/** Default limit of nesting; JSON.parse has none. */
const MAX_DEPTH = 10_000
/** No real client repeats a key more often, and each field costs memory and an edit. */
export const MAX_DUPLICATES = 100

const QUOTE = 0x22
const BACKSLASH = 0x5c
const LF = 0x0a
const BLANK = 0x20
const NO_BYTES = Buffer.alloc(0)

/**
 * Validates a JSON text (RFC 8259, UTF-8 without byte order mark) while it arrives, cut anywhere, and records its watched members.
 * It accepts the texts that JSON.parse accepts, up to a limit of nesting. It counts values and creates none, so memory does not grow.
 */
export class JsonScan {
  readonly #utf8 = new Utf8Check()
  readonly #keys: WatchedKeys
  #failure: InvalidJson | null = null

  #state = VALUE
  /** Absolute offset of the next chunk's first byte. */
  #offset = 0
  #line = 1
  #lineStart = 0
  /** For each open container, the state after a value in it. */
  #stack = new Uint8Array(32)
  #depth = 0
  readonly #maxDepth: number
  #containers = 0
  #members = 0
  #values = 0
  #isKey = false

  #root: JsonType = 'null'
  #open = 0
  #close = 0
  #empty = true
  readonly #fields = new Map<string, Field[]>()
  /** Absolute offset of the opening quote of the root object's last key. */
  #keyStart = 0
  /** The part of that key in earlier chunks, without its quotes. */
  #keyPart = NO_BYTES
  /** The watched member whose value is next or being read. */
  #name: string | null = null
  #valueStart = 0
  #valueType: JsonType = 'null'

  /** @param keys names of the members to record; compile them once for many texts */
  constructor(keys: WatchedKeys | readonly string[], maxDepth = MAX_DEPTH) {
    this.#maxDepth = maxDepth
    this.#keys = keys instanceof WatchedKeys ? keys : new WatchedKeys(keys)
  }

  /** @returns false = the text is invalid, and later chunks are ignored */
  push(chunk: Buffer): boolean {
    if (this.#failure !== null) return false
    const illFormed = this.#utf8.push(chunk)
    // A grammar error comes first if it is before the ill-formed bytes or at their first byte.
    this.#read(chunk, illFormed === -1 ? chunk.length : Math.max(illFormed - this.#offset + 1, 0))
    if (illFormed !== -1) this.#fail(illFormed, 'well-formed UTF-8')
    this.#offset += chunk.length
    return this.#failure === null
  }

  /** Call it once, after the last chunk. */
  end(): ValidJson | InvalidJson {
    const cut = this.#utf8.end()
    if (cut !== -1) this.#fail(cut, 'well-formed UTF-8')
    if (NEXT[this.#state << 8 | BLANK] === NUMBER_END) this.#state = this.#endValue(this.#offset)
    if (this.#state !== END) this.#fail(this.#offset, `${EXPECTED[this.#state]}, but the text ends`)
    if (this.#failure !== null) return this.#failure
    const members = this.#root === 'object' ? { open: this.#open, close: this.#close, empty: this.#empty } : null
    const size = { containers: this.#containers, members: this.#members, values: this.#values }
    return { ok: true, root: this.#root, length: this.#offset, fields: this.#fields, members, size }
  }

  /** Reads up to chunk[to]. */
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
        if (byte === QUOTE) {
          state = this.#endString(chunk, i)
        } else if (byte !== BACKSLASH) {
          const code = byte.toString(16).padStart(4, '0')
          return this.#fail(base + i, `\\u${code} instead of the bare control character`)
        } else if (i + 1 < to && NEXT[ESCAPE << 8 | chunk[i + 1]!] === STRING) {
          // Most escapes are two bytes in one chunk.
          i++
        } else {
          state = ESCAPE
        }
        i++
        continue
      }
      const byte = chunk[i]!
      const next = NEXT[state << 8 | byte]!
      switch (next) {
        case SPACE:
          if (byte === LF) {
            this.#line++
            this.#lineStart = base + i + 1
            while (i + 1 < to && chunk[i + 1] === BLANK) i++
          }
          break
        case KEY_START:
          this.#beginKey(base + i)
          state = STRING
          break
        case LITERAL_END:
          state = this.#endValue(base + i + 1)
          break
        case NUMBER_END:
          state = this.#endValue(base + i)
          // The byte is not part of the number.
          continue
        case CLOSE:
          if (--this.#depth === 0) this.#close = base + i
          state = this.#endValue(base + i + 1)
          break
        case WRONG:
          return this.#fail(base + i, EXPECTED[state]!)
        default:
          if (state <= FIRST_VALUE) {
            this.#beginValue(byte, base + i)
            if (next <= FIRST_KEY && !this.#enter(next, base + i)) return
          }
          state = next
      }
      i++
    }
    this.#state = state
    if (state >= STRING && state <= ESCAPE && this.#isKey && this.#depth === 1) this.#holdKey(chunk, to)
  }

  #beginKey(offset: number): void {
    this.#isKey = true
    this.#members++
    if (this.#depth > 1) return
    this.#keyStart = offset
    this.#empty = false
  }

  /** Keeps the part of the root object's key that is before chunk[to], up to one byte more than the longest name. */
  #holdKey(chunk: Buffer, to: number): void {
    const from = Math.max(this.#keyStart + 1 - this.#offset, 0)
    const room = this.#keys.longest + 1 - this.#keyPart.length
    this.#keyPart = Buffer.concat([this.#keyPart, chunk.subarray(from, Math.min(to, from + room))])
  }

  /** @returns the state after the string whose closing quote is chunk[quote] */
  #endString(chunk: Buffer, quote: number): number {
    if (!this.#isKey) return this.#endValue(this.#offset + quote + 1)
    if (this.#depth > 1) return COLON
    const start = this.#keyStart + 1 - this.#offset
    if (start > 0) {
      this.#name = this.#keys.find(chunk, start, quote)
    } else {
      this.#holdKey(chunk, quote)
      this.#name = this.#keys.find(this.#keyPart, 0, this.#keyPart.length)
      this.#keyPart = NO_BYTES
    }
    return COLON
  }

  #beginValue(byte: number, offset: number): void {
    this.#isKey = false
    this.#values++
    if (this.#depth === 0) {
      this.#root = valueType(byte)
    } else if (this.#depth === 1) {
      this.#valueStart = offset
      this.#valueType = valueType(byte)
    }
  }

  /** @returns the state after the value, which ends before `end` */
  #endValue(end: number): number {
    if (this.#depth === 0) return END
    if (this.#depth === 1 && this.#name !== null) {
      const field = { keyStart: this.#keyStart, start: this.#valueStart, end, type: this.#valueType }
      const fields = this.#fields.get(this.#name)
      if (fields === undefined) this.#fields.set(this.#name, [field])
      else if (fields.length <= MAX_DUPLICATES) fields.push(field)
      this.#name = null
    }
    return this.#stack[this.#depth - 1]!
  }

  /** Enters the container whose bracket is at `offset`; `state` is FIRST_KEY or FIRST_VALUE. false = one level too many. */
  #enter(state: number, offset: number): boolean {
    if (this.#depth === this.#maxDepth) {
      this.#fail(offset, `no more than ${this.#maxDepth} levels of nesting`, true)
      return false
    }
    this.#containers++
    if (this.#depth === 0) this.#open = offset + 1
    if (this.#depth === this.#stack.length) {
      const stack = new Uint8Array(this.#depth * 2)
      stack.set(this.#stack)
      this.#stack = stack
    }
    this.#stack[this.#depth++] = state === FIRST_KEY ? AFTER_MEMBER : AFTER_ELEMENT
    return true
  }

  /** Only the first failure counts. */
  #fail(offset: number, expected: string, isTooDeep = false): void {
    const line = this.#line
    const column = offset - this.#lineStart + 1
    const message = `expected ${expected} at line ${line}, column ${column}`
    this.#failure ??= { ok: false, offset, line, column, message, isTooDeep }
  }
}

export function scanJson(text: Buffer, keys: WatchedKeys | readonly string[]): ValidJson | InvalidJson {
  const scan = new JsonScan(keys)
  scan.push(text)
  return scan.end()
}
