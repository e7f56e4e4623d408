import { randomBytes } from 'node:crypto'
import type { Clock } from './clock.ts'

/** Authenticates capsules, which clients keep for the gateway. */
export interface CapsuleKey {
  /** 8 characters of base64url: the capsules that the key has made name it. */
  readonly id: string
  /** 32 bytes, base64url. */
  readonly secret: string
  /** From then on new capsules are made with it; ms since 1970. */
  readonly from: number
}

const ID_BYTES = 6
const SECRET_BYTES = 32
const DAY_MS = 24 * 60 * 60 * 1000
/** A key makes capsules for so long. */
const ROTATION_MS = 30 * DAY_MS
/** The key that follows is made so long before it is used: until then the other gateways know it. */
const LEAD_MS = DAY_MS
/** Capsules of a key are accepted for so long from its first. */
const LIFETIME_MS = 180 * DAY_MS

/**
 * The keys of capsules that this process knows. Every process of a gateway, and every gateway of a cluster, knows the same
 * ones: keys only join, so that the stores merge them in any order.
 */
export class CapsuleKeys {
  readonly #clock: Pick<Clock, 'wall'>
  readonly #first: CapsuleKey | null
  readonly #keys = new Map<string, CapsuleKey>()

  /** @param first the key to begin with where no store has one; null = it is made */
  constructor(clock: Pick<Clock, 'wall'>, first: CapsuleKey | null = null) {
    this.#clock = clock
    this.#first = first
  }

  get all(): readonly CapsuleKey[] {
    return [...this.#keys.values()]
  }

  /** Makes new capsules. */
  get newest(): CapsuleKey {
    this.#begin()
    const now = this.#clock.wall()
    const byStart = this.all.toSorted((a, b) => b.from - a.from || (a.id < b.id ? -1 : 1))
    // The clock may have been set back to before all of them.
    return byStart.find(({ from }) => from <= now) ?? byStart.at(-1) as CapsuleKey
  }

  /** The key that has made a capsule; null = it is unknown, or its time is over. */
  find(id: string): CapsuleKey | null {
    this.#begin()
    const key = this.#keys.get(id)
    if (key === undefined) return null
    return this.#clock.wall() < key.from + LIFETIME_MS || key === this.newest ? key : null
  }

  add(keys: readonly CapsuleKey[]): void {
    for (const key of keys) if (!this.#keys.has(key.id)) this.#keys.set(key.id, key)
  }

  /** Makes the first key, or the next one if it is time. To be called by one process at a time. */
  renew(): void {
    this.#begin()
    const now = this.#clock.wall()
    // A key of a later time was made while the clock was wrong.
    const hasNext = this.all.some(({ from }) => from > now - ROTATION_MS + LEAD_MS && from <= now + LEAD_MS)
    if (!hasNext) this.add([createCapsuleKey(now + LEAD_MS)])
  }

  /** No store had a key. */
  #begin(): void {
    if (this.#keys.size === 0) this.add([this.#first ?? createCapsuleKey(this.#clock.wall())])
  }
}

/** @param from ms since 1970 */
export function createCapsuleKey(from: number): CapsuleKey {
  return { id: randomBytes(ID_BYTES).toString('base64url'), secret: randomBytes(SECRET_BYTES).toString('base64url'), from }
}
