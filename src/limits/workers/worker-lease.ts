import { Slots } from '../../base/slots.ts'
import type { GrantedLease, LimiterRequest } from './lease-messages.ts'
import { normalizeUsage, normalizeEstimate } from '../reservation.ts'
import type { Estimate, ActualUsage, Reservation } from '../types.ts'

/** A reservation in a worker: part of a lease, or with an id of its own. */
export class WorkerReservation implements Reservation {
  readonly estimate: Estimate
  /** Gets a call when the request ends; null after that. */
  #owner: ReservationOwner | null = null
  #slot = 0
  /** Written by this class. */
  isRunning: boolean

  constructor(estimate: Estimate, isRunning = true) {
    this.estimate = estimate
    this.isRunning = isRunning
  }

  assignOwner(owner: ReservationOwner, slot: number): void {
    this.#owner = owner
    this.#slot = slot
  }

  releaseConcurrency(): void {
    if (!this.isRunning) return
    this.isRunning = false
    this.#owner?.concurrencyReleased(this.#slot)
  }

  settle(outcome: ActualUsage): void {
    const owner = this.#owner
    this.#owner = null
    this.isRunning = false
    owner?.settled(this.#slot, outcome)
  }

  release(): void {
    this.settle({ tokens: 0, pico: 0n })
  }
}

/** Gets the calls of a reservation; `settled` ends it. */
export interface ReservationOwner {
  concurrencyReleased(slot: number): void
  settled(slot: number, outcome: ActualUsage): void
}

/** The next lease is requested at this used share of the requests or of the lifetime. */
const RENEWAL_THRESHOLD = 3 / 4

/** A quota lease in its worker. */
export class WorkerLease implements ReservationOwner {
  readonly leaseId: number
  readonly #expiresAt: number
  readonly #renewFrom: number
  readonly #requests: number
  #tokens: number | null
  #pico: bigint | null
  /** Number of admitted requests; written by this class. */
  admitted = 0
  /** Used by ended requests and reserved by running ones; written by this class. */
  takenTokens = 0
  #usedPico = 0n
  readonly #open = new Slots<WorkerReservation>()

  /** @param now ms of a monotonic clock */
  constructor({ leaseId, requests, tokens, pico, lifetimeMs }: GrantedLease, now: number) {
    this.leaseId = leaseId
    this.#expiresAt = now + lifetimeMs
    this.#renewFrom = now + lifetimeMs * RENEWAL_THRESHOLD
    this.#requests = requests
    this.#tokens = tokens
    this.#pico = pico
  }

  get isMostlyUsed(): boolean {
    return this.admitted >= this.#requests * RENEWAL_THRESHOLD
  }

  needsRenewal(now: number): boolean {
    return this.isMostlyUsed || now >= this.#renewFrom
  }

  /** @returns null = the lease does not have enough left */
  admit(estimate: Estimate, now: number): WorkerReservation | null {
    if (this.admitted === this.#requests || now >= this.#expiresAt) return null
    const worst = normalizeEstimate(estimate)
    const { tokens, pico } = worst
    if (this.#tokens !== null && tokens > this.#tokens) return null
    if (this.#pico !== null && (pico === null || pico > this.#pico)) return null
    this.admitted++
    this.takenTokens += tokens
    if (this.#tokens !== null) this.#tokens -= tokens
    if (this.#pico !== null) this.#pico -= pico ?? 0n
    const reservation = new WorkerReservation(worst)
    reservation.assignOwner(this, this.#open.add(reservation))
    return reservation
  }

  /** Concurrency is released with the lease. */
  concurrencyReleased(): void {}

  settled(slot: number, outcome: ActualUsage): void {
    const reservation = this.#open.at(slot)
    if (reservation === null) return
    this.#open.delete(slot)
    const { tokens, pico } = normalizeUsage(outcome)
    if (tokens !== null) this.takenTokens += tokens - reservation.estimate.tokens
    this.#usedPico += pico ?? reservation.estimate.pico ?? 0n
  }

  /** @param owner takes over the open reservations @param idOf gives each an id at `owner` */
  close(owner: ReservationOwner, idOf: (reservation: WorkerReservation) => number): LimiterRequest & { kind: 'return-lease' } {
    let usedTokens = this.takenTokens
    const open = Array.from(this.#open, reservation => {
      const id = idOf(reservation)
      reservation.assignOwner(owner, id)
      const { tokens, pico } = reservation.estimate
      usedTokens -= tokens
      return { id, tokens, pico, isRunning: reservation.isRunning }
    })
    const used = { requests: this.admitted, tokens: usedTokens, pico: this.#usedPico }
    return { kind: 'return-lease', leaseId: this.leaseId, ...used, open }
  }
}
