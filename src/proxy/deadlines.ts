import type { Clock, Timer } from '../base/clock.ts'
import { GatewayError } from '../base/errors.ts'
import type { Timeouts } from '../config/types.ts'

/** What an attempt waits for just now; each has its own limit and its own error. */
type Phase = 'connect' | 'first_byte' | 'idle' | 'client'

/**
 * The deadlines of one exchange, on one timer. A byte that passes costs one clock
 * reading, and a phase that ends in time nothing: the timer is left to fire, and
 * then looks what is really due. It is set when the first phase begins.
 */
export class Deadlines {
  readonly clock: Clock
  readonly #timeouts: Timeouts
  readonly #expire: (error: GatewayError) => void
  /** Of the total, on the monotonic clock. */
  readonly #endsAt: number
  #timer: Timer | null = null
  /** On the monotonic clock, when the timer fires. */
  #firesAt = 0
  /** null between two attempts: only the total goes on. */
  #phase: Phase | null = null
  #limit = 0
  #since: number

  /** @param expire gets the timeout's row of the error table: once, unless another wait begins after it */
  constructor(clock: Clock, timeouts: Timeouts, startedAt: number, expire: (error: GatewayError) => void) {
    this.clock = clock
    this.#timeouts = timeouts
    this.#endsAt = startedAt + timeouts.total
    this.#expire = expire
    this.#since = clock.monotonic()
  }

  /** Milliseconds since something last happened that a deadline counts from. */
  get idleMs(): number {
    return this.clock.monotonic() - this.#since
  }

  /** Milliseconds that are left of the total. */
  get remaining(): number {
    return Math.max(0, this.#endsAt - this.clock.monotonic())
  }

  /** An attempt begins, the first one or another. */
  connecting(): void {
    this.#enter('connect', this.#timeouts.connect)
  }

  /** Nothing is waited for between two attempts; only the total goes on. */
  betweenAttempts(): void {
    this.#phase = null
    this.#watch(this.clock.monotonic())
  }

  /** The request is on its way; no byte of the response's body has come. */
  waiting(): void {
    this.#enter('first_byte', this.#timeouts.firstByte)
  }

  /** A byte came from the upstream. */
  upstreamActive(): void {
    // Called for each chunk.
    if (this.#phase === 'idle') this.#since = this.clock.monotonic()
    else this.#enterIdle('idle')
  }

  /** The client does not take what is ready for it. */
  clientBlocked(): void {
    this.#enterIdle('client')
  }

  /** The client reads again. */
  clientActive(): void {
    this.#enterIdle('idle')
  }

  stop(): void {
    this.#timer?.cancel()
    this.#timer = null
  }

  #enter(phase: Phase, limit: number): void {
    this.#phase = phase
    this.#limit = limit
    this.#since = this.clock.monotonic()
    this.#watch(this.#since)
  }

  /** From one side's idleness to the other's: both have the same limit. */
  #enterIdle(phase: 'idle' | 'client'): void {
    if (this.#phase !== 'idle' && this.#phase !== 'client') {
      this.#enter(phase, this.#timeouts.idle)
      return
    }
    this.#phase = phase
    this.#since = this.clock.monotonic()
  }

  /** Sees to it that the timer fires when the next deadline is due, or before. */
  #watch(now: number): void {
    const due = this.#phase === null ? this.#endsAt : Math.min(this.#endsAt, this.#since + this.#limit)
    if (this.#timer !== null && this.#firesAt <= due) return
    this.#timer?.cancel()
    this.#firesAt = due
    this.#timer = this.clock.setTimeout(() => this.#check(), Math.max(0, due - now))
  }

  #check(): void {
    this.#timer = null
    const now = this.clock.monotonic()
    const phaseEndsAt = this.#since + this.#limit
    // Half a millisecond: timers fire on whole ones.
    if (this.#endsAt - now <= 0.5) this.#fire(totalTimeout(this.#timeouts.total))
    else if (this.#phase !== null && phaseEndsAt - now <= 0.5) this.#fire(expired(this.#phase, this.#limit))
    else this.#watch(now)
  }

  #fire(error: GatewayError): void {
    this.stop()
    // What is waited for from here on, if anything, begins anew.
    this.#phase = null
    this.#expire(error)
  }
}

function expired(phase: Phase, ms: number): GatewayError {
  switch (phase) {
    case 'connect':
      return new GatewayError('connect_timeout', `no connection to the upstream within ${seconds(ms)} (timeouts.connect)`)
    case 'first_byte':
      return new GatewayError('first_byte_timeout', `the upstream sent no byte of a response body within ${seconds(ms)} (timeouts.first_byte)`)
    case 'idle':
      return new GatewayError('idle_timeout', `the upstream sent nothing more for ${seconds(ms)} (timeouts.idle)`)
    case 'client':
      return clientStalled(ms)
  }
}

/** @param ms the limit that was passed */
export function clientStalled(ms: number): GatewayError {
  return new GatewayError('client_stalled', `the client read nothing for ${seconds(ms)} (timeouts.idle)`)
}

/**
 * 504, and no retry by the client: it would wait as long again.
 *
 * @param ms the limit that was passed
 */
export function totalTimeout(ms: number): GatewayError {
  return new GatewayError('total_timeout', `the request took longer than ${seconds(ms)} (timeouts.total)`, {
    headers: { 'x-should-retry': 'false' },
  })
}

function seconds(ms: number): string {
  return `${ms / 1000} s`
}
