import type { Limits } from '../../config/key-types.ts'
import type { GrantedLease, LimiterReplies, LimiterRequest, SharedSpend } from './lease-messages.ts'
import { LimiterConnection } from './limiter-connection.ts'
import type { LocalLimiter } from '../limiter.ts'
import type { Ticket, WaitTerms } from '../queue/admission-queue.ts'
import type { QuotaLease } from '../quota-lease.ts'
import type { Admission, AdmissionRequest, LimitedKey, Reservation } from '../types.ts'

/** The part of the lease server that its connections use. */
export interface LeaseService {
  /** @returns the same object for equal limits of the same key and groups */
  internKey(key: LimitedKey): LimitedKey
  setDefaults(limits: Limits | null): void
  /** Decides now, or after other workers have returned their leases. */
  admit(request: AdmissionRequest, decide: (admission: Admission) => void): void
  /** Decides when the limits have room, or when the wait ends. */
  wait(request: AdmissionRequest, terms: WaitTerms, decide: (admission: Admission) => void): Ticket
  /** @returns null = not enough is free, or a request waits until leases of the key or of its groups are returned */
  lease(request: AdmissionRequest, maxRequests: number, recall: () => void): OutstandingLease | null
}

/** A lease that a worker has. `recall` asks the worker to return the lease. */
export interface OutstandingLease {
  readonly lease: QuotaLease
  recall(): void
  markReturned(): void
}

/** The connection of one worker at the lease server, with the worker's open requests and leases. */
export class LeaseConnection extends LimiterConnection<LimitedKey, Reservation, OutstandingLease> {
  readonly #server: LeaseService
  readonly #limiter: LocalLimiter

  constructor(server: LeaseService, limiter: LocalLimiter, send: (replies: LimiterReplies) => void) {
    super(send)
    this.#server = server
    this.#limiter = limiter
  }

  protected override registerKey(sent: LimitedKey): LimitedKey {
    const key = this.#server.internKey(sent)
    this.#limiter.limitsRemoved(key)
    return key
  }

  protected override admit({ id, model, tokens, pico, leaseRequests, isPart }: LimiterRequest & { kind: 'admit' }, key: LimitedKey): void {
    const request = { key, model, estimate: { tokens, pico }, isPart }
    this.#server.admit(request, admission => {
      if (this.isClosed) {
        if (admission.ok) admission.reservation.release()
        return
      }
      if (admission.ok) this.open[id] = admission.reservation
      const rateLimitStates = this.#limiter.rateLimitStates(key, model)
      const lease = admission.ok && leaseRequests > 0 ? this.#lease(request, leaseRequests) : null
      this.reply({ id, refusal: admission.ok ? null : admission.refusal, rateLimitStates, lease })
    })
  }

  protected override wait({ id, model, tokens, pico, terms }: LimiterRequest & { kind: 'wait' }, key: LimitedKey): void {
    let isDecided = false
    const ticket = this.#server.wait({ key, model, estimate: { tokens, pico } }, terms, admission => {
      isDecided = true
      this.tickets.delete(id)
      if (this.isClosed) {
        if (admission.ok) admission.reservation.release()
        return
      }
      if (admission.ok) this.open[id] = admission.reservation
      const rateLimitStates = this.#limiter.rateLimitStates(key, model)
      this.reply({ id, refusal: admission.ok ? null : admission.refusal, rateLimitStates, lease: null })
    })
    if (!isDecided) this.tickets.set(id, ticket)
  }

  protected override returnLease({ lease, markReturned }: OutstandingLease, { open, ...used }: LimiterRequest & { kind: 'return-lease' }): void {
    lease.settle({ ...used, open }).forEach((reservation, n) => {
      const { id, isRunning } = open[n] as (typeof open)[number]
      this.open[id] = reservation
      if (!isRunning) reservation.releaseConcurrency()
    })
    markReturned()
  }

  protected override releaseConcurrency(reservation: Reservation): void {
    reservation.releaseConcurrency()
  }

  protected override settle(reservation: Reservation, tokens: number | null, pico: bigint | null): void {
    reservation.settle({ tokens, pico })
  }

  protected override settleLost({ lease, markReturned }: OutstandingLease): void {
    const { requests, tokens, pico } = lease.size
    lease.settle({ requests, tokens: tokens ?? 0, pico: pico ?? 0n, open: [] })
    markReturned()
  }

  protected override restore(rows: readonly SharedSpend[], keyOf: (ref: number) => LimitedKey): void {
    this.#limiter.restoreSpend(rows.map(row => ({ ...row, key: keyOf(row.ref) })))
  }

  protected override setDefaults(limits: Limits | null): void {
    this.#server.setDefaults(limits)
  }

  #lease(request: AdmissionRequest, maxRequests: number): GrantedLease | null {
    let isRecalled = false
    const outstanding = this.#server.lease(request, maxRequests, () => {
      if (isRecalled) return
      isRecalled = true
      this.recall(leaseId)
    })
    if (outstanding === null) return null
    const leaseId = this.leases.add(outstanding)
    return { leaseId, ...outstanding.lease.size, lifetimeMs: outstanding.lease.lifetimeMs }
  }
}
