import { randomBytes } from 'node:crypto'
import type { Clock } from '../clock.ts'

/** Authenticates capsules, which clients keep for the gateway. */
export interface CapsuleKey {
  /** 8 characters of base64url. Capsules of the key contain it. */
  readonly id: string
  /** 32 bytes, base64url. */
  readonly secret: string
  /** When the key starts to make new capsules, ms since 1970. */
  readonly from: number
}

const ID_BYTES = 6
const SECRET_BYTES = 32
const DAY_MS = 24 * 60 * 60 * 1000
const ROTATION_MS = 30 * DAY_MS
/** A key is created this long before its use, so that the other gateways know it by then. */
const LEAD_MS = DAY_MS
/** Capsules of a key are accepted for this long, from the start of its use. */
const LIFETIME_MS = 180 * DAY_MS

/** The keys of capsules, the same in all processes of all gateways of a cluster. Keys are only added: stores merge them in any order. */
export class CapsuleKeys {
  readonly #clock: Pick<Clock, 'wall'>
  readonly #first: CapsuleKey | null
  readonly #keys = new Map<string, CapsuleKey>()

  /** @param first the first key if no store has one; null = create it */
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
    // The clock may have been set back to before all keys.
    return byStart.find(({ from }) => from <= now) ?? byStart.at(-1) as CapsuleKey
  }

  /** The key of a capsule; null = unknown or expired. */
  find(id: string): CapsuleKey | null {
    this.#begin()
    const key = this.#keys.get(id)
    if (key === undefined) return null
    return this.#clock.wall() < key.from + LIFETIME_MS || key === this.newest ? key : null
  }

  add(keys: readonly CapsuleKey[]): void {
    for (const key of keys) if (!this.#keys.has(key.id)) this.#keys.set(key.id, key)
  }

  /** Creates the first key, or the next one when it is due. Only one process may call it at a time. */
  renew(): void {
    this.#begin()
    const now = this.#clock.wall()
    // A wrong clock may have created a key of a later time.
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
