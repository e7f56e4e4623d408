import { Slots } from '../base/slots.ts'
import { normalizeUsage, normalizeEstimate } from './amounts.ts'
import type { GrantedLease, LimiterRequest } from './messages.ts'
import type { Estimate, ActualUsage, Reservation } from './types.ts'

/** What an admitted request holds in a worker: as part of a loan, or at a number of its own. */
export class WorkerReservation implements Reservation {
  readonly estimate: Estimate
  /** Where its end is told; null once it has been. */
  #owner: ReservationOwner | null = null
  /** Its place there. */
  #slot = 0
  #isRunning = true

  constructor(estimate: Estimate) {
    this.estimate = estimate
  }

  get isRunning(): boolean {
    return this.#isRunning
  }

  /** From now on its end is told there. */
  assignOwner(holder: ReservationOwner, at: number): void {
    this.#owner = holder
    this.#slot = at
  }

  releaseConcurrency(): void {
    if (!this.#isRunning) return
    this.#isRunning = false
    this.#owner?.concurrencyReleased(this.#slot)
  }

  settle(outcome: ActualUsage): void {
    const holder = this.#owner
    this.#owner = null
    this.#isRunning = false
    holder?.settled(this.#slot, outcome)
  }

  release(): void {
    this.settle({ tokens: 0, pico: 0n })
  }
}

/** Who is told of the end of a request. */
export interface ReservationOwner {
  /** It runs no more, and is settled later. */
  concurrencyReleased(at: number): void
  settled(at: number, outcome: ActualUsage): void
}

/** What has been used of a loan, or of its time, when it is time to ask for the next. */
const RENEWAL_THRESHOLD = 3 / 4

/** A loan in the hands of the worker that has it: requests are admitted on it, and its use is summed up. */
export class WorkerLease implements ReservationOwner {
  /** Its number. */
  readonly leaseId: number
  readonly #expiresAt: number
  readonly #renewFrom: number
  readonly #requests: number
  #tokens: number | null
  #pico: bigint | null
  #admitted = 0
  #takenTokens = 0
  #usedPico = 0n
  readonly #open = new Slots<WorkerReservation>()

  /** @param now milliseconds of a monotonic clock */
  constructor({ leaseId: loan, requests, tokens, pico, lifetimeMs }: GrantedLease, now: number) {
    this.leaseId = loan
    this.#expiresAt = now + lifetimeMs
    this.#renewFrom = now + lifetimeMs * RENEWAL_THRESHOLD
    this.#requests = requests
    this.#tokens = tokens
    this.#pico = pico
  }

  /** How many requests were admitted on it. */
  get admitted(): number {
    return this.#admitted
  }

  get isMostlyUsed(): boolean {
    return this.#admitted >= this.#requests * RENEWAL_THRESHOLD
  }

  needsRenewal(now: number): boolean {
    return this.isMostlyUsed || now >= this.#renewFrom
  }

  /** What those used that have ended, and the worst cases of the others. */
  get takenTokens(): number {
    return this.#takenTokens
  }

  /** Admits a request, if what is left is enough for it. @returns null if it is not */
  admit(estimate: Estimate, now: number): WorkerReservation | null {
    if (this.#admitted === this.#requests || now >= this.#expiresAt) return null
    const worst = normalizeEstimate(estimate)
    const { tokens, pico } = worst
    if (this.#tokens !== null && tokens > this.#tokens) return null
    if (this.#pico !== null && (pico === null || pico > this.#pico)) return null
    this.#admitted++
    this.#takenTokens += tokens
    if (this.#tokens !== null) this.#tokens -= tokens
    if (this.#pico !== null) this.#pico -= pico ?? 0n
    const held = new WorkerReservation(worst)
    held.assignOwner(this, this.#open.add(held))
    return held
  }

  /** Its turn goes back with the loan. */
  concurrencyReleased(): void {}

  settled(at: number, outcome: ActualUsage): void {
    const held = this.#open.at(at)
    if (held === null) return
    this.#open.delete(at)
    const { tokens, pico } = normalizeUsage(outcome)
    if (tokens !== null) this.#takenTokens += tokens - held.estimate.tokens
    this.#usedPico += pico ?? held.estimate.pico ?? 0n
  }

  /** Ends the loan: those still open are told elsewhere from now on, each at the number that it gets. */
  close(holder: ReservationOwner, numberOf: (held: WorkerReservation) => number): LimiterRequest & { kind: 'repay' } {
    let usedTokens = this.#takenTokens
    const open = Array.from(this.#open, held => {
      const id = numberOf(held)
      held.assignOwner(holder, id)
      const { tokens, pico } = held.estimate
      usedTokens -= tokens
      return { id, tokens, pico, runs: held.isRunning }
    })
    const used = { requests: this.#admitted, tokens: usedTokens, pico: this.#usedPico }
    return { kind: 'repay', loan: this.leaseId, ...used, open }
  }
}
