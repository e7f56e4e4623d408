import { MIN_LEASE_REQUESTS } from '../quota-lease.ts'
import type { Estimate, LimitedKey, RateLimitStates, RateLimitState } from '../types.ts'
import type { WorkerLease, WorkerReservation } from './worker-lease.ts'

/** Milliseconds within which a second request makes a third one likely. */
const BURST_WINDOW_MS = 100
/** Minimum and maximum number of requests that a lease is requested for. */
const INITIAL_LEASE_REQUESTS = 16
const MAX_LEASE_REQUESTS = 256

/** A worker's state for one key and model: the latest rate-limit states, and the lease. */
export class KeyModelState<Waiting> {
  /** The key, with the limits for which the leases were granted. */
  readonly key: LimitedKey
  lease: WorkerLease | null = null
  #rateLimitStates: RateLimitStates
  /** When the lease server sent the rate-limit states, ms of the monotonic clock. */
  #statedAt: number
  /** The lease that the rate-limit states already count as used. */
  #countedLease: WorkerLease | null = null
  #lastRequestAt = -Infinity
  #isLeaseRequested = false
  /** Whether the last requested lease was granted. */
  #wasLeaseGranted = false
  #waiting: Waiting[] = []
  #nextLeaseRequests = INITIAL_LEASE_REQUESTS

  /** @param now ms of a monotonic clock */
  constructor(key: LimitedKey, rateLimits: RateLimitStates, now: number) {
    this.key = key
    this.#rateLimitStates = rateLimits
    this.#statedAt = now
  }

  /**
   * Admits a request on the lease. While some of it is left, one request asks for the
   * next lease, and the others do not wait for it.
   * @param now ms of a monotonic clock
   * @returns null where the lease server has to be asked
   */
  admit(estimate: Estimate, now: number): WorkerReservation | null {
    if (this.lease === null || (this.lease.needsRenewal(now) && !this.#isLeaseRequested)) return null
    return this.lease.admit(estimate, now)
  }

  /** The lease server is about to be asked. @returns for how many further requests a lease is wanted */
  startLimiterRequest(now: number): number {
    const isSoon = now - this.#lastRequestAt < BURST_WINDOW_MS
    this.#lastRequestAt = now
    if (!isSoon || this.#isLeaseRequested) return 0
    this.#isLeaseRequested = true
    return this.#nextLeaseRequests
  }

  /**
   * Makes a request wait for the requested lease: this takes no longer than asking the lease server.
   * If the last lease was not granted, this one probably is not either, so the request does not wait.
   * @returns false = ask the lease server: no lease is requested, or its size is taken by waiting requests
   */
  waitForLease(waiting: Waiting): boolean {
    if (!this.#isLeaseRequested || !this.#wasLeaseGranted || this.#waiting.length >= this.#nextLeaseRequests) return false
    this.#waiting.push(waiting)
    return true
  }

  updateRateLimitStates(rateLimits: RateLimitStates, now: number): void {
    this.#rateLimitStates = rateLimits
    this.#statedAt = now
    this.#countedLease = this.lease
  }

  /** The lease was granted or not. @returns the requests that waited for it, in their order */
  leaseReplied(isGranted: boolean): readonly Waiting[] {
    const waiting = this.#waiting
    this.#isLeaseRequested = false
    this.#wasLeaseGranted = isGranted
    this.#waiting = []
    return waiting
  }

  /** The lease has ended. Its use decides the size of the next one. */
  leaseEnded(lease: WorkerLease): void {
    this.#rateLimitStates = this.#subtractLease(lease)
    this.lease = this.#countedLease = null
    const { admitted, isMostlyUsed } = lease
    this.#nextLeaseRequests = isMostlyUsed ? Math.min(MAX_LEASE_REQUESTS, admitted * 2) : Math.max(MIN_LEASE_REQUESTS, admitted)
  }

  /** The latest states, minus later admissions on a lease, plus renewal since then. */
  rateLimitStates(now: number): RateLimitStates {
    const { requests, tokens } = this.lease === null ? this.#rateLimitStates : this.#subtractLease(this.lease)
    const elapsedMs = now - this.#statedAt
    return { requests: afterTime(requests, elapsedMs), tokens: afterTime(tokens, elapsedMs) }
  }

  #subtractLease(lease: WorkerLease): RateLimitStates {
    const { requests, tokens } = this.#rateLimitStates
    if (lease === this.#countedLease) return this.#rateLimitStates
    return { requests: subtractTaken(requests, lease.admitted), tokens: subtractTaken(tokens, lease.takenTokens) }
  }
}

function subtractTaken(rateLimits: RateLimitState | null, taken: number): RateLimitState | null {
  return rateLimits === null ? null : { ...rateLimits, remaining: Math.max(0, rateLimits.remaining - taken) }
}

/** Rate limits renew evenly within a minute. */
function afterTime(rateLimits: RateLimitState | null, elapsedMs: number): RateLimitState | null {
  if (rateLimits === null || elapsedMs < 1) return rateLimits
  const { limit, remaining } = rateLimits
  const resetMs = Math.max(0, Math.ceil(rateLimits.resetMs - elapsedMs))
  const freed = Math.floor(limit * elapsedMs / 60_000)
  const unused = Math.floor(limit - resetMs * limit / 60_000)
  return { limit, remaining: Math.max(0, Math.min(remaining + freed, unused)), resetMs }
}
