import { randomBytes } from 'node:crypto'
import type { Clock } from '../clock.ts'

/** A key that authenticates capsules. Clients keep the capsules for the gateway. */
export interface CapsuleKey {
  /** Id of 8 characters of base64url. Each capsule contains the id of its key. */
  readonly id: string
  /** Secret of 32 bytes, in base64url. */
  readonly secret: string
  /** Time from which new capsules use the key, in ms since 1970. */
  readonly from: number
}

const ID_BYTES = 6
const SECRET_BYTES = 32
const DAY_MS = 24 * 60 * 60 * 1000
const ROTATION_MS = 30 * DAY_MS
/** A key is created this many ms before its first use, so that all gateways know it in time. */
const LEAD_MS = DAY_MS
/** Capsules of a key are accepted for this many ms after the key's first use. */
const LIFETIME_MS = 180 * DAY_MS

/**
 * The keys of capsules. All processes of all gateways of a cluster have the same keys. Keys are only added, so stores can merge them in any
 * order.
 */
export class CapsuleKeys {
  readonly #clock: Pick<Clock, 'wall'>
  readonly #first: CapsuleKey | null
  readonly #keys = new Map<string, CapsuleKey>()

  /** @param first used as the first key if no store has a key; null = a new key is created */
  constructor(clock: Pick<Clock, 'wall'>, first: CapsuleKey | null = null) {
    this.#clock = clock
    this.#first = first
  }

  get all(): readonly CapsuleKey[] {
    return [...this.#keys.values()]
  }

  get newest(): CapsuleKey {
    this.#begin()
    const now = this.#clock.wall()
    const byStart = this.all.toSorted((a, b) => b.from - a.from || (a.id < b.id ? -1 : 1))
    // If the clock was set back to before all keys, use the first key.
    return byStart.find(({ from }) => from <= now) ?? byStart.at(-1) as CapsuleKey
  }

  /** Finds the key of a capsule; null = the key is unknown or expired. */
  find(id: string): CapsuleKey | null {
    this.#begin()
    const key = this.#keys.get(id)
    if (key === undefined) return null
    return this.#clock.wall() < key.from + LIFETIME_MS || key === this.newest ? key : null
  }

  add(keys: readonly CapsuleKey[]): void {
    for (const key of keys) if (!this.#keys.has(key.id)) this.#keys.set(key.id, key)
  }

  /** Creates the first key, or the next key when it is due. Only one process may call this at a time. */
  renew(): void {
    this.#begin()
    const now = this.#clock.wall()
    // Ignore keys of a later time: a wrong clock may have created them.
    const hasNext = this.all.some(({ from }) => from > now - ROTATION_MS + LEAD_MS && from <= now + LEAD_MS)
    if (!hasNext) this.add([createCapsuleKey(now + LEAD_MS)])
  }

  #begin(): void {
    if (this.#keys.size === 0) this.add([this.#first ?? createCapsuleKey(this.#clock.wall())])
  }
}

/** @param from ms since 1970 */
export function createCapsuleKey(from: number): CapsuleKey {
  return { id: randomBytes(ID_BYTES).toString('base64url'), secret: randomBytes(SECRET_BYTES).toString('base64url'), from }
}
