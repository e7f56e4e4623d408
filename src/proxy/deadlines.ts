import type { Clock, Timer } from '../clock.ts'
import type { Timeouts } from '../config/types.ts'
import { GatewayError } from '../errors.ts'

/** What an attempt waits for just now; each has its own limit and its own error. */
type Phase = 'connect' | 'first_byte' | 'idle' | 'client'

/**
 * The deadlines of one exchange. A byte that passes costs one clock reading:
 * the timer of a phase is left to fire and then looks how long it has really
 * been quiet.
 */
export class Deadlines {
  readonly #clock: Clock
  readonly #timeouts: Timeouts
  readonly #expire: (error: GatewayError) => void
  readonly #startedAt: number
  #total: Timer | null = null
  #timer: Timer | null = null
  #phase: Phase = 'connect'
  #since: number

  /** @param expire called with the timeout's row of the error table: once, unless an attempt begins after it */
  constructor(clock: Clock, timeouts: Timeouts, startedAt: number, expire: (error: GatewayError) => void) {
    this.#clock = clock
    this.#timeouts = timeouts
    this.#startedAt = startedAt
    this.#expire = expire
    this.#since = clock.monotonic()
    this.#count()
  }

  /** Since when the exchange runs, on the monotonic clock. */
  get startedAt(): number {
    return this.#startedAt
  }

  /** Milliseconds since something last happened that a deadline counts from. */
  get quietFor(): number {
    return this.#clock.monotonic() - this.#since
  }

  /** Milliseconds that are left of the total. */
  get left(): number {
    return Math.max(0, this.#startedAt + this.#timeouts.total - this.#clock.monotonic())
  }

  /** An attempt begins, the first one or another. */
  connecting(): void {
    if (this.#total === null) this.#count()
    this.#enter('connect', this.#timeouts.connect)
  }

  /** Nothing is waited for between two attempts; only the total goes on. */
  rest(): void {
    this.#timer?.cancel()
    this.#timer = null
    if (this.#total === null) this.#count()
  }

  /** The request is on its way; no byte of the answer's body has come. */
  waiting(): void {
    this.#enter('first_byte', this.#timeouts.firstByte)
  }

  /** A byte came from the upstream. */
  upstreamActive(): void {
    this.#turn('idle')
  }

  /** The client does not take what is ready for it. */
  clientBlocked(): void {
    this.#turn('client')
  }

  /** The client reads again. */
  clientActive(): void {
    this.#turn('idle')
  }

  stop(): void {
    this.#total?.cancel()
    this.#total = null
    this.#timer?.cancel()
    this.#timer = null
  }

  #count(): void {
    this.#total = this.#clock.setTimeout(() => this.#fire(totalTimeout(this.#timeouts.total)), this.left)
  }

  #enter(phase: Phase, limit: number): void {
    this.#timer?.cancel()
    this.#phase = phase
    this.#since = this.#clock.monotonic()
    this.#timer = this.#clock.setTimeout(() => this.#check(limit), limit)
  }

  /** From one side's idleness to the other's: both have the same limit, and share a timer. */
  #turn(phase: 'idle' | 'client'): void {
    if (this.#phase !== 'idle' && this.#phase !== 'client') {
      this.#enter(phase, this.#timeouts.idle)
      return
    }
    this.#phase = phase
    this.#since = this.#clock.monotonic()
  }

  #check(limit: number): void {
    const left = this.#since + limit - this.#clock.monotonic()
    // Half a millisecond: timers fire on whole ones.
    if (left > 0.5) this.#timer = this.#clock.setTimeout(() => this.#check(limit), left)
    else this.#fire(expired(this.#phase, limit))
  }

  #fire(error: GatewayError): void {
    this.stop()
    this.#expire(error)
  }
}

function expired(phase: Phase, ms: number): GatewayError {
  switch (phase) {
    case 'connect':
      return new GatewayError('connect_timeout', `no connection to the upstream within ${seconds(ms)}`)
    case 'first_byte':
      return new GatewayError('first_byte_timeout', `the upstream sent nothing within ${seconds(ms)}`)
    case 'idle':
      return new GatewayError('idle_timeout', `the upstream sent nothing more for ${seconds(ms)}`)
    case 'client':
      return new GatewayError('client_stalled', `the client read nothing for ${seconds(ms)}`)
  }
}

/**
 * 504, and no retry by the client: it would wait as long again.
 *
 * @param ms the limit that was passed
 */
export function totalTimeout(ms: number): GatewayError {
  return new GatewayError('total_timeout', `the request took longer than ${seconds(ms)}`, {
    headers: { 'x-should-retry': 'false' },
  })
}

function seconds(ms: number): string {
  return `${ms / 1000} s`
}
