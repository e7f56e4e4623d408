import { Slots } from '../base/slots.ts'
import type { Limits } from '../config/types.ts'
import type { LocalLimiter } from './limiter.ts'
import type { LimiterReplies, GrantedLease, AdmissionReply, LimiterRequest } from './messages.ts'
import type { QuotaLease } from './quota-lease.ts'
import type { Admission, AdmissionRequest, LimitedKey, Reservation } from './types.ts'

/** What all windows share. */
export interface LeaseService {
  /** The one object for these limits of this key. */
  internKey(name: string, limits: Limits | null): LimitedKey
  /** Puts defaults in force. */
  setDefaults(limits: Limits | null): void
  /** Asks the limiter; it may take until others have repaid what they borrowed. */
  admit(ask: AdmissionRequest, decide: (admission: Admission) => void): void
  /** @returns null while somebody waits for loans of that key, and where too little is free */
  lease(ask: AdmissionRequest, most: number, callIn: () => void): OutstandingLease | null
}

/** A loan that some worker has. */
export interface OutstandingLease {
  readonly lease: QuotaLease
  /** Tells who has it to repay it now. */
  recall(): void
  /** It has been repaid. */
  markReturned(): void
}

/** What one worker has open at the desk. */
export class LeaseConnection {
  readonly #server: LeaseService
  readonly #limiter: LocalLimiter
  readonly #send: (answers: LimiterReplies) => void
  readonly #keys = new Map<number, LimitedKey>()
  /** At the ids that the worker gives them, which are small numbers. */
  readonly #open: (Reservation | null)[] = []
  readonly #leases = new Slots<OutstandingLease>()
  #replies: AdmissionReply[] = []
  #recalledLeases: number[] = []
  #isClosed = false

  constructor(desk: LeaseService, limiter: LocalLimiter, send: (answers: LimiterReplies) => void) {
    this.#server = desk
    this.#limiter = limiter
    this.#send = send
  }

  /** Does what was asked. What is answered at once goes out together. */
  handle(requests: readonly LimiterRequest[]): void {
    // What it said before it went can be read after, when all that it had counts as used.
    if (this.#isClosed) return
    for (const request of requests) {
      switch (request.kind) {
        case 'key':
          this.#registerKey(request)
          break
        case 'admit':
          this.#admit(request)
          break
        case 'repay':
          this.#leaseReturned(request)
          break
        case 'leave':
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
   * The worker has gone, and with it what it knew. Its requests run no more; what
   * they used nobody knows, and so what was set aside for them counts as used: a
   * budget is never overspent by a worker's death.
   */
  close(): void {
    this.#isClosed = true
    for (const reservation of this.#open.splice(0)) reservation?.settle({ tokens: null, pico: null })
    for (const { lease: loan, markReturned: returned } of this.#leases) {
      const { requests, tokens, pico } = loan.size
      loan.settle({ requests, tokens: tokens ?? 0, pico: pico ?? 0n, open: [] })
      returned()
    }
  }

  #registerKey({ ref, name, limits }: LimiterRequest & { kind: 'key' }): void {
    const key = this.#server.internKey(name, limits)
    this.#keys.set(ref, key)
    this.#limiter.limitsRemoved(key)
  }

  #admit({ id, ref, model, tokens, pico, soon }: LimiterRequest & { kind: 'admit' }): void {
    const key = this.#key(ref)
    const ask = { key, model, estimate: { tokens, pico } }
    this.#server.admit(ask, admission => {
      if (this.#isClosed) {
        if (admission.ok) admission.reservation.release()
        return
      }
      if (admission.ok) this.#open[id] = admission.reservation
      const figures = this.#limiter.rateLimitStates(key, model)
      const loan = admission.ok && soon > 0 ? this.#lease(ask, soon) : null
      this.#replies.push({ id, refusal: admission.ok ? null : admission.refusal, rateLimitStates: figures, lease: loan })
      this.#scheduleSend()
    })
  }

  #lease(ask: AdmissionRequest, most: number): GrantedLease | null {
    let isCalled = false
    const out = this.#server.lease(ask, most, () => {
      if (isCalled) return
      isCalled = true
      this.#recalledLeases.push(number)
      this.#scheduleSend()
    })
    if (out === null) return null
    const number = this.#leases.add(out)
    return { leaseId: number, ...out.lease.size, lifetimeMs: out.lease.lifetimeMs }
  }

  #leaseReturned({ loan: number, open, ...used }: LimiterRequest & { kind: 'repay' }): void {
    const out = this.#leases.at(number)
    if (out === null) return
    this.#leases.delete(number)
    out.lease.settle({ ...used, open }).forEach((reservation, n) => {
      const { id, runs } = open[n] as (typeof open)[number]
      this.#open[id] = reservation
      if (!runs) reservation.releaseConcurrency()
    })
    out.markReturned()
  }

  #settle({ ids, tokens, picos }: LimiterRequest & { kind: 'settle' }): void {
    for (const [n, id] of ids.entries()) {
      this.#open[id]?.settle({ tokens: tokens[n] ?? null, pico: picos[n] ?? null })
      this.#open[id] = null
    }
  }

  /** Sends what there is to say when this turn's work is done. */
  #scheduleSend(): void {
    if (this.#replies.length + this.#recalledLeases.length > 1) return
    queueMicrotask(() => {
      const answers = { replies: this.#replies, called: this.#recalledLeases }
      this.#replies = []
      this.#recalledLeases = []
      this.#send(answers)
    })
  }

  #key(ref: number): LimitedKey {
    const key = this.#keys.get(ref)
    if (key === undefined) throw new Error(`the worker never said which key ${ref} is`)
    return key
  }
}
