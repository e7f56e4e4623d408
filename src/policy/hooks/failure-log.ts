import type { Logger } from 'pino'
import type { Clock } from '../../base/clock.ts'

const INTERVAL_MS = 60_000

/** Logs what fails in a hook: the first failure at once, then at most one line a minute with the number since the last line. */
export class FailureLog {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #log: Logger
  readonly #hook: string
  readonly #message: string
  #loggedAt = -Infinity
  #count = 0

  constructor(clock: Pick<Clock, 'monotonic'>, log: Logger, hook: string, message: string) {
    this.#clock = clock
    this.#log = log
    this.#hook = hook
    this.#message = message
  }

  /** @param why for the operator; has no text of a request */
  note(why: string): void {
    this.#count++
    const now = this.#clock.monotonic()
    if (now - this.#loggedAt < INTERVAL_MS) return
    this.#log.warn({ hook: this.#hook, why, count: this.#count }, `hook ${this.#hook}: ${this.#message}`)
    this.#loggedAt = now
    this.#count = 0
  }
}
