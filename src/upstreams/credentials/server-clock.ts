import type { Clock } from '../../base/clock.ts'
import type { HeaderList } from './credential.ts'

/** Milliseconds. A smaller difference between the clocks is ignored. AWS refuses a signature if the difference is five minutes. */
const MAX_SKEW = 60_000

/** Estimates the time on the clock of an upstream or a token server, because a signature must contain that time. */
export class ServerClock {
  readonly #clock: Clock
  #offset = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Milliseconds by which the server's clock is ahead of this machine's clock, by the last response. */
  get offset(): number {
    return this.#offset
  }

  /** ms since 1970 */
  get now(): number {
    return this.#clock.wall() + this.#offset
  }

  observe(headers: HeaderList): void {
    const at = headers.findIndex((name, i) => i % 2 === 0 && name.length === 4 && name.toLowerCase() === 'date')
    if (at === -1) return
    const date = Date.parse(headers[at + 1] as string)
    if (Math.abs(date - this.now) > MAX_SKEW) this.#offset = date - this.#clock.wall()
  }
}
