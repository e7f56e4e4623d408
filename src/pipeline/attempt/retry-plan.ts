import type { Target } from '../../config/types.ts'
import { hasGeneratedOutput } from '../../context/earlier-responses.ts'
import type { Exchange, Plan } from '../../context/exchange.ts'
import type { Gateway } from '../../context/gateway.ts'
import type { RefusalReason } from '../../protocols/shared/refusal.ts'
import type { Deadlines } from '../../proxy/deadlines.ts'
import { retryability } from '../../proxy/retry.ts'
import { CandidateState } from '../../routing/candidate-state.ts'
import type { RetryContext, RetryStep } from '../../routing/candidate-state.ts'
import { candidateId } from '../../routing/candidate.ts'
import type { CandidateHealth } from '../../routing/health.ts'
import { isTransientFailure } from '../../routing/transient-failure.ts'
import type { AttemptFailure } from './candidate-attempt.ts'
import { refusalTargets } from './refusal-targets.ts'
import { requestedRetryDelay } from './upstream-errors.ts'

/** Where an exchange goes from each candidate that failed it. */
export class RetryPlan {
  /** Where refusals of the request itself go, as far as no such target was asked yet. */
  readonly refusalTargets: Map<RefusalReason, Target>
  readonly #gateway: Gateway
  readonly #exchange: Exchange
  readonly #deadlines: Deadlines
  readonly #candidateState: CandidateState

  constructor(gateway: Gateway, exchange: Exchange, { route, order }: Plan, deadlines: Deadlines) {
    this.#gateway = gateway
    this.#exchange = exchange
    this.#deadlines = deadlines
    const isIll = (target: Target) => this.#condition(target).circuit !== 'closed'
    this.#candidateState = new CandidateState(order, route.retries, isIll)
    this.refusalTargets = refusalTargets(route)
  }

  get current(): Target {
    return this.#candidateState.current
  }

  /** However the attempt at the current candidate ends, no other follows. */
  get isLast(): boolean {
    return this.#candidateState.attemptsLeft === 0 && this.refusalTargets.size === 0
  }

  /**
   * The attempt at the current candidate failed, and the client has seen nothing of an answer.
   *
   * @returns null = nowhere
   */
  next({ error, status, headers, said, reason }: AttemptFailure): RetryStep | null {
    if (reason !== null && this.refusalTargets.has(reason)) {
      const target = this.refusalTargets.get(reason) as Target
      this.refusalTargets.delete(reason)
      return this.#candidateState.redirect(target)
    }
    const retryAfterMs = requestedRetryDelay(headers, said, this.#gateway.clock.wall())
    const { consecutiveFailures } = this.#condition(this.#candidateState.current)
    const soon = isTransientFailure(status, retryAfterMs, consecutiveFailures)
    return this.#candidateState.next({ ...retryability(error, status), soon, retryAfterMs }, this.#retryContext)
  }

  /**
   * The current candidate broke the client's stream, or failed to go on with it.
   *
   * @returns who is to go on with it; null = nobody can
   */
  nextForContinuation({ error, status, headers, said }: AttemptFailure): RetryStep | null {
    const retryAfterMs = requestedRetryDelay(headers, said, this.#gateway.clock.wall())
    const { retryable, again } = retryability(error, status)
    // Whatever keeps one from going on, another may.
    const setback = { retryable: true, again: retryable && again, soon: false, retryAfterMs }
    // Of what has said nothing yet, anybody can be asked anew.
    const suits = ({ prefill }: Target): boolean => prefill || !hasGeneratedOutput(this.#exchange)
    return this.#candidateState.next(setback, this.#retryContext, suits)
  }

  #condition(target: Target): CandidateHealth {
    return this.#gateway.health.condition(candidateId(target, this.#exchange.request.model))
  }

  get #retryContext(): RetryContext {
    return { now: this.#gateway.clock.monotonic(), timeLeft: this.#deadlines.remaining, random: Math.random() }
  }
}
