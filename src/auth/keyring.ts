import { hash, timingSafeEqual } from 'node:crypto'
import type { Key } from '../config/types.ts'

/** A key as requests see it: its models compiled to one test. */
export interface Identity {
  /** null for a caller of an open gateway that presented no known key. */
  readonly key: Key | null
  /** May it use the model? */
  allows(model: string): boolean
  /** Limited to some models: then a request that names none is refused too. */
  readonly restricted: boolean
}

/** Turns a list of model globs into a test. */
type CompileGlobs = (globs: readonly string[]) => (model: string) => boolean

/** A key with its models compiled. */
export function identityOf(key: Key, compile: CompileGlobs): Identity {
  const allows = key.models === null ? () => true : compile(key.models)
  return { key, allows, restricted: key.models !== null }
}

export const ANONYMOUS: Identity = { key: null, allows: () => true, restricted: false }

/** A change of the keys that are kept outside of the configuration. */
interface Change {
  readonly added: Iterable<Key>
  readonly removed: Iterable<Key>
}

interface Entry {
  readonly digest: Buffer
  readonly identity: Identity
}

/**
 * All keys, found by digest. What is looked up is the SHA-256 of what was
 * presented, so the time that a look-up takes tells nothing of a key; the
 * digests are then compared in constant time all the same. Among ten thousand
 * keys it takes a microsecond or two longer than with one.
 *
 * The configuration's keys are there for good and win; the others come and go.
 */
export class Keyring {
  readonly #compile: CompileGlobs
  readonly #configured: ReadonlyMap<string, Entry>
  readonly #stored: Map<string, Entry>

  constructor(configured: readonly Key[], compile: CompileGlobs, stored: readonly Key[] = []) {
    this.#compile = compile
    this.#configured = new Map(configured.map(key => this.#entry(key)))
    this.#stored = new Map(stored.map(key => this.#entry(key)))
  }

  /** The identity behind what was presented, or null. */
  find(presented: string): Identity | null {
    const digest = hash('sha256', presented, 'buffer')
    const at = digest.toString('latin1')
    const entry = this.#configured.get(at) ?? this.#stored.get(at)
    return entry && timingSafeEqual(entry.digest, digest) ? entry.identity : null
  }

  /** Changes the stored keys, all at once: no look-up comes between. */
  update({ added, removed }: Change): void {
    // Ready first, so that a list that cannot be compiled changes nothing.
    const entries = Array.from(added, key => this.#entry(key))
    for (const { digest } of removed) this.#stored.delete(digest.toString('latin1'))
    for (const [at, entry] of entries) this.#stored.set(at, entry)
  }

  #entry(key: Key): [string, Entry] {
    return [key.digest.toString('latin1'), { digest: key.digest, identity: identityOf(key, this.#compile) }]
  }
}
