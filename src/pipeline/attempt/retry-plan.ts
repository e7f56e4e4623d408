import type { Route, Target } from '../../config/types.ts'
import type { Exchange, Plan } from '../exchange/exchange.ts'
import type { Gateway } from '../parts/gateway.ts'
import type { RefusalReason } from '../../protocols/endpoint/refusal-reason.ts'
import type { Deadlines } from '../../proxy/http/deadlines.ts'
import { candidateId } from '../../routing/candidate.ts'
import { isTransientFailure, retryability } from '../../routing/failure.ts'
import type { CandidateHealth } from '../../routing/health.ts'
import { failHedge, nextAttempt, redirect, select, startHedge, startRetries } from '../../routing/retry-policy.ts'
import type { FailedAttempt, RetryContext, RetryState, RetryStep } from '../../routing/retry-policy.ts'
import type { AttemptFailure } from './attempt-failure.ts'

export class RetryPlan {
  /** Targets for refused requests, by reason, without those that were tried. */
  readonly refusalTargets: Map<RefusalReason, Target>
  readonly #gateway: Gateway
  readonly #exchange: Exchange
  readonly #deadlines: Deadlines
  #state: RetryState

  constructor(gateway: Gateway, exchange: Exchange, { route, order }: Plan, deadlines: Deadlines) {
    this.#gateway = gateway
    this.#exchange = exchange
    this.#deadlines = deadlines
    this.#state = startRetries(order, route.retries, target => this.#condition(target).circuit !== 'closed')
    this.refusalTargets = refusalTargets(route)
  }

  get current(): Target {
    return this.#state.current.target
  }

  get isLast(): boolean {
    return this.#state.attemptsLeft === 0 && this.refusalTargets.size === 0
  }

  get hasContinuationTarget(): boolean {
    const { candidates, current, attemptsLeft } = this.#state
    if (attemptsLeft === 0) return false
    return candidates.some(candidate => candidate.target.prefill && (candidate !== current || candidates.length === 1))
  }

  /** @param isContinuation the next attempt has to continue the client's stream @returns null = no further attempt */
  next({ error, status, reason, retryAfterMs }: AttemptFailure, isContinuation: boolean): RetryStep | null {
    const { retryable, sameTargetAllowed } = retryability(error, status)
    if (isContinuation) {
      // Any failure is retryable at another target, because that target may be able to continue the stream.
      return this.#decide({ retryable: true, sameTargetAllowed: retryable && sameTargetAllowed, sameTargetFirst: false, retryAfterMs }, this.#canContinue)
    }
    const target = reason === null ? undefined : this.refusalTargets.get(reason)
    if (reason !== null && target !== undefined) {
      this.refusalTargets.delete(reason)
      const redirected = redirect(this.#state, target)
      this.#state = redirected.state
      return redirected.step
    }
    const { consecutiveFailures } = this.#condition(this.current)
    return this.#decide({ retryable, sameTargetAllowed, sameTargetFirst: isTransientFailure(status, retryAfterMs, consecutiveFailures), retryAfterMs })
  }

  /** A healthy target that was not tried; null = none. */
  get hedgeTarget(): Target | null {
    return startHedge(this.#state, target => this.#condition(target).circuit === 'closed')?.target ?? null
  }

  startHedge(target: Target): void {
    this.#state = startHedge(this.#state, each => each === target)?.state ?? this.#state
  }

  /** Makes the other attempt the current attempt, after one of two attempts that run at once failed. */
  failHedge(failed: Target, other: Target, { error, status, retryAfterMs }: AttemptFailure): void {
    const failure = { ...retryability(error, status), sameTargetFirst: false, retryAfterMs }
    this.#state = failHedge(this.#state, failed, other, failure, this.#retryContext)
  }

  select(target: Target): void {
    this.#state = select(this.#state, target)
  }

  /** Makes a target that was skipped the current one, because its upstream has room now. */
  resume(target: Target): void {
    this.#state = { ...select(this.#state, target), attemptsLeft: Math.max(0, this.#state.attemptsLeft - 1) }
  }

  /** Skips the current target without counting an attempt. @returns null = there is no other target */
  passOver(isContinuation: boolean): RetryStep | null {
    this.#state = { ...this.#state, attemptsLeft: this.#state.attemptsLeft + 1 }
    const failure = { retryable: true, sameTargetAllowed: false, sameTargetFirst: false, retryAfterMs: null }
    return this.#decide(failure, isContinuation ? this.#canContinue : undefined)
  }

  /** A target that supports prefill can continue the stream. Any target can, if the client has no text yet. */
  readonly #canContinue = ({ prefill }: Target): boolean => (
    prefill || !this.#exchange.attempts.some(({ metered, sentNoText }) => !sentNoText && metered?.kind === 'stream' && metered.meter.sawContent)
  )

  #decide(failure: FailedAttempt, suits?: (target: Target) => boolean): RetryStep | null {
    const { state, step } = nextAttempt(this.#state, failure, this.#retryContext, suits)
    this.#state = state
    return step
  }

  #condition(target: Target): CandidateHealth {
    return this.#gateway.health.condition(candidateId(target, this.#exchange.request.model))
  }

  get #retryContext(): RetryContext {
    return { now: this.#gateway.clock.monotonic(), timeLeft: this.#deadlines.remaining, random: Math.random() }
  }
}

export const NO_REFUSAL_TARGETS: Map<RefusalReason, Target> = new Map()

/** The targets for requests that an upstream refuses because of their content. */
export function refusalTargets({ on }: Pick<Route, 'on'>): Map<RefusalReason, Target> {
  if (on.contextLength === null && on.contentFilter === null) return NO_REFUSAL_TARGETS
  const targets = new Map<RefusalReason, Target>()
  if (on.contextLength) targets.set('context_length', on.contextLength)
  if (on.contentFilter) targets.set('content_filter', on.contentFilter)
  return targets
}
