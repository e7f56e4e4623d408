import { MIN_LEASE_REQUESTS } from '../quota-lease.ts'
import type { Estimate, LimitedKey, RateLimitStates, RateLimitState } from '../types.ts'
import type { WorkerLease, WorkerReservation } from './worker-lease.ts'

/** Milliseconds. If two requests are closer together, a third request is likely, so a lease is requested. */
const BURST_WINDOW_MS = 100
/** Requests in the first lease. Later leases have up to MAX_LEASE_REQUESTS requests. */
const INITIAL_LEASE_REQUESTS = 16
const MAX_LEASE_REQUESTS = 256

/** A worker's lease and rate-limit states for one key and model. */
export class KeyModelState<Waiting> {
  /** The key with the limits for which the lease was granted. */
  readonly key: LimitedKey
  lease: WorkerLease | null = null
  #rateLimitStates: RateLimitStates
  /** When `#rateLimitStates` was set, ms on a monotonic clock. */
  #statedAt: number
  /** The lease whose quota the rate-limit states count already; null = none. */
  #countedLease: WorkerLease | null = null
  #lastRequestAt = -Infinity
  #isLeaseRequested = false
  #wasLeaseGranted = false
  #waiting: Waiting[] = []
  #nextLeaseRequests = INITIAL_LEASE_REQUESTS

  constructor(key: LimitedKey, rateLimits: RateLimitStates, now: number) {
    this.key = key
    this.#rateLimitStates = rateLimits
    this.#statedAt = now
  }

  /**
   * Admits a request with the lease. If little of the lease is left, one request asks the lease server for the next lease, and other
   * requests use the rest.
   * @returns null = ask the lease server
   */
  admit(estimate: Estimate, now: number): WorkerReservation | null {
    if (this.lease === null || (this.lease.needsRenewal(now) && !this.#isLeaseRequested)) return null
    return this.lease.admit(estimate, now)
  }

  /** Call this before each message to the lease server. @returns the number of requests in the lease to ask for; 0 = ask for no lease */
  startLimiterRequest(now: number): number {
    const isSoon = now - this.#lastRequestAt < BURST_WINDOW_MS
    this.#lastRequestAt = now
    if (!isSoon || this.#isLeaseRequested) return 0
    this.#isLeaseRequested = true
    return this.#nextLeaseRequests
  }

  /**
   * Makes a request wait for the lease that was requested, which takes no longer than asking the lease server.
   * @returns false = ask the lease server: no lease is requested, the last one was not granted, or waiting requests need the whole lease
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

  /** @returns the requests that waited for the lease, in order */
  leaseReplied(isGranted: boolean): readonly Waiting[] {
    const waiting = this.#waiting
    this.#isLeaseRequested = false
    this.#wasLeaseGranted = isGranted
    this.#waiting = []
    return waiting
  }

  /** Sets the size of the next lease by the use of the ended lease. */
  leaseEnded(lease: WorkerLease): void {
    this.#rateLimitStates = this.#subtractLease(lease)
    this.lease = this.#countedLease = null
    const { admitted, isMostlyUsed } = lease
    this.#nextLeaseRequests = isMostlyUsed ? Math.min(MAX_LEASE_REQUESTS, admitted * 2) : Math.max(MIN_LEASE_REQUESTS, admitted)
  }

  /** The latest states from the lease server, minus later admissions with a lease, plus the renewal since then. */
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

/** Adds the renewal of `elapsedMs`: rate limits renew evenly within a minute. */
function afterTime(rateLimits: RateLimitState | null, elapsedMs: number): RateLimitState | null {
  if (rateLimits === null || elapsedMs < 1) return rateLimits
  const { limit, remaining } = rateLimits
  const resetMs = Math.max(0, Math.ceil(rateLimits.resetMs - elapsedMs))
  const freed = Math.floor(limit * elapsedMs / 60_000)
  const unused = Math.floor(limit - resetMs * limit / 60_000)
  return { limit, remaining: Math.max(0, Math.min(remaining + freed, unused)), resetMs }
}
