import type { Clock, Timer } from '../../base/clock.ts'
import { GatewayError, asGatewayError } from '../../base/errors.ts'
import type { Route, Target, UpstreamLimits } from '../../config/types.ts'
import { callsModel, isBackgroundRequest, wantsEventStream } from '../exchange/exchange.ts'
import type { Exchange, Plan } from '../exchange/exchange.ts'
import type { Gateway } from '../parts/gateway.ts'
import type { Reservation } from '../../limits/types.ts'
import { respondsWithText } from '../../pricing/metering.ts'
import { Deadlines } from '../../proxy/http/deadlines.ts'
import { failureWithoutResponse } from './attempt-failure.ts'
import type { AttemptFailure } from './attempt-failure.ts'
import type { HttpAttempt } from './http-attempt.ts'
import type { AttemptRecorder } from './recorder.ts'
import type { RetryPlan } from './retry-plan.ts'

/** The exchange whose attempts are hedged. */
export interface HedgeHost {
  /** The running attempt, or the first of two; null = none. */
  current: HttpAttempt | null
  /** Reserves what an attempt may use of its upstream's limits. @returns an error if there is no room */
  reserve(limits: UpstreamLimits): Promise<Reservation | GatewayError>
  /** Begins the second attempt. @returns the error of the gateway if it cannot start */
  beginBeside(target: Target, deadlines: Deadlines, reservation: Reservation | null): HttpAttempt | GatewayError
  /** A deadline of the second attempt has passed. @param attempt null = it has not begun */
  expired(error: GatewayError, attempt: HttpAttempt | null): void
}

export interface HedgedAttemptsOptions {
  readonly recorder: AttemptRecorder
  readonly plan: RetryPlan
  /** Deadlines of the first attempt, and of the response that goes to the client. */
  readonly deadlines: Deadlines
  /** Milliseconds without a response to the first attempt. */
  readonly afterMs: number
  readonly host: HedgeHost
}

/** The first attempt of a request and, if it is slow, a second one at another target (`hedge`). */
export class HedgedAttempts {
  readonly #gateway: Gateway
  readonly #exchange: Exchange
  readonly #options: HedgedAttemptsOptions
  readonly #hedge: Hedge
  /** The second attempt, its deadlines, and how many ms after the first attempt it started. */
  #second: { readonly attempt: HttpAttempt, readonly deadlines: Deadlines, readonly afterMs: number } | null = null

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

  /** Runs an attempt, and possibly another one beside it. @returns the end of the one that remains */
  async run(attempt: HttpAttempt): Promise<AttemptEnd> {
    const end = await this.#hedge.run(attempt)
    // From now on the deadlines of the exchange apply to the response.
    this.stopDeadlines()
    return end
  }

  /** A response is about to go to the client. @returns false if the other attempt may still respond */
  readonly claim = (attempt: HttpAttempt, status: number): boolean => this.#hedge.claim(attempt, status)

  /** Milliseconds that the gateway had waited for the first attempt when this one started; 0 = this is the first. */
  waitedMsBefore(attempt: HttpAttempt): number {
    return attempt === this.#second?.attempt ? this.#second.afterMs : 0
  }

  stopDeadlines(): void {
    this.#second?.deadlines.stop()
  }

  /** Ends all attempts from outside. */
  stop(reason: GatewayError): void {
    this.#hedge.stop(reason)
  }

  /** @returns null = there is no other target, or it is at its limit */
  async #reserveSecond(): Promise<SecondTarget | null> {
    const target = this.#options.plan.besideTarget
    if (target === null) return null
    const { limits } = target.upstream
    const reservation = limits && await this.#options.host.reserve(limits)
    return reservation instanceof GatewayError ? null : { target, reservation }
  }

  /** Runs in a timer, where nobody would catch an error. */
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
    plan.startBeside(target)
    const { timeouts } = (this.#exchange.plan as Plan).route
    const deadlines = new Deadlines(this.#gateway.clock, timeouts, this.#exchange.startedAt, error => {
      host.expired(error, this.#second?.attempt ?? null)
    })
    const attempt = host.beginBeside(target, deadlines, reservation)
    host.current = first
    if (attempt instanceof GatewayError) {
      plan.failBeside(target, first.target, failureWithoutResponse(attempt, this.#gateway.clock.wall()))
      return null
    }
    this.#second = { attempt, deadlines, afterMs: attempt.startedAt - first.startedAt }
    recorder.logHedge(first, target)
    return attempt
  }

  #failedBeside(failed: HttpAttempt, failure: AttemptFailure, other: HttpAttempt): void {
    const { host, plan, recorder, deadlines } = this.#options
    host.current = other
    if (failed === this.#second?.attempt) this.#second.deadlines.stop()
    else deadlines.betweenAttempts()
    plan.failBeside(failed.target, other.target, failure)
    recorder.failed(failed, failure, { isRetried: false, isLast: failed.isLast, isContinuation: false })
    // The exchange is now billed for the other attempt.
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

/** How an attempt ended. */
interface AttemptEnd {
  readonly attempt: HttpAttempt
  /** null = its response goes to the client. */
  readonly failure: AttemptFailure | null
}

/** The target of a second attempt. */
interface SecondTarget {
  readonly target: Target
  /** From the limits of its upstream; null = no limits. */
  readonly reservation: Reservation | null
}

interface HedgeOptions {
  /** Chooses the target of the second attempt; null = none has room. */
  reserve(): Promise<SecondTarget | null>
  /** Starts the second attempt; null = it cannot be made. */
  start(second: SecondTarget): HttpAttempt | null
  /** An attempt failed, and the other one continues. */
  onFailed(failed: AttemptEnd & { readonly failure: AttemptFailure }, other: HttpAttempt): void
  /** A good response has begun. @param other the attempt that runs beside it; null = none */
  onWon(attempt: HttpAttempt, other: HttpAttempt | null): void
}

/**
 * Starts a second attempt if the first one is silent for `hedge.after`. The client gets the response that begins
 * first. A request gets one second attempt at most.
 *
 * Source: J. Dean, L. A. Barroso, "The Tail at Scale", hedged requests.
 */
class Hedge {
  readonly #clock: Clock
  readonly #afterMs: number
  readonly #options: HedgeOptions
  readonly #running = new Map<HttpAttempt, Promise<AttemptEnd>>()
  /** The attempt that the second one runs beside. */
  #first: HttpAttempt | null = null
  /** null = no second attempt will start. */
  #timer: Timer | null = null
  #isUsed = false

  /** @param afterMs without a response to the first attempt */
  constructor(clock: Clock, afterMs: number, options: HedgeOptions) {
    this.#clock = clock
    this.#afterMs = afterMs
    this.#options = options
  }

  /** Runs an attempt, with a second one beside it if it is slow. @returns the end of the attempt that remains */
  async run(first: HttpAttempt): Promise<AttemptEnd> {
    const secondStarted = Promise.withResolvers<null>()
    this.#first = first
    this.#add(first)
    if (!this.#isUsed) this.#timer = this.#clock.setTimeout(() => void this.#startSecond(secondStarted.resolve), this.#afterMs)
    try {
      for (;;) {
        const ends = [...this.#running.values()]
        // After a second attempt has started, wait for both.
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

  /**
   * A response is about to go to the client.
   *
   * @returns false if it is an error of the second attempt and the first may still respond
   */
  claim(attempt: HttpAttempt, status: number): boolean {
    this.#cancelTimer()
    const other = [...this.#running.keys()].find(each => each !== attempt) ?? null
    if (other !== null && status >= 400 && attempt !== this.#first) return false
    if (other !== null) this.#running.delete(other)
    this.#options.onWon(attempt, other)
    return true
  }

  /** Ends all attempts from outside. */
  stop(reason: GatewayError): void {
    this.#cancelTimer()
    for (const attempt of this.#running.keys()) attempt.stop(reason)
  }

  async #startSecond(onStarted: (none: null) => void): Promise<void> {
    this.#isUsed = true
    const target = await this.#options.reserve()
    // While the reservation waited, the first attempt has ended or begun to respond: no second attempt.
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

/**
 * May a second target be tried while the first one is silent? Only for streams of text: every other response is
 * silent until it is complete.
 *
 * @param after milliseconds, as the route has it
 * @returns `after`; null = the request is not hedged
 */
export function hedgeAfter(exchange: Exchange, after: number, { targets, retries }: Route): number | null {
  if (targets.length < 2 || retries === 0) return null
  const isStream = wantsEventStream(exchange) && callsModel(exchange) && respondsWithText(exchange.classified.endpoint)
  return isStream && !isBackgroundRequest(exchange) ? after : null
}
