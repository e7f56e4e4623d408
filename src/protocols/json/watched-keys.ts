import { matchesName } from './json-text.ts'

const BACKSLASH = 0x5c
const UNDERSCORE = 0x5f
const HYPHEN = 0x2d

interface WatchedName {
  readonly text: string
  readonly bytes: Buffer
  readonly first: number | undefined
  readonly anyCase: boolean
}

/** The object keys that a scan searches for. Compile the keys once for any number of scans. */
export class WatchedKeys {
  /** Maximum bytes of a key that can match, including escapes. */
  readonly longest: number
  readonly #names: readonly WatchedName[]
  /** The loose names by their hashes. */
  readonly #loose: ReadonlyMap<number | null, readonly string[]>

  /**
   * @param anyCase the entries of `names` that match keys in any case; each is in lower case and ASCII
   * @param loose more names, in lower case and without separators; they match keys in any case, with `_` and `-` anywhere
   */
  constructor(names: readonly string[], anyCase: readonly string[] = [], loose: readonly string[] = []) {
    this.#loose = Map.groupBy(loose, name => looseHash(Buffer.from(name), 0, name.length))
    this.#names = [...new Set(names)].map(text => {
      const bytes = Buffer.from(text)
      return { text, bytes, first: bytes[0], anyCase: anyCase.includes(text) }
    })
    // A UTF-16 unit takes six bytes as \uXXXX. A separator may surround each letter of a loose name.
    this.longest = 6 * Math.max(0, ...names.map(name => name.length), ...loose.map(name => 2 * name.length))
  }

  /**
   * The name that matches the key in [from, to), without quotes; null = none. Creates no strings, because a body can have millions of keys.
   */
  find(key: Buffer, from: number, to: number): string | null {
    const length = to - from
    if (length > this.longest) return null
    const first = length === 0 ? undefined : key[from]
    for (let n = 0; n < this.#names.length; n++) {
      const name = this.#names[n]!
      if (first !== name.first && first !== BACKSLASH && !name.anyCase) continue
      if (matchesName(key, from, to, name.bytes, name.anyCase)) return name.text
    }
    return this.#loose.size === 0 ? null : this.#findLoose(key, from, to)
  }

  #findLoose(key: Buffer, from: number, to: number): string | null {
    const hash = looseHash(key, from, to)
    const candidates = hash === null ? [...this.#loose.values()].flat() : this.#loose.get(hash)
    if (candidates === undefined) return null
    // The key is parsed alone, because V8 can misread escaped keys inside objects (nodejs/node#63785).
    const name = loosely(JSON.parse(`"${key.toString('utf8', from, to)}"`) as string)
    return candidates.find(candidate => candidate === name) ?? null
  }
}

/** A hash that ignores case and separators; null = the key has an escape, or a byte outside ASCII that may stand for a letter of a name. */
function looseHash(key: Buffer, from: number, to: number): number | null {
  let hash = 0
  for (let at = from; at < to; at++) {
    const byte = key[at]!
    // For example `\u006e`, or the Kelvin sign: its lower case is `k`.
    if (byte === BACKSLASH || byte >= 0x80) return null
    if (byte === UNDERSCORE || byte === HYPHEN) continue
    hash = Math.imul(hash, 31) + (byte >= 0x41 && byte <= 0x5a ? byte | 0x20 : byte) | 0
  }
  return hash
}

/** The name in lower case, without separators. */
export function loosely(name: string): string {
  return name.toUpperCase().toLowerCase().replace(/[_-]/g, '')
}
