import {
  AFTER_ELEMENT, AFTER_MEMBER, CLOSE, COLON, END, ESCAPE, EXPECTED, FIRST_KEY, FIRST_VALUE, KEY_START, LITERAL_END, NEXT, NUMBER_END,
  SPACE, STRING, VALUE, WRONG, valueType,
} from './json-grammar.ts'
import type { JsonType } from './json-grammar.ts'
import type { JsonSize } from '../../base/json-size.ts'
import { endOfPlainText } from './json-text.ts'
import { Utf8Check } from './utf8.ts'
import { WatchedKeys } from './watched-keys.ts'

/** Bounds of a member of the root object, as byte offsets in the whole text; `end` is exclusive. */
export interface Field {
  /** Offset of the key's opening quote. */
  readonly keyStart: number
  /** Offset of the value's first byte, such as the opening quote of a string or the brace of an object. */
  readonly start: number
  readonly end: number
  readonly type: JsonType
}

export interface ValidJson {
  readonly ok: true
  readonly root: JsonType
  readonly length: number
  /**
   * The watched members by decoded key, in the order of the text. For a duplicate key, at most `MAX_DUPLICATES` + 1 fields are recorded.
   */
  readonly fields: ReadonlyMap<string, readonly Field[]>
  /** The content of the root object, from the byte after `{` to the `}`; null = the root is not an object. */
  readonly members: { readonly open: number; readonly close: number; readonly empty: boolean } | null
  readonly size: JsonSize
}

export interface InvalidJson {
  readonly ok: false
  /** Offset of the first wrong byte; the length of the text if the text ends too early. */
  readonly offset: number
  /** Counted from 1. Lines end at LF, and a column is a byte of the line. */
  readonly line: number
  readonly column: number
  readonly message: string
  /** true if the error at `offset` is a level of nesting above the limit. */
  readonly isTooDeep: boolean
}

/** Default limit of nesting. JSON.parse has no limit. */
const MAX_DEPTH = 10_000
/** Maximum number of recorded duplicates of a key. Clients do not repeat a key more often, and each field costs memory and an edit. */
export const MAX_DUPLICATES = 100

const QUOTE = 0x22
const BACKSLASH = 0x5c
const LF = 0x0a
const BLANK = 0x20
const NO_BYTES = Buffer.alloc(0)

/**
 * Validates a JSON text (RFC 8259, UTF-8 without byte order mark) while the text arrives in chunks with any boundaries, and records the
 * watched members. Accepts the same texts as JSON.parse, up to a limit of nesting. Values are counted but not created, so memory use does
 * not grow.
 */
export class JsonScan {
  readonly #utf8 = new Utf8Check()
  readonly #keys: WatchedKeys
  #failure: InvalidJson | null = null

  #state = VALUE
  /** Offset in the text of the next chunk's first byte. */
  #offset = 0
  #line = 1
  #lineStart = 0
  /** For each open container, the state after a value in the container. */
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
  /** Offset in the text of the opening quote of the root object's last key. */
  #keyStart = 0
  /** The bytes of the last key from earlier chunks, without the opening quote. */
  #keyPart = NO_BYTES
  /** The watched member whose value is expected next, or is being read; null = none. */
  #name: string | null = null
  #valueStart = 0
  #valueType: JsonType = 'null'

  /** @param keys names of the members to record; compile a `WatchedKeys` once to scan many texts */
  constructor(keys: WatchedKeys | readonly string[], maxDepth = MAX_DEPTH) {
    this.#maxDepth = maxDepth
    this.#keys = keys instanceof WatchedKeys ? keys : new WatchedKeys(keys)
  }

  /** @returns false = the text is invalid; later chunks are ignored */
  push(chunk: Buffer): boolean {
    if (this.#failure !== null) return false
    const illFormed = this.#utf8.push(chunk)
    // Report a grammar error first if it is before the ill-formed bytes, or at their first byte.
    this.#read(chunk, illFormed === -1 ? chunk.length : Math.max(illFormed - this.#offset + 1, 0))
    if (illFormed !== -1) this.#fail(illFormed, 'well-formed UTF-8')
    this.#offset += chunk.length
    return this.#failure === null
  }

  /** Ends the text. Must be called once, after the last chunk. */
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

  /** Reads the chunk up to `to`, exclusive. */
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
          // Fast path: most escapes are two bytes in the same chunk.
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
          // The byte does not belong to the number: handle it again in the next state.
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

  /** Keeps the bytes of the key before chunk[to]. One byte more than the longest name is enough. */
  #holdKey(chunk: Buffer, to: number): void {
    const from = Math.max(this.#keyStart + 1 - this.#offset, 0)
    const room = this.#keys.longest + 1 - this.#keyPart.length
    this.#keyPart = Buffer.concat([this.#keyPart, chunk.subarray(from, Math.min(to, from + room))])
  }

  /** @returns the next state, after the string whose closing quote is chunk[quote] */
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

  /** @returns the next state, after the value that ends at `end`, exclusive */
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

  /** Enters the container whose bracket is at `offset`. @param state `FIRST_KEY` or `FIRST_VALUE` @returns false = one level too many */
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

  /** Records a failure. Only the first failure counts. */
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
