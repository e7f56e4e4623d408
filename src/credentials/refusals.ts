import type { Clock } from '../base/clock.ts'
import type { Authorization } from './credential.ts'

/** Milliseconds in which an authorization is not sent again for what it was refused for. */
const REMEMBERED_FOR = 30_000
/** Refusals of one authorization that are remembered: clients choose the names of models. */
const MAX_REMEMBERED = 1_000

/** What an authorization is for: the endpoint, the model, and the client's key if it may have caused a refusal. */
export type RefusedFor = readonly (string | null)[]

/**
 * The authorizations that an upstream refused a short while ago. A new one, after a change of the file or of the
 * configuration, is another object.
 */
export class Refusals {
  readonly #clock: Pick<Clock, 'monotonic'>
  /** For what each was refused, and until when that is remembered, on the monotonic clock; the oldest first. */
  readonly #refused = new WeakMap<Authorization, Map<string, number>>()

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock
  }

  has(authorization: Authorization, subject: RefusedFor): boolean {
    const until = this.#refused.get(authorization)?.get(JSON.stringify(subject))
    return until !== undefined && this.#clock.monotonic() < until
  }

  /** @returns false = it was remembered before */
  add(authorization: Authorization, subject: RefusedFor): boolean {
    if (this.has(authorization, subject)) return false
    const name = JSON.stringify(subject)
    const subjects = this.#refused.get(authorization) ?? new Map<string, number>()
    this.#refused.set(authorization, subjects)
    subjects.delete(name)
    const [oldest] = subjects.keys()
    if (subjects.size >= MAX_REMEMBERED && oldest !== undefined) subjects.delete(oldest)
    subjects.set(name, this.#clock.monotonic() + REMEMBERED_FOR)
    return true
  }
}
