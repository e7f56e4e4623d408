import type { Target } from '../../config/types.ts'
import type { Exchange } from '../../context/exchange.ts'
import type { Gateway } from '../../gateway/gateway.ts'
import type { RefusalReason } from '../../protocols/refusal.ts'
import type { Deadlines } from '../../proxy/deadlines.ts'
import { afterFailure } from '../../proxy/retry.ts'
import { isAccident } from '../../routing/transient-failure.ts'
import { candidateId } from '../../routing/candidate.ts'
import { Course } from '../../routing/candidate-state.ts'
import type { Moment, Step } from '../../routing/candidate-state.ts'
import type { Condition } from '../../routing/health.ts'
import { hasSpoken } from '../settle/ledger-row.ts'
import { NOWHERE, elsewhere } from './candidates.ts'
import type { Failure } from './candidate-attempt.ts'
import { askedFor } from './upstream-errors.ts'

/** Where an exchange goes from each candidate that failed it. */
export class Itinerary {
  /** Where refusals of the request itself go, as far as no such target was asked yet. */
  readonly elsewhere: Map<RefusalReason, Target>
  readonly #gateway: Gateway
  readonly #exchange: Exchange
  readonly #deadlines: Deadlines
  readonly #course: Course

  /** @param order the candidates, in the order in which they are to be tried; at least one */
  constructor(gateway: Gateway, exchange: Exchange, order: readonly Target[], deadlines: Deadlines) {
    const { route } = exchange
    this.#gateway = gateway
    this.#exchange = exchange
    this.#deadlines = deadlines
    const isIll = (target: Target) => this.#condition(target).circuit !== 'closed'
    this.#course = new Course(order, route?.retries ?? 0, isIll)
    this.elsewhere = route ? elsewhere(route) : NOWHERE
  }

  get current(): Target {
    return this.#course.current
  }

  /** However the attempt at the current candidate ends, no other follows. */
  get isLast(): boolean {
    return this.#course.attemptsLeft === 0 && this.elsewhere.size === 0
  }

  /**
   * The attempt at the current candidate failed, and the client has seen nothing of an answer.
   *
   * @returns null = nowhere
   */
  next({ error, status, headers, said, reason }: Failure): Step | null {
    if (reason !== null && this.elsewhere.has(reason)) {
      const target = this.elsewhere.get(reason) as Target
      this.elsewhere.delete(reason)
      return this.#course.redirect(target)
    }
    const retryAfterMs = askedFor(headers, said, this.#gateway.clock.wall())
    const { consecutiveFailures } = this.#condition(this.#course.current)
    const soon = isAccident(status, retryAfterMs, consecutiveFailures)
    return this.#course.next({ ...afterFailure(error, status), soon, retryAfterMs }, this.#moment)
  }

  /**
   * The current candidate broke the client's stream, or failed to go on with it.
   *
   * @returns who is to go on with it; null = nobody can
   */
  nextToGoOn({ error, status, headers, said }: Failure): Step | null {
    const retryAfterMs = askedFor(headers, said, this.#gateway.clock.wall())
    const { retryable, again } = afterFailure(error, status)
    // Whatever keeps one from going on, another may.
    const setback = { retryable: true, again: retryable && again, soon: false, retryAfterMs }
    // Of what has said nothing yet, anybody can be asked anew.
    const suits = ({ prefill }: Target): boolean => prefill || !hasSpoken(this.#exchange)
    return this.#course.next(setback, this.#moment, suits)
  }

  #condition(target: Target): Condition {
    return this.#gateway.health.condition(candidateId(target, this.#exchange.model))
  }

  get #moment(): Moment {
    return { now: this.#gateway.clock.monotonic(), timeLeft: this.#deadlines.left, random: Math.random() }
  }
}
