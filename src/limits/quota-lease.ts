import { notNegative, toCount, MultiScopeReservation } from './reservation.ts'
import type { ScopeLease } from './scope.ts'
import type { Estimate, LimitClock, LeaseSize, Reservation } from './types.ts'

/** Maximum ms that a lease lasts: until then no other worker can use its unused part. */
export const MAX_LEASE_MS = 100
/** A lease for fewer requests is not worth its messages. */
export const MIN_LEASE_REQUESTS = 4

/** The used part of a lease. */
export interface LeaseSettlement {
  /** Number of admitted requests. */
  readonly requests: number
  /** Tokens of the ended requests. */
  readonly tokens: number
  /** Picodollars (1e-12 USD) of the ended requests. */
  readonly pico: bigint
  /** The reserved amounts of each request that is still open. */
  readonly open: readonly Estimate[]
}

/**
 * Quota that is reserved for requests of one key and model, which a worker admits
 * without asking for each. It is taken from the limits as those requests would
 * take it. What they did not use is returned as if it had never been reserved.
 */
export class QuotaLease {
  readonly size: LeaseSize
  /** ms; later requests need another lease. */
  readonly lifetimeMs: number
  readonly #scopeLeases: readonly ScopeLease[]
  readonly #clock: LimitClock

  constructor(size: LeaseSize, lifetimeMs: number, lease: readonly ScopeLease[], clock: LimitClock) {
    this.size = size
    this.lifetimeMs = lifetimeMs
    this.#scopeLeases = lease
    this.#clock = clock
  }

  /** Ends the lease; called once. @returns a reservation for each open request, in their order */
  settle({ requests, tokens, pico, open }: LeaseSettlement): Reservation[] {
    const mono = Math.floor(this.#clock.monotonic())
    const reservations = open.map(estimate => {
      const part = { tokens: toCount(estimate.tokens), pico: notNegative(estimate.pico ?? 0n) }
      return new MultiScopeReservation(this.#scopeLeases.map(lease => lease.scope.splitLease(lease, part.tokens, part.pico)), this.#clock)
    })
    const used = { requests, tokens: toCount(tokens), pico: notNegative(pico) }
    for (const lease of this.#scopeLeases) lease.scope.settleLease(lease, used, mono)
    return reservations
  }
}
