import { Slots } from '../../base/slots.ts'
import type { Limits } from '../../config/key-types.ts'
import type { LimiterReplies, GrantedLease, AdmissionReply, LimiterRequest } from './lease-messages.ts'
import type { LocalLimiter } from '../limiter.ts'
import type { QuotaLease } from '../quota-lease.ts'
import type { Admission, AdmissionRequest, LimitedKey, Reservation } from '../types.ts'

/** What the connections of all workers share. */
export interface LeaseService {
  /** Returns one object for equal limits of the same key and groups. */
  internKey(key: LimitedKey): LimitedKey
  /** Sets the default limits. */
  setDefaults(limits: Limits | null): void
  /** Admits or refuses a request. It can wait until other workers return their leases. */
  admit(request: AdmissionRequest, decide: (admission: Admission) => void): void
  /** @returns null while a request waits for leases of that key or one of its groups, and where too little is free */
  lease(request: AdmissionRequest, maxRequests: number, recall: () => void): OutstandingLease | null
}

/** A lease that a worker holds. */
export interface OutstandingLease {
  readonly lease: QuotaLease
  /** Asks the worker to return it now. */
  recall(): void
  /** The worker has returned the lease. */
  markReturned(): void
}

/** The open requests and leases of one worker at the lease server. */
export class LeaseConnection {
  readonly #server: LeaseService
  readonly #limiter: LocalLimiter
  readonly #send: (replies: LimiterReplies) => void
  readonly #keys = new Map<number, LimitedKey>()
  /** By the ids of the worker, which are small numbers. */
  readonly #open: (Reservation | null)[] = []
  readonly #leases = new Slots<OutstandingLease>()
  #replies: AdmissionReply[] = []
  #recalledLeases: number[] = []
  #isClosed = false

  constructor(server: LeaseService, limiter: LocalLimiter, send: (replies: LimiterReplies) => void) {
    this.#server = server
    this.#limiter = limiter
    this.#send = send
  }

  /** Handles requests in order. Replies that are ready at once are sent together. */
  handle(requests: readonly LimiterRequest[]): void {
    // The worker has ended: everything that it held already counts as used.
    if (this.#isClosed) return
    for (const request of requests) {
      switch (request.kind) {
        case 'key':
          this.#registerKey(request)
          break
        case 'admit':
          this.#admit(request)
          break
        case 'return-lease':
          this.#leaseReturned(request)
          break
        case 'release-concurrency':
          this.#open[request.id]?.releaseConcurrency()
          break
        case 'settle':
          this.#settle(request)
          break
        case 'restore':
          this.#limiter.restoreSpend(request.rows.map(row => ({ ...row, key: this.#key(row.ref) })))
          break
        case 'defaults':
          this.#server.setDefaults(request.limits)
      }
    }
  }

  /**
   * The worker has ended, and its requests with it. What they used is unknown, so
   * what was reserved for them counts as used: the end of a worker never lets a
   * budget be overspent.
   */
  close(): void {
    this.#isClosed = true
    for (const reservation of this.#open.splice(0)) reservation?.settle({ tokens: null, pico: null })
    for (const { lease, markReturned } of this.#leases) {
      const { requests, tokens, pico } = lease.size
      lease.settle({ requests, tokens: tokens ?? 0, pico: pico ?? 0n, open: [] })
      markReturned()
    }
  }

  #registerKey({ ref, ...sent }: LimiterRequest & { kind: 'key' }): void {
    const key = this.#server.internKey(sent)
    this.#keys.set(ref, key)
    this.#limiter.limitsRemoved(key)
  }

  #admit({ id, ref, model, tokens, pico, leaseRequests }: LimiterRequest & { kind: 'admit' }): void {
    const key = this.#key(ref)
    const request = { key, model, estimate: { tokens, pico } }
    this.#server.admit(request, admission => {
      if (this.#isClosed) {
        if (admission.ok) admission.reservation.release()
        return
      }
      if (admission.ok) this.#open[id] = admission.reservation
      const rateLimits = this.#limiter.rateLimitStates(key, model)
      const lease = admission.ok && leaseRequests > 0 ? this.#lease(request, leaseRequests) : null
      this.#replies.push({ id, refusal: admission.ok ? null : admission.refusal, rateLimitStates: rateLimits, lease })
      this.#scheduleSend()
    })
  }

  #lease(request: AdmissionRequest, maxRequests: number): GrantedLease | null {
    let isRecalled = false
    const outstanding = this.#server.lease(request, maxRequests, () => {
      if (isRecalled) return
      isRecalled = true
      this.#recalledLeases.push(leaseId)
      this.#scheduleSend()
    })
    if (outstanding === null) return null
    const leaseId = this.#leases.add(outstanding)
    return { leaseId, ...outstanding.lease.size, lifetimeMs: outstanding.lease.lifetimeMs }
  }

  #leaseReturned({ leaseId, open, ...used }: LimiterRequest & { kind: 'return-lease' }): void {
    const outstanding = this.#leases.at(leaseId)
    if (outstanding === null) return
    this.#leases.delete(leaseId)
    outstanding.lease.settle({ ...used, open }).forEach((reservation, n) => {
      const { id, isRunning } = open[n] as (typeof open)[number]
      this.#open[id] = reservation
      if (!isRunning) reservation.releaseConcurrency()
    })
    outstanding.markReturned()
  }

  #settle({ ids, tokens, pico }: LimiterRequest & { kind: 'settle' }): void {
    for (const [n, id] of ids.entries()) {
      this.#open[id]?.settle({ tokens: tokens[n] ?? null, pico: pico[n] ?? null })
      this.#open[id] = null
    }
  }

  /** Sends the replies and recalls of this turn of the event loop together. */
  #scheduleSend(): void {
    if (this.#replies.length + this.#recalledLeases.length > 1) return
    queueMicrotask(() => {
      const replies = { replies: this.#replies, recalledLeases: this.#recalledLeases }
      this.#replies = []
      this.#recalledLeases = []
      this.#send(replies)
    })
  }

  #key(ref: number): LimitedKey {
    const key = this.#keys.get(ref)
    if (key === undefined) throw new Error(`no key is registered as ${ref}`)
    return key
  }
}
