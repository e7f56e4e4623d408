import type { WatchedKeys } from './watched-keys.ts'

export type JsonType = 'string' | 'number' | 'object' | 'array' | 'true' | 'false' | 'null'

/** Where a member of the root object stands. Offsets are bytes of the whole text, `end` exclusive. */
export interface Field {
  /** The key's opening quote. */
  readonly keyStart: number
  /** The value's first byte: a string's opening quote, an object's brace. */
  readonly start: number
  readonly end: number
  readonly type: JsonType
}

const NO_BYTES = Buffer.alloc(0)
/** A key that is given more often is no honest writer's, and each time costs memory and an edit. */
export const MAX_DUPLICATES = 100

/**
 * Follows the members of one object through a text that comes in chunks, and
 * records those with a watched key. `base` is the absolute offset of a chunk's
 * first byte; other offsets are absolute unless they index the chunk.
 */
export class JsonMembers {
  /**
   * By the name that the key decodes to; several when a key is given twice, in the text's order,
   * and one more than `MOST_TIMES` when it is given more often than that.
   */
  readonly fields = new Map<string, Field[]>()
  #count = 0
  readonly #keys: WatchedKeys
  #keyStart = 0
  /** What earlier chunks held of the key being read, quote included. */
  #keyPart = NO_BYTES
  /** The watched member whose value comes or is being read. */
  #name: string | null = null
  #start = 0
  #type: JsonType = 'null'

  constructor(keys: WatchedKeys) {
    this.#keys = keys
  }

  /** How many members there are, watched or not. */
  get count(): number {
    return this.#count
  }

  beginKey(offset: number): void {
    this.#keyStart = offset
    this.#count++
  }

  /** Keeps what `chunk` has of the unfinished key before chunk[to], up to what tells that it is too long. */
  holdKey(chunk: Buffer, base: number, to: number): void {
    const most = this.#keys.longest + 3
    if (this.#keyPart.length >= most) return
    const from = Math.max(this.#keyStart - base, 0)
    const part = chunk.subarray(from, Math.min(to, from + most - this.#keyPart.length))
    this.#keyPart = Buffer.concat([this.#keyPart, part])
  }

  /** The key's closing quote is chunk[end - 1]. `escaped`: a backslash occurs in the key. */
  endKey(chunk: Buffer, base: number, end: number, escaped: boolean): void {
    const start = this.#keyStart - base
    if (start >= 0) {
      this.#name = this.#keys.find(chunk, start + 1, end - 1, escaped)
    } else {
      this.holdKey(chunk, base, end)
      this.#name = this.#keys.find(this.#keyPart, 1, this.#keyPart.length - 1, escaped)
      this.#keyPart = NO_BYTES
    }
  }

  beginValue(offset: number, type: JsonType): void {
    this.#start = offset
    this.#type = type
  }

  /** The value ends before `end`. */
  endValue(end: number): void {
    if (this.#name === null) return
    const field = { keyStart: this.#keyStart, start: this.#start, end, type: this.#type }
    const fields = this.fields.get(this.#name)
    if (fields === undefined) this.fields.set(this.#name, [field])
    else if (fields.length <= MAX_DUPLICATES) fields.push(field)
    this.#name = null
  }
}
