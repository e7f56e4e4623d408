import type { Clock, Timer } from '../../base/clock.ts'
import { GatewayError, asGatewayError } from '../../base/errors.ts'
import type { Route, Target, UpstreamLimits } from '../../config/types.ts'
import { callsModel, isBackgroundRequest, wantsEventStream, type Exchange, type Plan } from '../exchange/exchange.ts'
import type { Gateway } from '../parts/gateway.ts'
import type { Reservation } from '../../limits/types.ts'
import { respondsWithText } from '../../pricing/metering.ts'
import { Deadlines } from '../../proxy/http/deadlines.ts'
import { failureWithoutResponse, type AttemptFailure } from './attempt-failure.ts'
import type { HttpAttempt } from './http-attempt.ts'
import type { AttemptRecorder } from './recorder.ts'
import type { RetryPlan } from './retry-plan.ts'

/** Reserves, begins and stops attempts of the exchange for `HedgedAttempts`. */
export interface HedgeHost {
  /** The running attempt; the first attempt if two are running. */
  current: HttpAttempt | null
  /** @returns an error if the limits have no room */
  reserve(limits: UpstreamLimits): Promise<Reservation | GatewayError>
  /** @returns the error if the attempt cannot start */
  beginHedge(target: Target, deadlines: Deadlines, reservation: Reservation | null): HttpAttempt | GatewayError
  /** Called when a deadline of the second attempt has passed. @param attempt the second attempt; null = not begun */
  expired(error: GatewayError, attempt: HttpAttempt | null): void
}

export interface HedgedAttemptsOptions {
  readonly recorder: AttemptRecorder
  readonly plan: RetryPlan
  /** Deadlines of the first attempt, and of the response that goes to the client. */
  readonly deadlines: Deadlines
  /** Milliseconds without a response to the first attempt after which the second attempt starts. */
  readonly afterMs: number
  readonly host: HedgeHost
}

/** Runs the first attempt of a request and, if no response begins in time, a second attempt at another target (`hedge`). */
export class HedgedAttempts {
  readonly #gateway: Gateway
  readonly #exchange: Exchange
  readonly #options: HedgedAttemptsOptions
  readonly #hedge: Hedge
  /** `afterMs`: milliseconds from the start of the first attempt. */
  #second: { readonly attempt: HttpAttempt, readonly deadlines: Deadlines, readonly afterMs: number } | null = null

  constructor(gateway: Gateway, exchange: Exchange, options: HedgedAttemptsOptions) {
    this.#gateway = gateway
    this.#exchange = exchange
    this.#options = options
    this.#hedge = new Hedge(gateway.clock, options.afterMs, {
      reserve: () => this.#reserveSecond().catch(thrown => this.#stopBy(thrown)),
      start: second => this.#startSecondSafely(second),
      onFailed: ({ attempt, failure }, other) => this.#failedHedge(attempt, failure, other),
      onWon: (attempt, other) => this.#won(attempt, other),
    })
  }

  /** @returns the end of the attempt whose response the client gets or, if all attempts failed, of the last one */
  async run(attempt: HttpAttempt): Promise<AttemptEnd> {
    const end = await this.#hedge.run(attempt)
    // The deadlines of the exchange apply to the rest of the response, whichever attempt won.
    this.stopDeadlines()
    return end
  }

  /** Call this before a response goes to the client. @returns false = an error of this attempt must wait for the other attempt */
  readonly claim = (attempt: HttpAttempt, status: number): boolean => this.#hedge.claim(attempt, status)

  /** Milliseconds from the start of the first attempt to the start of `attempt`; 0 = `attempt` is the first. */
  waitedMsBefore(attempt: HttpAttempt): number {
    return attempt === this.#second?.attempt ? this.#second.afterMs : 0
  }

  stopDeadlines(): void {
    this.#second?.deadlines.stop()
  }

  stop(reason: GatewayError): void {
    this.#hedge.stop(reason)
  }

  /** @returns null = there is no other target, or the upstream of the other target is at its limit */
  async #reserveSecond(): Promise<SecondTarget | null> {
    const target = this.#options.plan.hedgeTarget
    if (target === null) return null
    const { limits } = target.upstream
    const reservation = limits && await this.#options.host.reserve(limits)
    return reservation instanceof GatewayError ? null : { target, reservation }
  }

  /** Catches all errors, because the timer that calls it does not. */
  #startSecondSafely(second: SecondTarget): HttpAttempt | null {
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

  /** @returns null = the request cannot be sent to the target */
  #startSecond({ target, reservation }: SecondTarget): HttpAttempt | null {
    const { host, plan, recorder } = this.#options
    const first = host.current
    if (first === null) {
      reservation?.release()
      return null
    }
    plan.startHedge(target)
    const { timeouts } = (this.#exchange.plan as Plan).route
    const deadlines = new Deadlines(this.#gateway.clock, timeouts, this.#exchange.startedAt, error => {
      host.expired(error, this.#second?.attempt ?? null)
    })
    const attempt = host.beginHedge(target, deadlines, reservation)
    host.current = first
    if (attempt instanceof GatewayError) {
      plan.failHedge(target, first.target, failureWithoutResponse(attempt, this.#gateway.clock.wall()))
      return null
    }
    this.#second = { attempt, deadlines, afterMs: attempt.startedAt - first.startedAt }
    recorder.logHedge(first, target)
    return attempt
  }

  #failedHedge(failed: HttpAttempt, failure: AttemptFailure, other: HttpAttempt): void {
    const { host, plan, recorder, deadlines } = this.#options
    host.current = other
    if (failed === this.#second?.attempt) this.#second.deadlines.stop()
    else deadlines.betweenAttempts()
    plan.failHedge(failed.target, other.target, failure)
    recorder.failed(failed, failure, { isRetried: false, isLast: failed.isLast, isContinuation: false })
    // The exchange is billed for the other attempt from now on.
    this.#exchange.serveAsLast(other)
    if (this.#exchange.stopped?.code === 'client_gone') recorder.billAbandoned(failed)
  }

  #won(attempt: HttpAttempt, other: HttpAttempt | null): void {
    const { host, plan, recorder, deadlines } = this.#options
    host.current = attempt
    this.#exchange.serveAsLast(attempt)
    plan.select(attempt.target)
    if (attempt === this.#second?.attempt) {
      deadlines.betweenAttempts()
      recorder.waitedMs += this.#second.afterMs
    }
    if (other === null) return
    recorder.lost(other)
    other.stop(new GatewayError('internal', 'another target responded first'))
  }
}

interface AttemptEnd {
  readonly attempt: HttpAttempt
  /** null = the client gets the response. */
  readonly failure: AttemptFailure | null
}

interface SecondTarget {
  readonly target: Target
  /** null = the upstream has no limits. */
  readonly reservation: Reservation | null
}

interface HedgeOptions {
  /** @returns null = no target has room */
  reserve(): Promise<SecondTarget | null>
  /** @returns null = the attempt cannot be made */
  start(second: SecondTarget): HttpAttempt | null
  onFailed(failed: AttemptEnd & { readonly failure: AttemptFailure }, other: HttpAttempt): void
  /** A response of `attempt` is about to go to the client. @param other the other running attempt; null = none */
  onWon(attempt: HttpAttempt, other: HttpAttempt | null): void
}

/**
 * Starts a second attempt if the first has no response after `hedge.after`. The client gets the response that begins first.
 * Source: J. Dean, L. A. Barroso, "The Tail at Scale", hedged requests.
 */
class Hedge {
  readonly #clock: Clock
  readonly #afterMs: number
  readonly #options: HedgeOptions
  readonly #running = new Map<HttpAttempt, Promise<AttemptEnd>>()
  #first: HttpAttempt | null = null
  /** null = no second attempt will start. */
  #timer: Timer | null = null
  #isUsed = false

  /** @param afterMs milliseconds without a response to the first attempt after which the second attempt starts */
  constructor(clock: Clock, afterMs: number, options: HedgeOptions) {
    this.#clock = clock
    this.#afterMs = afterMs
    this.#options = options
  }

  /** @returns the end of the attempt whose response the client gets or, if all attempts failed, of the last one */
  async run(first: HttpAttempt): Promise<AttemptEnd> {
    const secondStarted = Promise.withResolvers<null>()
    this.#first = first
    this.#add(first)
    if (!this.#isUsed) this.#timer = this.#clock.setTimeout(() => void this.#startSecond(secondStarted.resolve), this.#afterMs)
    try {
      for (;;) {
        const ends = [...this.#running.values()]
        // While the timer is set, also wait for the start of a second attempt, and then for the ends of both attempts.
        const end = await Promise.race(ends.length === 1 && this.#timer ? [...ends, secondStarted.promise] : ends)
        if (end === null || !this.#running.has(end.attempt)) continue
        const { attempt, failure } = end
        this.#running.delete(attempt)
        const [other] = this.#running.keys()
        if (failure === null || other === undefined) return end
        this.#options.onFailed({ attempt, failure }, other)
      }
    } finally {
      this.#cancelTimer()
      this.#running.clear()
    }
  }

  /** @returns false = the second attempt must not send its error, because the first attempt may still respond */
  claim(attempt: HttpAttempt, status: number): boolean {
    this.#cancelTimer()
    const other = [...this.#running.keys()].find(each => each !== attempt) ?? null
    if (other !== null && status >= 400 && attempt !== this.#first) return false
    if (other !== null) this.#running.delete(other)
    this.#options.onWon(attempt, other)
    return true
  }

  stop(reason: GatewayError): void {
    this.#cancelTimer()
    for (const attempt of this.#running.keys()) attempt.stop(reason)
  }

  async #startSecond(onStarted: (none: null) => void): Promise<void> {
    this.#isUsed = true
    const target = await this.#options.reserve()
    // The timer is null if the first attempt ended or began to respond during the reservation: start no second attempt.
    if (this.#timer === null) return target?.reservation?.release()
    const second = target && this.#options.start(target)
    if (second !== null) this.#add(second)
    this.#timer = null
    onStarted(null)
  }

  #add(attempt: HttpAttempt): void {
    this.#running.set(attempt, attempt.run().then(failure => ({ attempt, failure })))
  }

  #cancelTimer(): void {
    this.#timer?.cancel()
    this.#timer = null
  }
}

/** Hedges only streams of text: other responses send nothing until they are complete. @param after ms @returns null = not hedged */
export function hedgeAfter(exchange: Exchange, after: number, { targets, retries }: Route): number | null {
  if (targets.length < 2 || retries === 0) return null
  const isStream = wantsEventStream(exchange) && callsModel(exchange) && respondsWithText(exchange.classified.endpoint)
  return isStream && !isBackgroundRequest(exchange) ? after : null
}
