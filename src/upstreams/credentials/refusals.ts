import type { Clock } from '../../base/clock.ts'
import type { Authorization } from './credential.ts'

const REMEMBERED_FOR_MS = 30_000
/** Maximum refusals for each authorization. Limited, because clients choose the names of models. */
const MAX_REMEMBERED = 1_000

/** For which use an authorization was refused: endpoint, model, and the client's key if the client may have caused the refusal. */
export type RefusedFor = readonly (string | null)[]

/** The recent refusals of an upstream, by authorization object. A changed file or configuration creates a new object without refusals. */
export class Refusals {
  readonly #clock: Pick<Clock, 'monotonic'>
  /** Until when the refusal of each use is remembered, ms on the monotonic clock; oldest first. */
  readonly #refused = new WeakMap<Authorization, Map<string, number>>()

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock
  }

  has(authorization: Authorization, subject: RefusedFor): boolean {
    const until = this.#refused.get(authorization)?.get(JSON.stringify(subject))
    return until !== undefined && this.#clock.monotonic() < until
  }

  /** @returns false = the refusal was remembered already */
  add(authorization: Authorization, subject: RefusedFor): boolean {
    if (this.has(authorization, subject)) return false
    const name = JSON.stringify(subject)
    const subjects = this.#refused.get(authorization) ?? new Map<string, number>()
    this.#refused.set(authorization, subjects)
    subjects.delete(name)
    const [oldest] = subjects.keys()
    if (subjects.size >= MAX_REMEMBERED && oldest !== undefined) subjects.delete(oldest)
    subjects.set(name, this.#clock.monotonic() + REMEMBERED_FOR_MS)
    return true
  }
}
