import { randomUUID } from 'node:crypto'
import type { Clock, Timer } from '../base/clock.ts'
import { messageOf } from '../base/message-of.ts'
import { Slots } from '../base/slots.ts'
import type { Limits } from '../config/types.ts'
import { createLimiter } from './limiter.ts'
import type { LocalLimiter } from './limiter.ts'
import type { AdmissionReply, GrantedLease, LimiterReplies, LimiterRequest } from './messages.ts'
import { refusalOf } from './refusal.ts'
import { normalizeEstimate, normalizeUsage } from './reservation.ts'
import { nanoOf, SharedKey } from './shared-key.ts'
import type { Call, SharedAdmission, SharedHold, SharedScope } from './shared-key.ts'
import type { AdmitReply, ScriptArgument, ScriptReply } from './shared-script.ts'
import type { CompileGlob, LimitedKey, RateLimitState, RateLimitStates, Refusal, RefusalReason, Spend } from './types.ts'

/** What the limits of all instances are kept in. */
export interface SharedStore {
  /** Runs SCRIPT. Rejects when there is no reply in time. */
  run(key: string, argument: string): Promise<unknown>
  /** Sets a key where it is missing. @returns its value */
  setIfMissing(key: string, value: string): Promise<string>
}

export interface SharedLimitsOptions {
  /** The name of this instance; no other has it. */
  readonly instance: string
  /** What happens while the store is away. */
  readonly offline: 'share' | 'refuse'
  readonly compileGlob: CompileGlob
  readonly clock: Clock
  readonly store: SharedStore
  /**
   * What all instances spent according to the common ledger; null = there is none.
   * @param names of keys
   * @param since ms since 1970
   */
  readonly spentOf: ((names: readonly string[], since: number) => Promise<readonly (Omit<Spend, 'key'> & { readonly name: string })[]>) | null
  /** Called when the store goes away, with why, and when it is back (null). */
  readonly onState: (why: string | null) => void
}

/** ms that a lease lasts. */
const LEASE_MS = 250
/** ms between two reports of what this instance holds; it counts as dead after ten. */
const BEAT_MS = 2_000
/** ms between two looks at the store while it is away. */
const PROBE_MS = 250
/** ms in which settlements are collected. */
const SETTLE_MS = 25
/** ms for which a key that is not used keeps its allowances. */
const IDLE_MS = 60_000
/** ms between two comparisons with the common ledger. */
const COMPARE_MS = 10_000
/** ms after the store was emptied until budgets are restored: every instance has then said what it holds, and sent its rows. */
const RESTORE_AFTER_MS = 3_000
const MAX_BATCH = 200
const EPOCH_KEY = 'gateway:limits'
const CODES: readonly RefusalReason[] = ['requests', 'tokens', 'concurrent', 'budget', 'unpriced']
const RESTORE = 6
/** https://valkey.io/topics/cluster-spec/#hash-tags keeps a key's state in one place by itself. */
const HASH_PREFIX = 'gateway:limits:'

/** A request that waits for the store. */
interface Pending extends SharedAdmission {
  readonly id: number
  readonly connection: SharedConnection
  readonly pico: bigint | null
}

interface KeyState {
  readonly key: SharedKey
  readonly queue: Pending[]
  /** Requests for a budget that is being restored. */
  readonly restoring: Pending[]
  isCalling: boolean
  isRestoring: boolean
  flush: Timer | null
}

/**
 * The limits of several gateways as one. State is in the store; this instance knows what it holds of it, and says so
 * with each call. One call of a key is under way at a time, and takes all that has come meanwhile. It speaks with
 * workers as LeaseServer does, so that most requests are admitted on a lease without a call.
 *
 * Without the store, `share` admits by limits divided by the number of instances, and budgets by the allowance that
 * this instance has: part of the budget, which no other instance spends.
 */
export class SharedLimits {
  readonly #options: SharedLimitsOptions
  readonly #keys = new Map<string, KeyState>()
  readonly #local: LocalLimiter
  readonly #localKeys = new Map<string, { readonly of: Limits | null, readonly instances: number, readonly key: LimitedKey }>()
  #defaults: Limits | null = null
  #instances = 1
  #epoch: string | null = null
  #isReachable = true
  #isClosed = false
  #beat: Timer | null = null
  #comparedAt: number

  constructor(options: SharedLimitsOptions) {
    this.#options = options
    const { clock, compileGlob } = options
    this.#local = createLimiter({ defaults: null, compileGlob, clock })
    this.#comparedAt = clock.monotonic()
    this.#beat = clock.setTimeout(() => void this.#beatAll(), PROBE_MS)
    void this.#readEpoch().catch((error: unknown) => this.#lost(error))
  }

  /** Connects a worker, or this process, from its start to its end. */
  connect(send: (replies: LimiterReplies) => void): SharedConnection {
    return new SharedConnection(this, send)
  }

  /** What all instances spent of the budgets of keys as a whole, 1e-12 USD. */
  budgetSpend(): ReadonlyMap<string, bigint> {
    const spend = new Map<string, bigint>()
    for (const [name, { key }] of this.#keys) {
      const spent = key.scopesFor(null)[0]?.account(this.#options.clock.wall())?.spent ?? -1
      if (spent >= 0) spend.set(name, BigInt(spent) * 1_000n)
    }
    return spend
  }

  /** Gives back what is held, as far as the store answers. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#beat?.cancel()
    if (!this.#isReachable) return
    await Promise.all([...this.#keys.values()].map(async state => {
      state.flush?.cancel()
      state.key.giveUpAllowances()
      if (!state.isCalling && state.key.isBusy) await this.#call(state, [], false)
    }))
  }

  setDefaults(limits: Limits | null): void {
    this.#defaults = limits
    for (const { key } of this.#keys.values()) key.configure(key.own, limits, this.#options.compileGlob)
  }

  configure(name: string, limits: Limits | null): void {
    const state = this.#state(name)
    state.key.configure(limits, this.#defaults, this.#options.compileGlob)
  }

  admit(name: string, pending: Pending): void {
    const state = this.#state(name)
    state.key.usedAt = this.#options.clock.monotonic()
    state.queue.push(pending)
    this.#advance(state)
  }

  /** What is held has changed. */
  changed(key: SharedKey): void {
    const state = this.#state(key.name)
    state.flush ??= this.#options.clock.setTimeout(() => {
      state.flush = null
      if (this.#isReachable && !this.#isClosed && !state.isCalling) void this.#call(state, [], true)
    }, SETTLE_MS)
  }

  key(name: string): SharedKey {
    return this.#state(name).key
  }

  now(): number {
    return this.#options.clock.wall()
  }

  after(ms: number, work: () => void): Timer {
    return this.#options.clock.setTimeout(work, ms)
  }

  /** Decides what waits: in the next call, or at once where there is no store. */
  #advance(state: KeyState): void {
    if (state.isCalling || state.queue.length === 0) return
    const batch = state.queue.splice(0, MAX_BATCH)
    if (this.#isReachable) void this.#call(state, batch, true)
    else for (const pending of batch) this.#admitOffline(state.key, pending)
  }

  async #call(state: KeyState, batch: readonly Pending[], isOpen: boolean): Promise<void> {
    const { key } = state
    const { store, instance, clock } = this.#options
    state.isCalling = true
    const wantsAllowance = isOpen && clock.monotonic() - key.usedAt < IDLE_MS
    const call = key.arguments(batch, clock.wall(), wantsAllowance)
    const { buckets, gauges, accounts, admits } = call
    try {
      const argument: ScriptArgument = { instance, buckets, gauges, accounts, admits }
      const reply = await store.run(HASH_PREFIX + key.name, JSON.stringify(argument)) as ScriptReply
      state.isCalling = false
      call.succeeded(reply[2])
      this.#instances = reply[3]
      for (const [n, pending] of batch.entries()) this.#apply(state, pending, reply[0][n]!, call, reply[1])
    } catch (error) {
      state.isCalling = false
      call.failed()
      this.#lost(error)
      for (const pending of batch) this.#admitOffline(key, pending)
    }
    this.#advance(state)
    if (key.isDirty) this.changed(key)
  }

  #apply(state: KeyState, pending: Pending, [code, at, waitMs, leaseRequests]: AdmitReply, call: Call, levels: readonly number[]): void {
    const { key } = state
    const { connection, id } = pending
    const now = this.now()
    if (code === RESTORE) {
      if (this.#admitOnAllowance(key, pending)) return
      state.restoring.push(pending)
      if (!state.isRestoring) void this.#restore(state)
      return
    }
    const scopes = key.scopesFor(pending.model)
    const rateLimitStates = ratesOf(scopes, call, levels)
    if (code === 0) {
      const hold = key.hold(pending, 1, now)
      const lease = leaseRequests > 0 ? key.hold(pending, leaseRequests, now) : null
      connection.admitted(id, key, hold, lease, rateLimitStates, scopes)
      return
    }
    const which = CODES[code - 1] ?? 'requests'
    // The allowance is the last part of the budget that this instance spends.
    if (which === 'budget' && this.#admitOnAllowance(key, pending)) return
    const scope = scopes[at - 1] ?? { group: null, model: null, limits: {} as SharedScope['limits'] }
    const refusal = refusalOf({ which, waitMs: waitMs < 0 ? Infinity : waitMs, scope }, requestOf(key, pending))
    connection.refused(id, refusal, rateLimitStates)
  }

  /** Finds out what was spent, for budgets that the store does not know. */
  async #restore(state: KeyState): Promise<void> {
    const { key, restoring } = state
    state.isRestoring = true
    try {
      const epoch = await this.#readEpoch()
      const wall = this.now()
      const pause = Math.max(0, epoch + RESTORE_AFTER_MS - wall)
      if (pause > 0) await new Promise<void>(resolve => this.after(pause, resolve))
      const accounts = key.accounts().filter(({ spent, end }) => spent < 0 && end > wall)
      // Of a period that began later, the store has all spending.
      if (accounts.every(({ start }) => start >= epoch)) key.raiseFloors([], true)
      else await this.#compare([state], true)
    } catch (error) {
      this.#options.onState(`budgets cannot be restored: ${messageOf(error)}`)
      state.isRestoring = false
      for (const pending of restoring.splice(0)) this.#admitOffline(key, pending)
      return
    }
    state.isRestoring = false
    state.queue.push(...restoring.splice(0))
    this.#advance(state)
  }

  /** Has the next call raise what was spent to what the common ledger says. */
  async #compare(states: readonly KeyState[], restores: boolean): Promise<void> {
    const { spentOf } = this.#options
    const accounts = states.flatMap(({ key }) => key.accounts())
    if (accounts.length === 0) return
    const since = Math.max(0, Math.min(...accounts.map(({ start }) => start)))
    const names = states.map(({ key }) => key.name)
    const rows = spentOf === null
      ? states.flatMap(({ key: { name, localSpend } }) => localSpend.map(row => ({ ...row, name })))
      : await spentOf(names, since)
    const byName = Map.groupBy(rows, ({ name }) => name)
    for (const { key } of states) {
      key.raiseFloors(byName.get(key.name) ?? [], restores)
    }
  }

  async #readEpoch(): Promise<number> {
    const { store, clock } = this.#options
    this.#epoch = await store.setIfMissing(EPOCH_KEY, `${Math.floor(clock.wall())} ${randomUUID()}`)
    return Number(this.#epoch.split(' ', 1)[0])
  }

  async #beatAll(): Promise<void> {
    const { clock, store } = this.#options
    if (!this.#isReachable) {
      try {
        await store.setIfMissing(EPOCH_KEY, this.#epoch ?? `${Math.floor(clock.wall())} ${randomUUID()}`)
        this.#isReachable = true
        this.#options.onState(null)
      } catch {
        // It is reported already.
      }
    }
    if (this.#isReachable) await this.#report().catch((error: unknown) => this.#lost(error))
    if (!this.#isClosed) this.#beat = clock.setTimeout(() => void this.#beatAll(), this.#isReachable ? BEAT_MS : PROBE_MS)
  }

  async #report(): Promise<void> {
    const { clock, spentOf } = this.#options
    const busy = [...this.#keys.values()].filter(({ key }) => key.isBusy)
    const mono = clock.monotonic()
    if (spentOf !== null && mono - this.#comparedAt > COMPARE_MS && busy.length > 0) {
      this.#comparedAt = mono
      // Without it the store is right, unless it was replaced by an older copy.
      await this.#compare(busy, false).catch(() => undefined)
    }
    await Promise.all(busy.filter(({ isCalling }) => !isCalling).map(state => this.#call(state, [], true)))
  }

  #lost(error: unknown): void {
    if (!this.#isReachable) return
    this.#isReachable = false
    this.#options.onState(messageOf(error))
    this.#beat?.cancel()
    if (!this.#isClosed) this.#beat = this.#options.clock.setTimeout(() => void this.#beatAll(), PROBE_MS)
  }

  #admitOffline(key: SharedKey, pending: Pending): void {
    if (this.#options.offline === 'share') {
      if (this.#admitOnAllowance(key, pending)) return
      const admission = this.#admitLocally(key, pending)
      if (!admission.ok) return pending.connection.refused(pending.id, admission.refusal, NO_RATES)
      admission.reservation.release()
    }
    pending.connection.refused(pending.id, unavailable(key), NO_RATES)
  }

  /** @returns false, and decides nothing, where the allowance is too small or the limits refuse */
  #admitOnAllowance(key: SharedKey, pending: Pending): boolean {
    if (this.#state(key.name).isCalling || !key.isAllowed(pending, this.now())) return false
    const admission = this.#admitLocally(key, pending)
    if (!admission.ok) return false
    const hold = key.hold(pending, 1, this.now(), { reservation: admission.reservation, round: key.round })
    pending.connection.admitted(pending.id, key, hold, null, NO_RATES, [])
    return true
  }

  #admitLocally(key: SharedKey, { model, tokens }: Pending) {
    return this.#local.admit({ key: this.#shareOf(key), model, estimate: { tokens, pico: 0n } })
  }

  /** The key with its share of the limits; the budget is not one of them. */
  #shareOf(key: SharedKey): LimitedKey {
    const instances = this.#instances
    const known = this.#localKeys.get(key.name)
    if (known?.of === key.own && known.instances === instances) return known.key
    const shared = { name: key.name, limits: shareOf(key.own ?? this.#defaults, instances) }
    this.#localKeys.set(key.name, { of: key.own, instances, key: shared })
    return shared
  }

  #state(name: string): KeyState {
    let state = this.#keys.get(name)
    if (state === undefined) {
      const key = new SharedKey(name)
      key.configure(null, this.#defaults, this.#options.compileGlob)
      state = { key, queue: [], restoring: [], isCalling: false, isRestoring: false, flush: null }
      this.#keys.set(name, state)
    }
    return state
  }
}

/** What one worker, or this process, has open. */
export class SharedConnection {
  readonly #limits: SharedLimits
  readonly #send: (replies: LimiterReplies) => void
  readonly #keys = new Map<number, string>()
  /** By the ids that the worker gives them. */
  readonly #open: ({ readonly key: SharedKey, readonly hold: SharedHold } | null)[] = []
  readonly #leases = new Slots<{ readonly key: SharedKey, readonly hold: SharedHold }>()
  #replies: AdmissionReply[] = []
  #isClosed = false

  constructor(limits: SharedLimits, send: (replies: LimiterReplies) => void) {
    this.#limits = limits
    this.#send = send
  }

  /** Handles requests in their order. */
  handle(requests: readonly LimiterRequest[]): void {
    if (this.#isClosed) return
    for (const request of requests) this.#handle(request)
  }

  /** The worker has ended: what was reserved for its requests counts as used. */
  close(): void {
    this.#isClosed = true
    for (const open of this.#open.splice(0)) if (open !== null) this.#settle(open, 1, null, null)
    for (const lease of this.#leases) this.#settle(lease, lease.hold.requests, null, null)
  }

  admitted(
    id: number, key: SharedKey, hold: SharedHold, lease: SharedHold | null, rateLimitStates: RateLimitStates,
    scopes: readonly SharedScope[],
  ): void {
    if (this.#isClosed) {
      this.#settle({ key, hold }, 0, 0, 0)
      if (lease !== null) this.#settle({ key, hold: lease }, 0, 0, 0)
      return
    }
    this.#open[id] = { key, hold }
    this.#reply({ id, refusal: null, rateLimitStates, lease: lease && this.#grant(key, lease, scopes) })
  }

  refused(id: number, refusal: Refusal, rateLimitStates: RateLimitStates): void {
    this.#reply({ id, refusal, rateLimitStates, lease: null })
  }

  #handle(request: LimiterRequest): void {
    switch (request.kind) {
      case 'key':
        this.#keys.set(request.ref, request.name)
        return this.#limits.configure(request.name, request.limits)
      case 'admit':
        return this.#admit(request)
      case 'return-lease':
        return this.#leaseReturned(request)
      case 'release-concurrency': {
        const open = this.#open[request.id]
        if (!open) return
        open.key.release(open.hold)
        open.hold.offline?.reservation.releaseConcurrency()
        return this.#limits.changed(open.key)
      }
      case 'settle':
        for (const [n, id] of request.ids.entries()) {
          const open = this.#open[id]
          this.#open[id] = null
          if (!open) continue
          const { tokens, pico } = normalizeUsage({ tokens: request.tokens[n] ?? null, pico: request.pico[n] ?? null })
          open.hold.offline?.reservation.settle({ tokens, pico })
          this.#settle(open, 1, tokens, pico === null ? null : nanoOf(pico))
        }
        return
      case 'restore':
        for (const [ref, rows] of Map.groupBy(request.rows, ({ ref }) => ref)) this.#limits.key(this.#name(ref)).localSpend = rows
        return
      case 'defaults':
        return this.#limits.setDefaults(request.limits)
    }
  }

  #admit({ id, ref, model, leaseRequests, ...estimate }: LimiterRequest & { kind: 'admit' }): void {
    const { tokens, pico } = normalizeEstimate(estimate)
    this.#limits.admit(this.#name(ref), {
      id, connection: this, model, tokens, pico, nano: pico === null ? null : nanoOf(pico), leaseRequests,
    })
  }

  #grant(key: SharedKey, hold: SharedHold, scopes: readonly SharedScope[]): GrantedLease {
    const leaseId = this.#leases.add({ key, hold })
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
    const { key, hold } = lease
    for (const { id, isRunning, ...estimate } of open) {
      const part = key.split(hold, estimate.tokens, nanoOf(estimate.pico ?? 0n))
      this.#open[id] = { key, hold: part }
      if (!isRunning) key.release(part)
    }
    this.#settle(lease, requests - open.length, tokens, nanoOf(pico))
  }

  #settle({ key, hold }: { readonly key: SharedKey, readonly hold: SharedHold }, requests: number, tokens: number | null, nano: number | null): void {
    key.settle(hold, { requests, tokens, nano })
    this.#limits.changed(key)
  }

  #reply(reply: AdmissionReply): void {
    if (this.#replies.push(reply) > 1) return
    queueMicrotask(() => {
      const replies = this.#replies
      this.#replies = []
      if (!this.#isClosed) this.#send({ replies, recalledLeases: [] })
    })
  }

  #name(ref: number): string {
    const name = this.#keys.get(ref)
    if (name === undefined) throw new Error(`no key is registered as ${ref}`)
    return name
  }
}

const NO_RATES: RateLimitStates = Object.freeze({ requests: null, tokens: null })

function requestOf(key: SharedKey, { model, tokens, pico }: Pending) {
  return { key: { name: key.name, limits: key.own }, model, estimate: { tokens, pico } }
}

function unavailable(key: SharedKey): Refusal {
  return {
    which: 'unavailable',
    scope: { key: key.name, group: null, model: null },
    retryAfterMs: 1_000,
    renewsSoon: true,
    message: 'The limits of this key cannot be checked at the moment.',
  }
}

function ratesOf(scopes: readonly SharedScope[], call: Call, levels: readonly number[]): RateLimitStates {
  let requests: RateLimitState | null = null
  let tokens: RateLimitState | null = null
  for (const scope of scopes) {
    const { requestsPerMinute, tokensPerMinute } = scope.limits
    const level = call.levelsOf(scope, levels)
    requests = tighter(requests, rateOf(requestsPerMinute, level.requests))
    tokens = tighter(tokens, rateOf(tokensPerMinute, level.tokens))
  }
  return { requests, tokens }
}

function rateOf(limit: number | null, level: number): RateLimitState | null {
  if (limit === null) return null
  const remaining = Math.max(0, Math.floor(limit - level / 60_000))
  return { limit, remaining, resetMs: limit === 0 ? 0 : Math.ceil(level / limit) }
}

function tighter(a: RateLimitState | null, b: RateLimitState | null): RateLimitState | null {
  if (a === null || b === null) return a ?? b
  return b.remaining < a.remaining ? b : a
}

/** Of n instances each has 1/n; where that is less than one, one. Budgets are not divided: they have allowances. */
function shareOf(limits: Limits | null, instances: number): Limits | null {
  if (limits === null) return null
  const share = (limit: number | null) => limit === null || limit === 0 ? limit : Math.max(1, Math.floor(limit / instances))
  const ofScope = ({ requestsPerMinute, tokensPerMinute, concurrent }: SharedScope['limits']) => ({
    requestsPerMinute: share(requestsPerMinute), tokensPerMinute: share(tokensPerMinute), concurrent: share(concurrent), budget: null,
  })
  return { ...ofScope(limits), models: new Map([...limits.models].map(([glob, scope]) => [glob, ofScope(scope)])) }
}
