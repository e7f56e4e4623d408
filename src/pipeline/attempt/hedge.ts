import type { Clock, Timer } from '../../base/clock.ts'
import type { GatewayError } from '../../base/errors.ts'
import type { Route, Target } from '../../config/types.ts'
import { callsModel, isBackgroundRequest, wantsEventStream } from '../../context/exchange.ts'
import type { Exchange } from '../../context/exchange.ts'
import type { Reservation } from '../../limits/types.ts'
import { respondsWithText } from '../../pricing/metering.ts'
import type { AttemptFailure } from './attempt-failure.ts'
import type { CandidateAttempt } from './candidate-attempt.ts'

/** How an attempt ended. */
export interface AttemptEnd {
  readonly attempt: CandidateAttempt
  /** null = its response goes to the client. */
  readonly failure: AttemptFailure | null
}

/** Where a second attempt can be made. */
export interface SecondTarget {
  readonly target: Target
  /** Of the limits of its upstream; null = it has none. */
  readonly reservation: Reservation | null
}

export interface HedgeOptions {
  /** Chooses the target of the second attempt; null = there is none with room for it. */
  reserve(): Promise<SecondTarget | null>
  /** Starts the second attempt; null = it cannot be made. */
  start(second: SecondTarget): CandidateAttempt | null
  /** An attempt failed, and the other one goes on. */
  onFailed(failed: AttemptEnd & { readonly failure: AttemptFailure }, other: CandidateAttempt): void
  /** A good response has begun. @param other the attempt that runs beside it; null = none does */
  onWon(attempt: CandidateAttempt, other: CandidateAttempt | null): void
}

/**
 * Starts a second attempt where the first one has sent nothing for a while (`hedge.after`). The response that begins
 * first goes to the client. There is one second attempt for each request.
 *
 * Source: J. Dean, L. A. Barroso, "The Tail at Scale", hedged requests.
 */
export class Hedge {
  readonly #clock: Clock
  readonly #afterMs: number
  readonly #options: HedgeOptions
  readonly #running = new Map<CandidateAttempt, Promise<AttemptEnd>>()
  /** The attempt that the second one runs beside. */
  #first: CandidateAttempt | null = null
  /** null = no second attempt is going to start. */
  #timer: Timer | null = null
  #isUsed = false

  /** @param afterMs without a response to the first attempt */
  constructor(clock: Clock, afterMs: number, options: HedgeOptions) {
    this.#clock = clock
    this.#afterMs = afterMs
    this.#options = options
  }

  /** Runs an attempt, with a second one beside it if it is slow. @returns the end of the last attempt that is left */
  async run(first: CandidateAttempt): Promise<AttemptEnd> {
    const secondStarted = Promise.withResolvers<null>()
    this.#first = first
    this.#add(first)
    if (!this.#isUsed) this.#timer = this.#clock.setTimeout(() => void this.#startSecond(secondStarted.resolve), this.#afterMs)
    try {
      for (;;) {
        const ends = [...this.#running.values()]
        // A second attempt makes the wait one for both.
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
   * @returns false where it is an error of the second attempt, and the first may still respond
   */
  claim(attempt: CandidateAttempt, status: number): boolean {
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
    // Limits that are shared had to be asked, and the first attempt has ended or responds.
    if (this.#timer === null) return target?.reservation?.release()
    const second = target && this.#options.start(target)
    if (second !== null) this.#add(second)
    this.#timer = null
    onStarted(null)
  }

  #add(attempt: CandidateAttempt): void {
    this.#running.set(attempt, attempt.run().then(failure => ({ attempt, failure })))
  }

  #cancelTimer(): void {
    this.#timer?.cancel()
    this.#timer = null
  }
}

/**
 * May a second target be asked while the first one is silent? For streams of text alone: any other response is silent
 * until it is complete.
 *
 * @returns milliseconds until then; null = no
 */
export function hedgeAfter(exchange: Exchange, { hedgeAfter: after, targets, retries }: Route): number | null {
  if (after === null || targets.length < 2 || retries === 0) return null
  const isStream = wantsEventStream(exchange) && callsModel(exchange) && respondsWithText(exchange.classified.endpoint)
  return isStream && !isBackgroundRequest(exchange) ? after : null
}
