import { Slots } from '../../base/slots.ts'
import type { Limits } from '../../config/key-types.ts'
import type { AdmissionReply, GrantedLease, LimiterReplies, LimiterRequest } from '../../limits/workers/lease-messages.ts'
import { normalizeEstimate, normalizeUsage } from '../../limits/reservation.ts'
import { nanoOf } from './shared-key.ts'
import type { SharedAdmission, SharedChain, SharedHold, SharedScope } from './shared-key.ts'
import type { LimitedKey, RateLimitStates, Refusal } from '../../limits/types.ts'

/** ms that a lease lasts. */
const LEASE_MS = 250

/** A request that waits for the store. */
export interface Pending extends SharedAdmission {
  readonly id: number
  readonly connection: SharedConnection
  readonly pico: bigint | null
}

/** What the connections of all workers use. */
export interface SharedAdmitter {
  setDefaults(limits: Limits | null): void
  /** @returns the key and its parent groups with limits */
  configure(key: LimitedKey): SharedChain
  /** Decides later, by `admitted` or `refused` of the connection of the request. */
  admit(pending: Pending): void
  /** What is held has changed. */
  changed(hold: SharedHold): void
  /** ms since 1970 */
  now(): number
}

/** The open requests and leases of one worker, or of this process. */
export class SharedConnection {
  readonly #limits: SharedAdmitter
  readonly #send: (replies: LimiterReplies) => void
  readonly #chains = new Map<number, SharedChain>()
  /** By the ids of the worker. */
  readonly #open: (SharedHold | null)[] = []
  readonly #leases = new Slots<SharedHold>()
  #replies: AdmissionReply[] = []
  #isClosed = false

  constructor(limits: SharedAdmitter, send: (replies: LimiterReplies) => void) {
    this.#limits = limits
    this.#send = send
  }

  /** Handles requests in order. */
  handle(requests: readonly LimiterRequest[]): void {
    if (this.#isClosed) return
    for (const request of requests) this.#handle(request)
  }

  /** The worker has ended: the reservations of its requests count as used. */
  close(): void {
    this.#isClosed = true
    for (const open of this.#open.splice(0)) if (open !== null) this.#settle(open, 1, null, null)
    for (const lease of this.#leases) this.#settle(lease, lease.requests, null, null)
  }

  admitted(
    id: number, hold: SharedHold, lease: SharedHold | null, rateLimitStates: RateLimitStates, scopes: readonly SharedScope[],
  ): void {
    if (this.#isClosed) {
      this.#settle(hold, 0, 0, 0)
      if (lease !== null) this.#settle(lease, 0, 0, 0)
      return
    }
    this.#open[id] = hold
    this.#reply({ id, refusal: null, rateLimitStates, lease: lease && this.#grant(lease, scopes) })
  }

  refused(id: number, refusal: Refusal, rateLimitStates: RateLimitStates): void {
    this.#reply({ id, refusal, rateLimitStates, lease: null })
  }

  #handle(request: LimiterRequest): void {
    switch (request.kind) {
      case 'key':
        this.#chains.set(request.ref, this.#limits.configure(request))
        return
      case 'admit':
        return this.#admit(request)
      case 'return-lease':
        return this.#leaseReturned(request)
      case 'release-concurrency': {
        const open = this.#open[request.id]
        if (!open) return
        open.release()
        open.offline?.releaseConcurrency()
        return this.#limits.changed(open)
      }
      case 'settle':
        for (const [n, id] of request.ids.entries()) {
          const open = this.#open[id]
          this.#open[id] = null
          if (!open) continue
          const { tokens, pico } = normalizeUsage({ tokens: request.tokens[n] ?? null, pico: request.pico[n] ?? null })
          open.offline?.settle({ tokens, pico })
          this.#settle(open, 1, tokens, pico === null ? null : nanoOf(pico))
        }
        return
      case 'restore':
        for (const [ref, rows] of Map.groupBy(request.rows, ({ ref }) => ref)) this.#chain(ref)[0]!.localSpend = rows
        return
      case 'defaults':
        return this.#limits.setDefaults(request.limits)
    }
  }

  #admit({ id, ref, model, leaseRequests, ...estimate }: LimiterRequest & { kind: 'admit' }): void {
    const { tokens, pico } = normalizeEstimate(estimate)
    this.#limits.admit({
      id, connection: this, chain: this.#chain(ref), model, tokens, pico, nano: pico === null ? null : nanoOf(pico), leaseRequests,
    })
  }

  #grant(hold: SharedHold, scopes: readonly SharedScope[]): GrantedLease {
    const leaseId = this.#leases.add(hold)
    const renewal = Math.min(...hold.parts.map(({ account }) => (account?.end ?? Infinity) - this.#limits.now()))
    return {
      leaseId,
      requests: hold.requests,
      tokens: scopes.some(({ limits }) => limits.tokensPerMinute !== null) ? hold.tokens : null,
      pico: scopes.some(({ limits }) => limits.budget !== null) ? BigInt(hold.nano) * 1_000n : null,
      lifetimeMs: Math.max(1, Math.min(LEASE_MS, renewal)),
    }
  }

  #leaseReturned({ leaseId, requests, tokens, pico, open }: LimiterRequest & { kind: 'return-lease' }): void {
    const lease = this.#leases.at(leaseId)
    if (lease === null) return
    this.#leases.delete(leaseId)
    for (const { id, isRunning, ...estimate } of open) {
      const part = lease.split(estimate.tokens, nanoOf(estimate.pico ?? 0n))
      this.#open[id] = part
      if (!isRunning) part.release()
    }
    this.#settle(lease, requests - open.length, tokens, nanoOf(pico))
  }

  #settle(hold: SharedHold, requests: number, tokens: number | null, nano: number | null): void {
    hold.settle({ requests, tokens, nano })
    this.#limits.changed(hold)
  }

  #reply(reply: AdmissionReply): void {
    if (this.#replies.push(reply) > 1) return
    queueMicrotask(() => {
      const replies = this.#replies
      this.#replies = []
      if (!this.#isClosed) this.#send({ replies, recalledLeases: [] })
    })
  }

  #chain(ref: number): SharedChain {
    const chain = this.#chains.get(ref)
    if (chain === undefined) throw new Error(`no key is registered as ${ref}`)
    return chain
  }
}
