import { systemClock } from '../base/clock.ts'
import type { Clock } from '../base/clock.ts'
import type { LedgerFailure, LedgerFailureCode } from './ledger-failure.ts'

/** ms after which a lasting problem is reported again. */
const REMINDER_MS = 60_000

/** Tells of trouble at each change of its cause, and again each minute while it goes on. */
export class Alarm {
  readonly #report: (trouble: LedgerFailure) => void
  readonly #clock: Pick<Clock, 'monotonic' | 'wall'>
  /** When each was reported, on the monotonic clock, which a changed date does not affect. */
  readonly #reportedAt = new Map<LedgerFailureCode, number>()
  #last: (LedgerFailure & { readonly at: number }) | null = null

  constructor(tell: (trouble: LedgerFailure) => void, clock: Pick<Clock, 'monotonic' | 'wall'> = systemClock) {
    this.#report = tell
    this.#clock = clock
  }

  /** The last trouble, with its time (ms since 1970); it may be over. */
  get last(): (LedgerFailure & { readonly at: number }) | null {
    return this.#last
  }

  raise(trouble: LedgerFailure): void {
    this.#last = { ...trouble, at: this.#clock.wall() }
    const now = this.#clock.monotonic()
    const told = this.#reportedAt.get(trouble.code)
    if (told !== undefined && now - told < REMINDER_MS) return
    this.#reportedAt.set(trouble.code, now)
    this.#report(trouble)
  }

  /** The problem is over: the next one is reported at once. */
  end(): void {
    this.#reportedAt.clear()
  }
}
