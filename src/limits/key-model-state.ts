import type { Limits } from '../config/types.ts'
import type { Borrowed, Held } from './worker-lease.ts'
import { LEAST_LOAN } from './quota-lease.ts'
import type { Estimate, Figures, RateFigures } from './types.ts'

/** Milliseconds within which a second request makes a third one likely. */
const SOON_MS = 100
/** Requests that a loan is asked for, at first and at most. */
const FIRST_LOAN = 16
const MOST_LOAN = 256

/** What a worker knows of one key with one model: the latest figures, and a loan if it has one. */
export class Tab<Waiting> {
  /** The key's own, under which its loans are lent. */
  readonly limits: Limits | null
  loan: Borrowed | null = null
  #figures: Figures
  /** The loan that the figures count as used, all of it. */
  #counted: Borrowed | null = null
  #askedAt = -Infinity
  #isLoanAsked = false
  /** Whether the last loan that was asked for came. */
  #isLent = false
  #waiting: Waiting[] = []
  #next = FIRST_LOAN

  constructor(limits: Limits | null, figures: Figures) {
    this.limits = limits
    this.#figures = figures
  }

  /**
   * Admits a request on its loan. While there is something left, one request asks for
   * the next loan, and the others need not wait for that.
   *
   * @param now milliseconds of a monotonic clock
   * @returns null where the limits are to be asked
   */
  admit(estimate: Estimate, now: number): Held | null {
    if (this.loan === null || (this.loan.isLow(now) && !this.#isLoanAsked)) return null
    return this.loan.admit(estimate, now)
  }

  /** The limits are about to be asked. @returns for how many further requests a loan is wanted */
  ask(now: number): number {
    const isSoon = now - this.#askedAt < SOON_MS
    this.#askedAt = now
    if (!isSoon || this.#isLoanAsked) return 0
    this.#isLoanAsked = true
    return this.#next
  }

  /**
   * Has a request wait for the loan that is on its way, which takes no longer than to ask for itself.
   * Where the loan before did not come, this one is unlikely to, and who had waited would ask all the same.
   *
   * @returns false where it is to ask: no loan is on its way, or as many wait as that is for
   */
  wait(waiting: Waiting): boolean {
    if (!this.#isLoanAsked || !this.#isLent || this.#waiting.length >= this.#next) return false
    this.#waiting.push(waiting)
    return true
  }

  answered(figures: Figures): void {
    this.#figures = figures
    this.#counted = this.loan
  }

  /** The loan that was asked for has come, or is none. @returns those who waited for it, in their order */
  lent(isLent: boolean): readonly Waiting[] {
    const waiting = this.#waiting
    this.#isLoanAsked = false
    this.#isLent = isLent
    this.#waiting = []
    return waiting
  }

  /** A loan has ended: how much of it was used tells how large the next one should be. */
  repaid(loan: Borrowed): void {
    this.#figures = this.#less(loan)
    this.loan = this.#counted = null
    const { admitted, isMostlyUsed } = loan
    this.#next = isMostlyUsed ? Math.min(MOST_LOAN, admitted * 2) : Math.max(LEAST_LOAN, admitted)
  }

  figures(): Figures {
    return this.loan === null ? this.#figures : this.#less(this.loan)
  }

  #less(loan: Borrowed): Figures {
    const { requests, tokens } = this.#figures
    if (loan === this.#counted) return this.#figures
    return { requests: less(requests, loan.admitted), tokens: less(tokens, loan.takenTokens) }
  }
}

function less(figures: RateFigures | null, taken: number): RateFigures | null {
  return figures === null ? null : { ...figures, remaining: Math.max(0, figures.remaining - taken) }
}
