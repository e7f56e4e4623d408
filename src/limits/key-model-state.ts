import type { Limits } from '../config/types.ts'
import { MIN_LEASE_REQUESTS } from './quota-lease.ts'
import type { Estimate, RateLimitStates, RateLimitState } from './types.ts'
import type { WorkerLease, WorkerReservation } from './worker-lease.ts'

/** Milliseconds within which a second request makes a third one likely. */
const BURST_WINDOW_MS = 100
/** Requests that a loan is asked for, at first and at most. */
const INITIAL_LEASE_REQUESTS = 16
const MAX_LEASE_REQUESTS = 256

/** What a worker knows of one key with one model: the latest figures, and a loan if it has one. */
export class KeyModelState<Waiting> {
  /** The key's own, under which its loans are lent. */
  readonly limits: Limits | null
  lease: WorkerLease | null = null
  #rateLimitStates: RateLimitStates
  /** The loan that the figures count as used, all of it. */
  #countedLease: WorkerLease | null = null
  #lastRequestAt = -Infinity
  #isLeaseRequested = false
  /** Whether the last loan that was asked for came. */
  #wasLeaseGranted = false
  #waiting: Waiting[] = []
  #nextLeaseRequests = INITIAL_LEASE_REQUESTS

  constructor(limits: Limits | null, figures: RateLimitStates) {
    this.limits = limits
    this.#rateLimitStates = figures
  }

  /**
   * Admits a request on its loan. While there is something left, one request asks for
   * the next loan, and the others need not wait for that.
   *
   * @param now milliseconds of a monotonic clock
   * @returns null where the limits are to be asked
   */
  admit(estimate: Estimate, now: number): WorkerReservation | null {
    if (this.lease === null || (this.lease.needsRenewal(now) && !this.#isLeaseRequested)) return null
    return this.lease.admit(estimate, now)
  }

  /** The limits are about to be asked. @returns for how many further requests a loan is wanted */
  startLimiterRequest(now: number): number {
    const isSoon = now - this.#lastRequestAt < BURST_WINDOW_MS
    this.#lastRequestAt = now
    if (!isSoon || this.#isLeaseRequested) return 0
    this.#isLeaseRequested = true
    return this.#nextLeaseRequests
  }

  /**
   * Has a request wait for the loan that is on its way, which takes no longer than to ask for itself.
   * Where the loan before did not come, this one is unlikely to, and who had waited would ask all the same.
   *
   * @returns false where it is to ask: no loan is on its way, or as many wait as that is for
   */
  waitForLease(waiting: Waiting): boolean {
    if (!this.#isLeaseRequested || !this.#wasLeaseGranted || this.#waiting.length >= this.#nextLeaseRequests) return false
    this.#waiting.push(waiting)
    return true
  }

  updateRateLimitStates(figures: RateLimitStates): void {
    this.#rateLimitStates = figures
    this.#countedLease = this.lease
  }

  /** The loan that was asked for has come, or is none. @returns those who waited for it, in their order */
  leaseReplied(isLent: boolean): readonly Waiting[] {
    const waiting = this.#waiting
    this.#isLeaseRequested = false
    this.#wasLeaseGranted = isLent
    this.#waiting = []
    return waiting
  }

  /** A loan has ended: how much of it was used tells how large the next one should be. */
  leaseEnded(loan: WorkerLease): void {
    this.#rateLimitStates = this.#subtractLease(loan)
    this.lease = this.#countedLease = null
    const { admitted, isMostlyUsed } = loan
    this.#nextLeaseRequests = isMostlyUsed ? Math.min(MAX_LEASE_REQUESTS, admitted * 2) : Math.max(MIN_LEASE_REQUESTS, admitted)
  }

  rateLimitStates(): RateLimitStates {
    return this.lease === null ? this.#rateLimitStates : this.#subtractLease(this.lease)
  }

  #subtractLease(loan: WorkerLease): RateLimitStates {
    const { requests, tokens } = this.#rateLimitStates
    if (loan === this.#countedLease) return this.#rateLimitStates
    return { requests: subtractTaken(requests, loan.admitted), tokens: subtractTaken(tokens, loan.takenTokens) }
  }
}

function subtractTaken(figures: RateLimitState | null, taken: number): RateLimitState | null {
  return figures === null ? null : { ...figures, remaining: Math.max(0, figures.remaining - taken) }
}
