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

/**
 * All keys, found by digest. What is looked up is the SHA-256 of what was
 * presented, so the time that a look-up takes tells nothing of a key; the
 * digests are then compared in constant time all the same. Ten thousand keys
 * cost as much as one.
 */
export class Keyring {
  readonly #byDigest = new Map<string, { digest: Buffer; identity: Identity }>()

  constructor(keys: readonly Key[], compile: CompileGlobs) {
    for (const key of keys) {
      this.#byDigest.set(key.digest.toString('latin1'), { digest: key.digest, identity: identityOf(key, compile) })
    }
  }

  /** The identity behind what was presented, or null. */
  find(presented: string): Identity | null {
    const digest = hash('sha256', presented, 'buffer')
    const entry = this.#byDigest.get(digest.toString('latin1'))
    return entry && timingSafeEqual(entry.digest, digest) ? entry.identity : null
  }
}
