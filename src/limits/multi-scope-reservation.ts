import { normalizeUsage } from './amounts.ts'
import type { ScopeReservation } from './scope.ts'
import type { LimitClock, ActualUsage, Reservation } from './types.ts'

/** What one request took, from each scope that bears on it. */
export class MultiScopeReservation implements Reservation {
  #reservations: readonly ScopeReservation[]
  #isRunning = true
  readonly #clock: LimitClock

  constructor(claims: readonly ScopeReservation[], clock: LimitClock) {
    this.#reservations = claims
    this.#clock = clock
  }

  releaseConcurrency(): void {
    if (!this.#isRunning) return
    this.#isRunning = false
    for (const { scope } of this.#reservations) scope.releaseConcurrency()
  }

  settle(reported: ActualUsage): void {
    this.releaseConcurrency()
    const outcome = normalizeUsage(reported)
    const claims = this.#reservations
    this.#reservations = []
    const mono = Math.floor(this.#clock.monotonic())
    for (const claim of claims) claim.scope.settle(claim, outcome, mono)
  }

  release(): void {
    this.settle({ tokens: 0, pico: 0n })
  }
}
