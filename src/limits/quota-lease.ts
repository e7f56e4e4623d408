import { notNegative, toCount, MultiScopeReservation } from './reservation.ts'
import type { ScopeLease } from './scope.ts'
import type { Estimate, LimitClock, LeaseSize, Reservation } from './types.ts'

/** Maximum lifetime of a lease. Short, because other workers cannot use the unused part of a lease. */
export const MAX_LEASE_MS = 100
/** Minimum requests of a lease. A smaller lease would save fewer messages than it needs. */
export const MIN_LEASE_REQUESTS = 4

/** The used part of a lease. `tokens` and `pico` (1e-12 USD) count only ended requests. */
export interface LeaseSettlement {
  readonly requests: number
  readonly tokens: number
  readonly pico: bigint
  /** The reserved amounts of each request that is still open. */
  readonly open: readonly Estimate[]
}

/**
 * Quota with which a worker admits requests of one key and model without asking the lease server for each request. The limits count the
 * quota as used. Settlement returns the unused part as if it had not been reserved.
 */
export class QuotaLease {
  readonly size: LeaseSize
  readonly lifetimeMs: number
  readonly #scopeLeases: readonly ScopeLease[]
  readonly #clock: LimitClock

  constructor(size: LeaseSize, lifetimeMs: number, lease: readonly ScopeLease[], clock: LimitClock) {
    this.size = size
    this.lifetimeMs = lifetimeMs
    this.#scopeLeases = lease
    this.#clock = clock
  }

  /** Ends the lease. Call this once. @returns a reservation for each open request, in the order of `open` */
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
