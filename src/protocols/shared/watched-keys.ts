import { matchesName } from './json-text.ts'

/**
 * Object keys to look out for, compiled once and shared by any number of scans:
 * finds the name of a key from its bytes as they stand in a JSON text, without
 * making a string of every key that comes by.
 */
export class WatchedKeys {
  /** Raw bytes of a key longer than this cannot be one of the names. */
  readonly longest: number
  readonly #names: readonly string[]
  readonly #bytes: readonly Buffer[]
  readonly #anyCase: readonly string[]

  /** @param anyCase those of the names, in lower case and ASCII, that are found in any case */
  constructor(names: readonly string[], anyCase: readonly string[] = []) {
    this.#names = [...new Set(names)]
    this.#bytes = this.#names.map(name => Buffer.from(name))
    this.#anyCase = anyCase
    // A UTF-16 unit takes six bytes as \uXXXX and at most three as UTF-8.
    this.longest = 6 * Math.max(0, ...this.#names.map(name => name.length))
  }

  /**
   * The watched name that the key in [from, to), without its quotes, stands
   * for, or null. `escaped` says that a backslash occurs in it; it must be well
   * formed.
   */
  find(key: Buffer, from: number, to: number, escaped: boolean): string | null {
    const length = to - from
    if (length > this.longest) return null
    if (escaped) return this.#findEscaped(key, from, to)
    for (let n = 0; n < this.#bytes.length; n++) {
      const bytes = this.#bytes[n]!
      if (bytes.length !== length) continue
      let i = 0
      while (i < length && bytes[i] === key[from + i]) i++
      if (i === length) return this.#names[n]!
    }
    // As a string only what may be one.
    if (!this.#anyCase.some(name => name.length === length)) return null
    return this.#inOtherCase(key.toString('latin1', from, to))
  }

  #findEscaped(key: Buffer, from: number, to: number): string | null {
    for (let n = 0; n < this.#bytes.length; n++) {
      const name = this.#names[n]!
      if (matchesName(key, from, to, this.#bytes[n]!, this.#anyCase.includes(name))) return name
    }
    return null
  }

  #inOtherCase(key: string): string | null {
    const lower = key.toLowerCase()
    return this.#anyCase.find(name => name === lower) ?? null
  }
}
