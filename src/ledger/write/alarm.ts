import { systemClock, type Clock } from '../../base/clock.ts'
import type { LedgerFailure, LedgerFailureCode } from '../ledger-failure.ts'

const REMINDER_MS = 60_000

/** Reports a failure when its cause changes, and once a minute while the failure lasts. */
export class Alarm {
  readonly #report: (failure: LedgerFailure) => void
  readonly #clock: Pick<Clock, 'monotonic' | 'wall'>
  /** When each cause was last reported, on the monotonic clock, because the date can change. */
  readonly #reportedAt = new Map<LedgerFailureCode, number>()
  #last: (LedgerFailure & { readonly at: number }) | null = null

  constructor(report: (failure: LedgerFailure) => void, clock: Pick<Clock, 'monotonic' | 'wall'> = systemClock) {
    this.#report = report
    this.#clock = clock
  }

  /** The last failure, which may be over, with its time (ms since 1970); null = none. */
  get last(): (LedgerFailure & { readonly at: number }) | null {
    return this.#last
  }

  raise(failure: LedgerFailure): void {
    this.#last = { ...failure, at: this.#clock.wall() }
    const now = this.#clock.monotonic()
    const reportedAt = this.#reportedAt.get(failure.code)
    if (reportedAt !== undefined && now - reportedAt < REMINDER_MS) return
    this.#reportedAt.set(failure.code, now)
    this.#report(failure)
  }

  /** Call this when the failure is over. The next failure is reported at once. */
  end(): void {
    this.#reportedAt.clear()
  }
}
