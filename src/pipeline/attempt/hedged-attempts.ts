import { GatewayError, asGatewayError } from '../../base/errors.ts'
import type { Target } from '../../config/types.ts'
import type { Exchange, Plan } from '../../context/exchange.ts'
import type { Gateway } from '../../context/gateway.ts'
import type { Reservation } from '../../limits/types.ts'
import { Deadlines } from '../../proxy/deadlines.ts'
import { failureWithoutResponse } from './attempt-failure.ts'
import type { AttemptFailure } from './attempt-failure.ts'
import type { AttemptHistory } from './attempt-history.ts'
import type { CandidateAttempt } from './candidate-attempt.ts'
import { logHedge } from './forward-log.ts'
import { Hedge } from './hedge.ts'
import type { AttemptEnd, SecondTarget } from './hedge.ts'
import { reserveAtUpstream } from './reserve-at-upstream.ts'
import type { RetryPlan } from './retry-plan.ts'

export interface HedgedAttemptsOptions {
  readonly history: AttemptHistory
  readonly retryPlan: RetryPlan
  /** Of the first attempt, and of the response that goes to the client. */
  readonly deadlines: Deadlines
  /** Milliseconds without a response to the first attempt. */
  readonly afterMs: number
  /**
   * Begins the second attempt.
   *
   * @param reservation of the upstream's limits; null = there are none
   * @returns the error of the gateway if it cannot start
   */
  begin(target: Target, deadlines: Deadlines, reservation: Reservation | null): CandidateAttempt | GatewayError
  /** A deadline of the second attempt has passed. @param attempt null = it has not begun */
  onExpired(error: GatewayError, attempt: CandidateAttempt | null): void
}

/** The first attempt at a request, and a second one at another target beside it if the first is slow (`hedge`). */
export class HedgedAttempts {
  readonly #gateway: Gateway
  readonly #exchange: Exchange
  readonly #options: HedgedAttemptsOptions
  readonly #hedge: Hedge
  /** The second attempt, its own deadlines, and how much later it started, in ms. */
  #second: { readonly attempt: CandidateAttempt, readonly deadlines: Deadlines, readonly afterMs: number } | null = null

  constructor(gateway: Gateway, exchange: Exchange, options: HedgedAttemptsOptions) {
    this.#gateway = gateway
    this.#exchange = exchange
    this.#options = options
    this.#hedge = new Hedge(gateway.clock, options.afterMs, {
      reserve: () => this.#reserveSecond().catch(thrown => this.#stopBy(thrown)),
      start: second => this.#startSecondSafely(second),
      onFailed: ({ attempt, failure }, other) => this.#failedBeside(attempt, failure, other),
      onWon: (attempt, other) => this.#won(attempt, other),
    })
  }

  /** Runs an attempt, and another one beside it. @returns the end of the last that is left */
  async run(attempt: CandidateAttempt): Promise<AttemptEnd> {
    const end = await this.#hedge.run(attempt)
    // From here on the deadlines of the exchange watch the response.
    this.stopDeadlines()
    return end
  }

  /** A response is about to go to the client. @returns false where the other attempt may still respond */
  readonly claim = (attempt: CandidateAttempt, status: number): boolean => this.#hedge.claim(attempt, status)

  /** Milliseconds that the gateway had waited for the first attempt when this one started; 0 = it is the first. */
  waitedMsBefore(attempt: CandidateAttempt): number {
    return attempt === this.#second?.attempt ? this.#second.afterMs : 0
  }

  stopDeadlines(): void {
    this.#second?.deadlines.stop()
  }

  /** Ends all attempts from outside. */
  stop(reason: GatewayError): void {
    this.#hedge.stop(reason)
  }

  /** @returns null = no other target is left, or it is at its limit */
  async #reserveSecond(): Promise<SecondTarget | null> {
    const target = this.#options.retryPlan.besideTarget
    if (target === null) return null
    const { limits } = target.upstream
    const reservation = limits && await reserveAtUpstream(this.#gateway, this.#exchange, limits)
    return reservation instanceof GatewayError ? null : { target, reservation }
  }

  /** From a timer, whose errors nobody would catch. */
  #startSecondSafely(second: SecondTarget): CandidateAttempt | null {
    try {
      return this.#startSecond(second)
    } catch (thrown) {
      return this.#stopBy(thrown)
    }
  }

  #stopBy(thrown: unknown): null {
    this.#exchange.stop(asGatewayError(thrown))
    return null
  }

  /** @returns null = the request cannot be sent there */
  #startSecond({ target, reservation }: SecondTarget): CandidateAttempt | null {
    const { history, retryPlan } = this.#options
    const first = history.current
    if (first === null) {
      reservation?.release()
      return null
    }
    retryPlan.startBeside(target)
    const { timeouts } = (this.#exchange.plan as Plan).route
    const deadlines = new Deadlines(this.#gateway.clock, timeouts, this.#exchange.startedAt, error => {
      this.#options.onExpired(error, this.#second?.attempt ?? null)
    })
    const attempt = this.#options.begin(target, deadlines, reservation)
    history.current = first
    if (attempt instanceof GatewayError) {
      retryPlan.failBeside(target, first.state.target, failureWithoutResponse(attempt))
      return null
    }
    this.#second = { attempt, deadlines, afterMs: attempt.state.record.atMs - first.state.record.atMs }
    logHedge(this.#gateway, this.#exchange, first.state.record, target)
    return attempt
  }

  #failedBeside(failed: CandidateAttempt, failure: AttemptFailure, other: CandidateAttempt): void {
    const { history, retryPlan, deadlines } = this.#options
    history.current = other
    if (failed === this.#second?.attempt) this.#second.deadlines.stop()
    else deadlines.betweenAttempts()
    retryPlan.failBeside(failed.state.target, other.state.target, failure)
    history.recordFailure(failed, failure, false, false)
    // What the exchange is billed for is now that of the other attempt.
    this.#exchange.serve(other.state)
    if (this.#exchange.stopped?.code === 'client_gone') history.billAbandoned(failed)
  }

  #won(attempt: CandidateAttempt, other: CandidateAttempt | null): void {
    const { history, retryPlan, deadlines } = this.#options
    history.current = attempt
    this.#exchange.serve(attempt.state)
    retryPlan.select(attempt.state.target)
    if (attempt === this.#second?.attempt) {
      deadlines.betweenAttempts()
      history.waitedMs += this.#second.afterMs
    }
    if (other === null) return
    other.lost()
    other.state.fail(other.mayBeBilled ? other.abandonedResponse : null)
    history.billAbandoned(other)
  }
}
