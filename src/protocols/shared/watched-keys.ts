import { matchesName } from './json-text.ts'

const BACKSLASH = 0x5c

interface WatchedName {
  readonly text: string
  readonly bytes: Buffer
  /** The first of the bytes. */
  readonly first: number | undefined
  readonly anyCase: boolean
}

/** Object keys to look for, compiled once and shared by any number of scans. */
export class WatchedKeys {
  /** A key of more bytes, as written in a JSON text, cannot be one of the names. */
  readonly longest: number
  readonly #names: readonly WatchedName[]

  /** @param anyCase those of the names, in lower case and ASCII, that match in any case */
  constructor(names: readonly string[], anyCase: readonly string[] = []) {
    this.#names = [...new Set(names)].map(text => {
      const bytes = Buffer.from(text)
      return { text, bytes, first: bytes[0], anyCase: anyCase.includes(text) }
    })
    // A UTF-16 unit takes six bytes as \uXXXX and at most three as UTF-8.
    this.longest = 6 * Math.max(0, ...names.map(name => name.length))
  }

  /**
   * Finds the name of the key in [from, to), without its quotes. Creates no strings: a body can have millions
   * of keys.
   *
   * @returns null = the key is not watched
   */
  find(key: Buffer, from: number, to: number): string | null {
    const length = to - from
    if (length > this.longest) return null
    const first = length === 0 ? undefined : key[from]
    for (let n = 0; n < this.#names.length; n++) {
      const name = this.#names[n]!
      // Rules out most names without a call.
      if (first !== name.first && first !== BACKSLASH && !name.anyCase) continue
      if (matchesName(key, from, to, name.bytes, name.anyCase)) return name.text
    }
    return null
  }
}
