import type { Clock, Timer } from '../../base/clock.ts'
import { GatewayError } from '../../base/errors.ts'
import type { Timeouts } from '../../config/types.ts'

/** The phases of an attempt. Each phase has its own timeout and error. */
type Phase = 'connect' | 'first_byte' | 'idle' | 'client'

/** The deadlines of one exchange, with one timer. The end of a phase does not cancel the timer, which checks what is due when it fires. */
export class Deadlines {
  readonly clock: Clock
  readonly #timeouts: Timeouts
  readonly #expire: (error: GatewayError) => void
  /** Milliseconds on the monotonic clock. */
  readonly #endsAt: number
  #timer: Timer | null = null
  /** Milliseconds on the monotonic clock. */
  #firesAt = 0
  /** null = between two attempts, where only the total timeout applies. */
  #phase: Phase | null = null
  #limit = 0
  #since: number

  /** @param expire called with the error when a deadline has passed; called again only if another phase begins after that */
  constructor(clock: Clock, timeouts: Timeouts, startedAt: number, expire: (error: GatewayError) => void) {
    this.clock = clock
    this.#timeouts = timeouts
    this.#endsAt = startedAt + timeouts.total
    this.#expire = expire
    this.#since = clock.monotonic()
  }

  /** Milliseconds since the current phase began or, in an idle phase, since the last activity. */
  get idleMs(): number {
    return this.clock.monotonic() - this.#since
  }

  /** Milliseconds left of the total timeout. */
  get remaining(): number {
    return Math.max(0, this.#endsAt - this.clock.monotonic())
  }

  connecting(): void {
    this.#enter('connect', this.#timeouts.connect)
  }

  betweenAttempts(): void {
    this.#phase = null
    this.#watch(this.clock.monotonic())
  }

  /** The request was sent, and no byte of the response's body has arrived yet. */
  waiting(): void {
    this.#enter('first_byte', this.#timeouts.firstByte)
  }

  upstreamActive(): void {
    // This method is called for each chunk, so it must be fast.
    if (this.#phase === 'idle') this.#since = this.clock.monotonic()
    else this.#enterIdle('idle')
  }

  /** Bytes are ready for the client, and the client does not read them. */
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

  /** Changes between `idle` and `client` without setting the timer, because both phases have the same timeout. */
  #enterIdle(phase: 'idle' | 'client'): void {
    if (this.#phase !== 'idle' && this.#phase !== 'client') return this.#enter(phase, this.#timeouts.idle)
    this.#phase = phase
    this.#since = this.clock.monotonic()
  }

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
    // Tolerate half a millisecond, because timers fire on whole milliseconds.
    if (this.#endsAt - now <= 0.5) this.#fire(totalTimeout(this.#timeouts.total))
    else if (this.#phase !== null && phaseEndsAt - now <= 0.5) this.#fire(expired(this.#phase, this.#limit))
    else this.#watch(now)
  }

  #fire(error: GatewayError): void {
    this.stop()
    // Clear the phase first, because `#expire` can begin another phase.
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

export function clientStalled(ms: number): GatewayError {
  return new GatewayError('client_stalled', `the client read nothing for ${seconds(ms)} (timeouts.idle)`)
}

/** The error tells SDKs not to retry, because another request would take as long. */
export function totalTimeout(ms: number): GatewayError {
  return new GatewayError('total_timeout', `the request took longer than ${seconds(ms)} (timeouts.total)`, {
    headers: { 'x-should-retry': 'false' },
  })
}

function seconds(ms: number): string {
  return `${ms / 1000} s`
}
