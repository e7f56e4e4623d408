import { counted } from './amounts.ts'
import type { Claim } from './scope.ts'
import type { LimitClock, Outcome, Reservation } from './types.ts'

/** What one request took, from each scope that bears on it. */
export class Claims implements Reservation {
  #claims: readonly Claim[]
  #runs = true
  readonly #clock: LimitClock

  constructor(claims: readonly Claim[], clock: LimitClock) {
    this.#claims = claims
    this.#clock = clock
  }

  leave(): void {
    if (!this.#runs) return
    this.#runs = false
    for (const { scope } of this.#claims) scope.leave()
  }

  settle(told: Outcome): void {
    this.leave()
    const outcome = counted(told)
    const claims = this.#claims
    this.#claims = []
    const mono = Math.floor(this.#clock.monotonic())
    for (const claim of claims) claim.scope.settle(claim, outcome, mono)
  }

  release(): void {
    this.settle({ tokens: 0, pico: 0n })
  }
}
