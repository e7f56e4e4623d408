import { Slots } from '../../base/slots.ts'
import type { GrantedLease, LimiterRequest } from './lease-messages.ts'
import { normalizeUsage, normalizeEstimate } from '../reservation.ts'
import type { Estimate, ActualUsage, Reservation } from '../types.ts'

/** A reservation in a worker. It is a part of a lease, or has its own reservation at the lease server. */
export class WorkerReservation implements Reservation {
  readonly estimate: Estimate
  /** Called when the request ends; null = ended. */
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

/** Receives the calls of a reservation. `settled` is the last call. */
export interface ReservationOwner {
  concurrencyReleased(slot: number): void
  settled(slot: number, outcome: ActualUsage): void
}

/** The next lease is requested when this share of the lease's requests or lifetime is used. */
const RENEWAL_THRESHOLD = 3 / 4

/** A quota lease in the worker that uses it. */
export class WorkerLease implements ReservationOwner {
  readonly leaseId: number
  readonly #expiresAt: number
  readonly #renewFrom: number
  readonly #requests: number
  #tokens: number | null
  #pico: bigint | null
  /** Number of admitted requests; written by this class. */
  admitted = 0
  /** Tokens that ended requests have used and running requests have reserved; written by this class. */
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

  /** @returns null = not enough of the lease is left, or the lease has expired */
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

  /** Does nothing, because the concurrency is released when the lease ends. */
  concurrencyReleased(): void {}

  settled(slot: number, outcome: ActualUsage): void {
    const reservation = this.#open.at(slot)
    if (reservation === null) return
    this.#open.delete(slot)
    const { tokens, pico } = normalizeUsage(outcome)
    if (tokens !== null) this.takenTokens += tokens - reservation.estimate.tokens
    this.#usedPico += pico ?? reservation.estimate.pico ?? 0n
  }

  /** @param owner takes over the open reservations @param idOf gives each open reservation an id at `owner` */
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
