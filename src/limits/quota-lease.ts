import { notNegative, whole } from './amounts.ts'
import { Claims } from './multi-scope-reservation.ts'
import type { Lent } from './scope.ts'
import type { Estimate, LimitClock, LoanSize, Reservation } from './types.ts'

/** Milliseconds that a loan lasts at most: what is left of it is of use to nobody else. */
export const LOAN_MS = 100
/** Fewer requests are not worth a loan. */
export const LEAST_LOAN = 4

/** What became of a loan. */
export interface Repayment {
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
export class Loan {
  readonly size: LoanSize
  /** Milliseconds; what begins later belongs elsewhere. */
  readonly lifetimeMs: number
  readonly #lent: readonly Lent[]
  readonly #clock: LimitClock

  constructor(size: LoanSize, lifetimeMs: number, lent: readonly Lent[], clock: LimitClock) {
    this.size = size
    this.lifetimeMs = lifetimeMs
    this.#lent = lent
    this.#clock = clock
  }

  /** Ends the loan; once. @returns a reservation for each that is open, in their order */
  repay({ requests, tokens, pico, open }: Repayment): Reservation[] {
    const mono = Math.floor(this.#clock.monotonic())
    const reservations = open.map(estimate => {
      const part = { tokens: whole(estimate.tokens), pico: notNegative(estimate.pico ?? 0n) }
      return new Claims(this.#lent.map(lent => lent.scope.part(lent, part.tokens, part.pico)), this.#clock)
    })
    const used = { requests, tokens: whole(tokens), pico: notNegative(pico) }
    for (const lent of this.#lent) lent.scope.repay(lent, used, mono)
    return reservations
  }
}
