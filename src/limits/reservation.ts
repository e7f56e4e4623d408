import { MAX_PER_MINUTE } from './bucket.ts'
import type { ScopeReservation } from './scope.ts'
import type { ActualUsage, Admission, Estimate, LimitClock, Reservation } from './types.ts'

export class MultiScopeReservation implements Reservation {
  #reservations: readonly ScopeReservation[]
  #isRunning: boolean
  readonly #clock: LimitClock

  /** @param isRunning false = the reservation is for a part of a request, which does not count for concurrency */
  constructor(reservations: readonly ScopeReservation[], clock: LimitClock, isRunning = true) {
    this.#reservations = reservations
    this.#clock = clock
    this.#isRunning = isRunning
  }

  releaseConcurrency(): void {
    if (!this.#isRunning) return
    this.#isRunning = false
    for (const { scope } of this.#reservations) scope.releaseConcurrency()
  }

  settle(reported: ActualUsage): void {
    this.releaseConcurrency()
    const outcome = normalizeUsage(reported)
    const reservations = this.#reservations
    this.#reservations = []
    const mono = Math.floor(this.#clock.monotonic())
    for (const reservation of reservations) reservation.scope.settle(reservation, outcome, mono)
  }

  release(): void {
    this.settle({ tokens: 0, pico: 0n })
  }
}

export const UNLIMITED: Admission = Object.freeze({
  ok: true,
  reservation: Object.freeze({ releaseConcurrency() {}, settle() {}, release() {} }),
})

/** Rounds up to a whole number that a bucket can count. NaN becomes the maximum. */
export function toCount(count: number): number {
  return Number.isNaN(count) ? MAX_PER_MINUTE : Math.min(Math.max(0, Math.ceil(count)), MAX_PER_MINUTE)
}

export function notNegative(pico: bigint): bigint {
  return pico < 0n ? 0n : pico
}

/** Rounds tokens up, and makes negative amounts 0. NaN tokens become the maximum. */
export function normalizeEstimate({ tokens, pico }: Estimate): Estimate {
  return { tokens: toCount(tokens), pico: pico === null ? null : notNegative(pico) }
}

/** Rounds tokens up, and makes negative amounts 0. NaN tokens become unknown. */
export function normalizeUsage({ tokens, pico }: ActualUsage): ActualUsage {
  return { tokens: tokens === null || Number.isNaN(tokens) ? null : toCount(tokens), pico: pico === null ? null : notNegative(pico) }
}
