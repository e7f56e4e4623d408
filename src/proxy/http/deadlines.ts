import type { Clock, Timer } from '../../base/clock.ts'
import { GatewayError } from '../../base/errors.ts'
import type { Timeouts } from '../../config/types.ts'

/** What an attempt waits for; each phase has its own limit and its own error. */
type Phase = 'connect' | 'first_byte' | 'idle' | 'client'

/**
 * The deadlines of one exchange, on one timer. Each byte costs one reading of the clock. A phase that ends in
 * time costs nothing: the timer fires anyway and then checks which deadline is due. It is set when the first phase
 * begins.
 */
export class Deadlines {
  readonly clock: Clock
  readonly #timeouts: Timeouts
  readonly #expire: (error: GatewayError) => void
  /** When the total time ends, on the monotonic clock. */
  readonly #endsAt: number
  #timer: Timer | null = null
  /** When the timer fires, on the monotonic clock. */
  #firesAt = 0
  /** null between two attempts: only the total time counts. */
  #phase: Phase | null = null
  #limit = 0
  #since: number

  /** @param expire gets the timeout as an error of the table; only once, unless another phase begins after it */
  constructor(clock: Clock, timeouts: Timeouts, startedAt: number, expire: (error: GatewayError) => void) {
    this.clock = clock
    this.#timeouts = timeouts
    this.#endsAt = startedAt + timeouts.total
    this.#expire = expire
    this.#since = clock.monotonic()
  }

  /** Milliseconds since the last event from which a deadline counts. */
  get idleMs(): number {
    return this.clock.monotonic() - this.#since
  }

  /** Milliseconds left of the total time. */
  get remaining(): number {
    return Math.max(0, this.#endsAt - this.clock.monotonic())
  }

  /** An attempt begins. */
  connecting(): void {
    this.#enter('connect', this.#timeouts.connect)
  }

  /** Between two attempts only the total time counts. */
  betweenAttempts(): void {
    this.#phase = null
    this.#watch(this.clock.monotonic())
  }

  /** The request was sent; no byte of the response's body has arrived. */
  waiting(): void {
    this.#enter('first_byte', this.#timeouts.firstByte)
  }

  /** A byte arrived from the upstream. */
  upstreamActive(): void {
    // Kept short: called for each chunk.
    if (this.#phase === 'idle') this.#since = this.clock.monotonic()
    else this.#enterIdle('idle')
  }

  /** The client does not read the bytes that are ready for it. */
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
    if (this.#timer === null || this.#since + limit < this.#firesAt) this.#watch(this.#since)
  }

  /** Switches between waiting for the upstream and for the client: both have the same limit. */
  #enterIdle(phase: 'idle' | 'client'): void {
    if (this.#phase !== 'idle' && this.#phase !== 'client') {
      this.#enter(phase, this.#timeouts.idle)
      return
    }
    this.#phase = phase
    this.#since = this.clock.monotonic()
  }

  /** Ensures that the timer fires at the next deadline or earlier. */
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
    // Half a millisecond of tolerance: timers fire on whole milliseconds.
    if (this.#endsAt - now <= 0.5) this.#fire(totalTimeout(this.#timeouts.total))
    else if (this.#phase !== null && phaseEndsAt - now <= 0.5) this.#fire(expired(this.#phase, this.#limit))
    else this.#watch(now)
  }

  #fire(error: GatewayError): void {
    this.stop()
    // A phase that begins after this one has its own deadline.
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

/** @param ms the limit that was exceeded */
export function clientStalled(ms: number): GatewayError {
  return new GatewayError('client_stalled', `the client read nothing for ${seconds(ms)} (timeouts.idle)`)
}

/**
 * A 504 that clients must not retry: another request would take as long.
 *
 * @param ms the limit that was exceeded
 */
export function totalTimeout(ms: number): GatewayError {
  return new GatewayError('total_timeout', `the request took longer than ${seconds(ms)} (timeouts.total)`, {
    headers: { 'x-should-retry': 'false' },
  })
}

function seconds(ms: number): string {
  return `${ms / 1000} s`
}
