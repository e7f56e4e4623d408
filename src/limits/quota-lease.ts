import { notNegative, toCount } from './amounts.ts'
import { MultiScopeReservation } from './multi-scope-reservation.ts'
import type { ScopeLease } from './scope.ts'
import type { Estimate, LimitClock, LeaseSize, Reservation } from './types.ts'

/** Milliseconds that a loan lasts at most: what is left of it is of use to nobody else. */
export const MAX_LEASE_MS = 100
/** Fewer requests are not worth a loan. */
export const MIN_LEASE_REQUESTS = 4

/** What became of a loan. */
export interface LeaseSettlement {
  /** Those that were admitted, all of them. */
  readonly requests: number
  /** What those used that have ended; 1e-12 USD. */
  readonly tokens: number
  readonly pico: bigint
  /** Those that have not: what was set aside for each. */
  readonly open: readonly Estimate[]
}

/**
 * What is set aside for requests of one key and model that somebody else admits,
 * without asking for each. It is taken from the limits as those requests would
 * take it, and what they did not take is given back as if it never had been.
 */
export class QuotaLease {
  readonly size: LeaseSize
  /** Milliseconds; what begins later belongs elsewhere. */
  readonly lifetimeMs: number
  readonly #scopeLeases: readonly ScopeLease[]
  readonly #clock: LimitClock

  constructor(size: LeaseSize, lifetimeMs: number, lent: readonly ScopeLease[], clock: LimitClock) {
    this.size = size
    this.lifetimeMs = lifetimeMs
    this.#scopeLeases = lent
    this.#clock = clock
  }

  /** Ends the loan; once. @returns a reservation for each that is open, in their order */
  settle({ requests, tokens, pico, open }: LeaseSettlement): Reservation[] {
    const mono = Math.floor(this.#clock.monotonic())
    const reservations = open.map(estimate => {
      const part = { tokens: toCount(estimate.tokens), pico: notNegative(estimate.pico ?? 0n) }
      return new MultiScopeReservation(this.#scopeLeases.map(lent => lent.scope.splitLease(lent, part.tokens, part.pico)), this.#clock)
    })
    const used = { requests, tokens: toCount(tokens), pico: notNegative(pico) }
    for (const lent of this.#scopeLeases) lent.scope.settleLease(lent, used, mono)
    return reservations
  }
}
