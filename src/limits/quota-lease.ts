import { notNegative, toCount, MultiScopeReservation } from './reservation.ts'
import type { ScopeLease } from './scope.ts'
import type { Estimate, LimitClock, LeaseSize, Reservation } from './types.ts'

/** Short, because no other worker can use the unused part of a lease. */
export const MAX_LEASE_MS = 100
/** A lease for fewer requests is not worth its messages. */
export const MIN_LEASE_REQUESTS = 4

/** The used part of a lease. Tokens and picodollars (1e-12 USD) are those of ended requests. */
export interface LeaseSettlement {
  readonly requests: number
  readonly tokens: number
  readonly pico: bigint
  /** The reserved amounts of each open request. */
  readonly open: readonly Estimate[]
}

/**
 * Quota with which a worker admits requests of one key and model without asking for each. The limits count it like those
 * requests; settlement returns unused quota as if it had never been reserved.
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

  /** Ends the lease; called once. @returns a reservation for each open request, in the order of `open` */
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
