import type { Limits } from '../../config/key-types.ts'
import type { GrantedLease, LimiterReplies, LimiterRequest, SharedSpend } from '../../limits/workers/lease-messages.ts'
import type { Decision, Ticket, WaitTerms } from '../../limits/queue/admission-queue.ts'
import { LimiterConnection } from '../../limits/workers/limiter-connection.ts'
import { normalizeEstimate, normalizeUsage } from '../../limits/reservation.ts'
import { nanoOf, type SharedAdmission, type SharedChain, type SharedHold, type SharedScope } from './shared-key.ts'
import type { LimitedKey, RateLimitStates, LimitRefusal } from '../../limits/types.ts'

const LEASE_MS = 250

export type Pending = SharedAdmission & { readonly id: number; readonly connection: PendingConnection; readonly pico: bigint | null }

/** What gets the decision. */
export interface PendingConnection {
  admitted(id: number, hold: SharedHold, lease: SharedHold | null, rateLimitStates: RateLimitStates, scopes: readonly SharedScope[]): void
  /** @param rateLimitStates null = unchanged */
  refused(id: number, refusal: LimitRefusal, rateLimitStates: RateLimitStates | null): void
}

/** A place in the limits that a waiting request got. */
export interface SharedPlace {
  readonly hold: SharedHold
  readonly rateLimitStates: RateLimitStates
  release(): void
}

/** A request that can wait. */
export type SharedRequest = Omit<Pending, 'id' | 'connection' | 'turn'>

/** The part of the shared limits that its connections use. */
export interface SharedAdmitter {
  setDefaults(limits: Limits | null): void
  /** @returns the key, and those of its groups that have limits */
  configure(key: LimitedKey): SharedChain
  /** Decides later, by calling `admitted` or `refused` of the request's connection. */
  admit(pending: Pending): void
  /** Decides when the limits have room, or when the wait ends. */
  wait(request: SharedRequest, terms: WaitTerms, done: (decision: Decision<SharedPlace>) => void): Ticket
  changed(hold: SharedHold): void
  /** ms since 1970. */
  now(): number
}

/** The open requests and leases of one worker or, without workers, of this process. */
export class SharedConnection extends LimiterConnection<SharedChain, SharedHold, SharedHold> implements PendingConnection {
  readonly #limits: SharedAdmitter

  constructor(limits: SharedAdmitter, send: (replies: LimiterReplies) => void) {
    super(send)
    this.#limits = limits
  }

  admitted(id: number, hold: SharedHold, lease: SharedHold | null, rateLimitStates: RateLimitStates, scopes: readonly SharedScope[]): void {
    if (this.isClosed) {
      this.#settle(hold, 0, 0, 0)
      if (lease !== null) this.#settle(lease, 0, 0, 0)
      return
    }
    this.open[id] = hold
    this.reply({ id, refusal: null, rateLimitStates, lease: lease && this.#grant(lease, scopes) })
  }

  refused(id: number, refusal: LimitRefusal, rateLimitStates: RateLimitStates | null): void {
    this.reply({ id, refusal, rateLimitStates, lease: null })
  }

  protected override registerKey(key: LimitedKey): SharedChain {
    return this.#limits.configure(key)
  }

  protected override admit({ id, model, leaseRequests, isPart = false, ...estimate }: LimiterRequest & { kind: 'admit' }, chain: SharedChain): void {
    const { tokens, pico } = normalizeEstimate(estimate)
    this.#limits.admit({ id, connection: this, chain, model, tokens, pico, nano: pico === null ? null : nanoOf(pico), leaseRequests, isPart })
  }

  protected override wait({ id, model, terms, ...estimate }: LimiterRequest & { kind: 'wait' }, chain: SharedChain): void {
    const { tokens, pico } = normalizeEstimate(estimate)
    let isDecided = false
    const request = { chain, model, tokens, pico, nano: pico === null ? null : nanoOf(pico), leaseRequests: 0, isPart: false }
    const ticket = this.#limits.wait(request, terms, decision => {
      isDecided = true
      this.tickets.delete(id)
      if (decision.ok) this.admitted(id, decision.reservation.hold, null, decision.reservation.rateLimitStates, [])
      else this.refused(id, decision.refusal, null)
    })
    if (!isDecided) this.tickets.set(id, ticket)
  }

  protected override returnLease(lease: SharedHold, { requests, tokens, pico, open }: LimiterRequest & { kind: 'return-lease' }): void {
    for (const { id, isRunning, ...estimate } of open) {
      const part = lease.split(estimate.tokens, nanoOf(estimate.pico ?? 0n))
      this.open[id] = part
      if (!isRunning) part.release()
    }
    this.#settle(lease, requests - open.length, tokens, nanoOf(pico))
  }

  protected override releaseConcurrency(open: SharedHold): void {
    open.release()
    open.offline?.releaseConcurrency()
    this.#limits.changed(open)
  }

  protected override settle(open: SharedHold, tokens: number | null, pico: bigint | null): void {
    const usage = normalizeUsage({ tokens, pico })
    open.offline?.settle(usage)
    this.#settle(open, open.requests, usage.tokens, usage.pico === null ? null : nanoOf(usage.pico))
  }

  protected override settleLost(lease: SharedHold): void {
    this.#settle(lease, lease.requests, null, null)
  }

  protected override restore(rows: readonly SharedSpend[], keyOf: (ref: number) => SharedChain): void {
    for (const [ref, own] of Map.groupBy(rows, row => row.ref)) keyOf(ref)[0]!.localSpend = own
  }

  protected override setDefaults(limits: Limits | null): void {
    this.#limits.setDefaults(limits)
  }

  #grant(hold: SharedHold, scopes: readonly SharedScope[]): GrantedLease {
    const leaseId = this.leases.add(hold)
    const renewal = Math.min(...hold.parts.map(({ account }) => (account?.end ?? Infinity) - this.#limits.now()))
    return {
      leaseId,
      requests: hold.requests,
      tokens: scopes.some(({ limits }) => limits.tokensPerMinute !== null) ? hold.tokens : null,
      pico: scopes.some(({ limits }) => limits.budget !== null) ? BigInt(hold.nano) * 1_000n : null,
      lifetimeMs: Math.max(1, Math.min(LEASE_MS, renewal)),
    }
  }

  #settle(hold: SharedHold, requests: number, tokens: number | null, nano: number | null): void {
    hold.settle({ requests, tokens, nano })
    this.#limits.changed(hold)
  }
}
