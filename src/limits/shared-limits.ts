import { crc32 } from 'node:zlib'
import type { Clock, Timer } from '../base/clock.ts'
import { messageOf } from '../base/message-of.ts'
import { Slots } from '../base/slots.ts'
import type { Limits } from '../config/types.ts'
import { createLimiter } from './limiter.ts'
import type { LocalLimiter } from './limiter.ts'
import type { AdmissionReply, GrantedLease, LimiterReplies, LimiterRequest } from './messages.ts'
import { refusalOf } from './refusal.ts'
import { normalizeEstimate, normalizeUsage } from './reservation.ts'
import { SharedCall } from './shared-call.ts'
import { isAllowed, nanoOf, scopesOf, SharedKey, takeHold } from './shared-key.ts'
import type { SharedAdmission, SharedChain, SharedHold, SharedScope } from './shared-key.ts'
import type { AdmitReply, ScriptArgument, ScriptReply } from './shared-script.ts'
import { idOf } from './types.ts'
import type { CompileGlob, LimitedKey, RateLimitState, RateLimitStates, Refusal, RefusalReason, Spend } from './types.ts'

/** What the limits of all instances are kept in. */
export interface SharedStore {
  /** Keys are spread over several servers, by what stands in braces. */
  readonly isPartitioned: boolean
  /** Resolves when there is a connection for the first time, or after a while without one. */
  connected(): Promise<void>
  /** Runs SCRIPT. Rejects when there is no reply in time. */
  run(keys: readonly string[], argument: string): Promise<unknown>
  /**
   * Since when the store has its data: when a key was asked for first. Rejects when there is no reply in time.
   * @returns both ms since 1970 by the clock of the store
   */
  since(key: string): Promise<{ readonly since: number, readonly now: number }>
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
  readonly spentOf: ((names: readonly string[], since: number) => Promise<readonly NamedSpend[]>) | null
  /** The same by groups, each without those below it. */
  readonly groupSpentOf: ((groups: readonly string[], since: number) => Promise<readonly NamedSpend[]>) | null
  /** Called when the store goes away, with why, and when it is back (null). */
  readonly onState: (why: string | null) => void
}

interface NamedSpend extends Omit<Spend, 'key'> {
  readonly name: string
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
/** Keys and groups in one call. */
const MAX_KEYS = 50
/** Keys that share groups are decided together, since no two calls may be under way for one group. */
const GROUPS_LANE = 'groups\n'
/** Of keys without groups, where several servers are the store. Each has its own note since when it has its data. */
const PARTITIONS = 64
const GROUPS_PARTITION = 'groups'
const EPOCH_KEY = 'gateway:limits'
/** A hash without limits, for which every instance reports: so each knows how many there are. */
const INSTANCES_KEY = 'gateway:limits:\ninstances'
const CODES: readonly RefusalReason[] = ['requests', 'tokens', 'concurrent', 'budget', 'unpriced']
const RESTORE = 6
const HASH_PREFIX = 'gateway:limits:'

/** A request that waits for the store. */
interface Pending extends SharedAdmission {
  readonly id: number
  readonly connection: SharedConnection
  readonly pico: bigint | null
}

/** Keys whose requests are decided together: one key by itself, or all that have groups. */
interface Lane {
  /** Where several servers are the store, all its keys are in one part of it; '' = there is one server. */
  readonly partition: string
  readonly keys: Set<SharedKey>
  readonly queue: Pending[]
  /** Requests for a budget that is being restored. */
  readonly restoring: Pending[]
  isCalling: boolean
  isRestoring: boolean
  flush: Timer | null
}

/**
 * The limits of several gateways as one. State is in the store; this instance knows what it holds of it, and says so
 * with each call. One call of a lane is under way at a time, and takes all that has come meanwhile. It speaks with
 * workers as LeaseServer does, so that most requests are admitted on a lease without a call.
 *
 * Without the store, `share` admits by limits divided by the number of instances, and budgets by the allowance that
 * this instance has: part of the budget, which no other instance spends.
 */
export class SharedLimits {
  readonly #options: SharedLimitsOptions
  readonly #keys = new Map<string, SharedKey>()
  readonly #lanes = new Map<string, Lane>()
  readonly #local: LocalLimiter
  /** By the ids of keys and groups. */
  readonly #shares = new Map<string, Share>()
  #calls = 0
  #defaults: Limits | null = null
  #instances = 1
  #isReachable = true
  #isClosed = false
  #beat: Timer | null = null
  readonly #started: Promise<void>
  #comparedAt: number

  constructor(options: SharedLimitsOptions) {
    this.#options = options
    const { clock, compileGlob } = options
    this.#local = createLimiter({ defaults: null, compileGlob, clock })
    this.#comparedAt = clock.monotonic()
    this.#started = this.#start()
  }

  /** Resolves when the store has answered for the first time, or after a while without a response. */
  ready(): Promise<void> {
    return this.#started
  }

  /** Connects a worker, or this process, from its start to its end. */
  connect(send: (replies: LimiterReplies) => void): SharedConnection {
    return new SharedConnection(this, send)
  }

  /** What all instances spent of the budgets of keys as a whole, 1e-12 USD. */
  budgetSpend(): ReadonlyMap<string, bigint> {
    const spend = new Map<string, bigint>()
    for (const key of this.#keys.values()) {
      if (key.isGroup) continue
      const spent = key.scopesFor(null)[0]?.account(this.#options.clock.wall())?.spent ?? -1
      if (spent >= 0) spend.set(key.name, BigInt(spent) * 1_000n)
    }
    return spend
  }

  /** Gives back what is held, as far as the store answers. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#beat?.cancel()
    if (!this.#isReachable) return
    await Promise.all([...this.#lanes.values()].map(async lane => {
      lane.flush?.cancel()
      for (const key of lane.keys) key.giveUpAllowances()
      if (lane.isCalling) return
      for (const keys of chunks([...lane.keys].filter(({ isBusy }) => isBusy), MAX_KEYS)) await this.#call(lane, [], keys, false)
    }))
  }

  setDefaults(limits: Limits | null): void {
    this.#defaults = limits
    for (const key of this.#keys.values()) if (!key.isGroup) key.configure(key.own, limits, this.#options.compileGlob)
  }

  /** @returns the key, and the groups above it that have limits */
  configure({ groups = [], ...own }: LimitedKey): SharedChain {
    const limited = [own, ...groups.filter(({ limits }) => limits !== null)]
    const isAlone = limited.length === 1 && !own.isGroup
    return limited.map(each => {
      const key = this.#key(each)
      key.configure(each.limits, key.isGroup ? null : this.#defaults, this.#options.compileGlob)
      key.members = each.members ?? []
      this.#assignLane(key, isAlone ? key.id : GROUPS_LANE)
      return key
    })
  }

  admit(pending: Pending): void {
    const { chain } = pending
    for (const key of chain) key.usedAt = this.#options.clock.monotonic()
    const lane = this.#laneOf(chain[0]!)
    lane.queue.push(pending)
    this.#advance(lane)
  }

  /** What is held has changed. */
  changed({ parts }: SharedHold): void {
    for (const { key } of parts) this.#scheduleReport(this.#laneOf(key))
  }

  now(): number {
    return this.#options.clock.wall()
  }

  after(ms: number, work: () => void): Timer {
    return this.#options.clock.setTimeout(work, ms)
  }

  #scheduleReport(lane: Lane): void {
    lane.flush ??= this.#options.clock.setTimeout(() => {
      lane.flush = null
      if (!this.#isReachable || this.#isClosed) return
      if (lane.isCalling) return this.#scheduleReport(lane)
      const dirty = [...lane.keys].filter(({ isDirty, isCalling }) => isDirty && !isCalling)
      if (dirty.length > 0) void this.#call(lane, [], dirty.slice(0, MAX_KEYS), true)
      if (dirty.length > MAX_KEYS) this.#scheduleReport(lane)
    }, SETTLE_MS)
  }

  /** Decides what waits: in the next call, or at once where there is no store. */
  #advance(lane: Lane): void {
    if (lane.isCalling || lane.queue.length === 0) return
    if (!this.#isReachable) {
      for (const pending of lane.queue.splice(0)) this.#admitOffline(pending)
      return
    }
    const keys = new Set<SharedKey>()
    let count = 0
    for (; count < Math.min(lane.queue.length, MAX_BATCH); count++) {
      const { chain } = lane.queue[count]!
      // A key that was in another lane until now: it is this lane's turn after that call.
      if (keys.size + chain.length > MAX_KEYS || chain.some(({ isCalling }) => isCalling)) break
      for (const key of chain) keys.add(key)
    }
    if (count > 0) void this.#call(lane, lane.queue.splice(0, count), [...keys], true)
  }

  /** @param keys those of the requests, and others whose state is reported */
  async #call(lane: Lane, batch: readonly Pending[], keys: readonly SharedKey[], isOpen: boolean): Promise<void> {
    const { store, instance, clock } = this.#options
    lane.isCalling = true
    for (const key of keys) key.isCalling = true
    const ended = (): void => {
      lane.isCalling = false
      for (const key of keys) key.isCalling = false
    }
    const call = new SharedCall(keys, batch, clock.wall(), key => isOpen && clock.monotonic() - key.usedAt < IDLE_MS)
    const { buckets, gauges, accounts, admits } = call
    try {
      const argument: ScriptArgument = { instance, call: ++this.#calls, buckets, gauges, accounts, admits }
      const reply = await store.run(keys.map(key => hashOf(key, lane.partition)), JSON.stringify(argument)) as ScriptReply
      ended()
      call.succeeded(reply[2])
      this.#instances = Math.max(this.#instances, reply[3])
      for (const [n, pending] of batch.entries()) this.#apply(lane, pending, reply[0][n]!, call, reply[1])
    } catch (error) {
      ended()
      call.failed()
      this.#lost(error)
      for (const pending of batch) this.#admitOffline(pending)
    }
    this.#advance(lane)
    for (const key of keys) {
      const own = this.#laneOf(key)
      if (own !== lane) this.#advance(own)
      if (key.isDirty) this.#scheduleReport(own)
    }
  }

  #apply(lane: Lane, pending: Pending, [code, at, waitMs, leaseRequests]: AdmitReply, call: SharedCall, levels: readonly number[]): void {
    const { connection, id } = pending
    const now = this.now()
    if (code === RESTORE) {
      if (this.#admitOnAllowance(pending)) return
      lane.restoring.push(pending)
      if (!lane.isRestoring) void this.#restore(lane)
      return
    }
    const scopes = scopesOf(pending.chain, pending.model)
    const rateLimitStates = ratesOf(scopes, call, levels)
    if (code === 0) {
      const hold = takeHold(pending, 1, now)
      const lease = leaseRequests > 0 ? takeHold(pending, leaseRequests, now) : null
      connection.admitted(id, hold, lease, rateLimitStates, scopes)
      return
    }
    const which = CODES[code - 1] ?? 'requests'
    // The allowance is the last part of the budget that this instance spends.
    if (which === 'budget' && this.#admitOnAllowance(pending)) return
    const scope = scopes[at - 1] ?? { group: null, model: null, limits: {} as SharedScope['limits'] }
    const refusal = refusalOf({ which, waitMs: waitMs < 0 ? Infinity : waitMs, scope }, requestOf(pending))
    connection.refused(id, refusal, rateLimitStates)
  }

  /** Finds out what was spent, for budgets that the store does not know. */
  async #restore(lane: Lane): Promise<void> {
    const { restoring } = lane
    lane.isRestoring = true
    try {
      const { since: epoch, now } = await this.#options.store.since(epochKey(lane.partition))
      const pause = epoch + RESTORE_AFTER_MS - now
      if (pause > 0) await new Promise<void>(resolve => this.after(pause, resolve))
      const wall = this.now()
      const unknown = (key: SharedKey) => key.accounts().filter(({ spent, end }) => spent < 0 && end > wall)
      // Of a period that began later, the store has all spending.
      const isNew = (key: SharedKey) => unknown(key).every(({ start }) => start >= epoch)
      const keys = new Set(restoring.flatMap(({ chain }) => chain))
      for (const key of keys) if (isNew(key)) key.raiseFloors([], true)
      await this.#compare([...keys].filter(key => !isNew(key)), true)
    } catch (error) {
      this.#options.onState(`budgets cannot be restored: ${messageOf(error)}`)
      lane.isRestoring = false
      for (const pending of restoring.splice(0)) this.#admitOffline(pending)
      return
    }
    lane.isRestoring = false
    lane.queue.push(...restoring.splice(0))
    this.#advance(lane)
  }

  /** Has the next call raise what was spent to what the common ledger says. */
  async #compare(keys: readonly SharedKey[], restores: boolean): Promise<void> {
    const { spentOf, groupSpentOf } = this.#options
    const accounts = keys.flatMap(key => key.accounts())
    if (accounts.length === 0) return
    const since = Math.max(0, Math.min(...accounts.map(({ start }) => start)))
    const [groups, own] = [keys.filter(({ isGroup }) => isGroup), keys.filter(({ isGroup }) => !isGroup)]
    const spent = await spentOf?.(own.map(({ name }) => name), since) ?? null
    const groupSpent = groups.length === 0 ? [] : await groupSpentOf?.([...new Set(groups.flatMap(({ members }) => members))], since) ?? null
    for (const key of keys) {
      const rows = key.isGroup ? groupSpent?.filter(({ name }) => key.members.includes(name)) : spent?.filter(({ name }) => name === key.name)
      key.raiseFloors(rows ?? key.localSpend, restores)
    }
  }

  /** Has the store note since when it has its data, where it has none. */
  async #noteEpochs(): Promise<void> {
    const { store } = this.#options
    const partitions = store.isPartitioned ? [GROUPS_PARTITION, ...Array(PARTITIONS).keys()] : ['']
    await Promise.all(partitions.map(partition => store.since(epochKey(String(partition)))))
  }

  async #start(): Promise<void> {
    await this.#options.store.connected()
    if (this.#isClosed) return
    await this.#noteEpochs().catch((error: unknown) => this.#lost(error))
    await this.#beatAll()
  }

  /** Says that this instance is there. */
  async #register(): Promise<void> {
    const argument: ScriptArgument = {
      instance: this.#options.instance, call: ++this.#calls, buckets: [], gauges: [], accounts: [], admits: [],
    }
    const reply = await this.#options.store.run([INSTANCES_KEY], JSON.stringify(argument)) as ScriptReply
    this.#instances = reply[3]
  }

  async #beatAll(): Promise<void> {
    const { clock } = this.#options
    if (!this.#isReachable) {
      try {
        // It may have lost its data meanwhile.
        await this.#noteEpochs()
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
    await this.#register()
    const busy = [...this.#keys.values()].filter(({ isBusy }) => isBusy)
    const mono = clock.monotonic()
    if (spentOf !== null && mono - this.#comparedAt > COMPARE_MS && busy.length > 0) {
      this.#comparedAt = mono
      // Without it the store is right, unless it was replaced by an older copy.
      await this.#compare(busy, false).catch(() => undefined)
    }
    await Promise.all([...this.#lanes.values()].map(lane => this.#reportLane(lane)))
  }

  async #reportLane(lane: Lane): Promise<void> {
    for (const keys of chunks([...lane.keys].filter(({ isBusy }) => isBusy), MAX_KEYS)) {
      // A call that is under way, or one that comes between, takes what is dirty; the rest is reported at the next beat.
      if (lane.isCalling || !this.#isReachable) return
      await this.#call(lane, [], keys.filter(({ isCalling }) => !isCalling), true)
    }
  }

  #lost(error: unknown): void {
    if (!this.#isReachable) return
    this.#isReachable = false
    this.#options.onState(messageOf(error))
    this.#beat?.cancel()
    if (!this.#isClosed) this.#beat = this.#options.clock.setTimeout(() => void this.#beatAll(), PROBE_MS)
  }

  #admitOffline(pending: Pending): void {
    if (this.#options.offline === 'share') {
      if (this.#admitOnAllowance(pending)) return
      const admission = this.#admitLocally(pending)
      if (!admission.ok) return pending.connection.refused(pending.id, admission.refusal, NO_RATES)
      admission.reservation.release()
    }
    pending.connection.refused(pending.id, unavailable(pending.chain), NO_RATES)
  }

  /** @returns false, and decides nothing, where the allowance is too small or the limits refuse */
  #admitOnAllowance(pending: Pending): boolean {
    if (pending.chain.some(({ isCalling }) => isCalling) || !isAllowed(pending, this.now())) return false
    const admission = this.#admitLocally(pending)
    if (!admission.ok) return false
    pending.connection.admitted(pending.id, takeHold(pending, 1, this.now(), admission.reservation), null, NO_RATES, [])
    return true
  }

  #admitLocally({ chain, model, tokens }: Pending) {
    const [key, ...groups] = chain.map(each => this.#shareOf(each)) as [Share, ...Share[]]
    const limited = { ...key.limited, groups: groups.map(group => group.limited) }
    return this.#local.admit({ key: limited, model, estimate: { tokens, pico: 0n } })
  }

  /** The key with its share of the limits; the budget is not one of them. */
  #shareOf({ id, name, isGroup, own }: SharedKey): Share {
    const of = own ?? (isGroup ? null : this.#defaults)
    const instances = this.#instances
    const known = this.#shares.get(id)
    if (known?.of === of && known.instances === instances) return known
    const share = { of, instances, limited: { name, limits: shareOf(of, instances), isGroup: isGroup || undefined } }
    this.#shares.set(id, share)
    return share
  }

  #key(limited: Pick<LimitedKey, 'name' | 'isGroup'>): SharedKey {
    let key = this.#keys.get(idOf(limited))
    if (key === undefined) {
      key = new SharedKey(limited)
      this.#keys.set(key.id, key)
    }
    return key
  }

  #assignLane(key: SharedKey, id: string): void {
    if (key.lane === id) return
    this.#lanes.get(key.lane)?.keys.delete(key)
    key.lane = id
    this.#laneOf(key).keys.add(key)
  }

  #laneOf({ lane: id }: SharedKey): Lane {
    let lane = this.#lanes.get(id)
    if (lane === undefined) {
      lane = { partition: this.#partitionOf(id), keys: new Set(), queue: [], restoring: [], isCalling: false, isRestoring: false, flush: null }
      this.#lanes.set(id, lane)
    }
    return lane
  }

  #partitionOf(lane: string): string {
    if (!this.#options.store.isPartitioned) return ''
    return lane === GROUPS_LANE ? GROUPS_PARTITION : String(crc32(lane) % PARTITIONS)
  }
}

function hashOf({ id }: SharedKey, partition: string): string {
  return HASH_PREFIX + tagOf(partition) + id
}

/** Where it stands since when a partition has its data. */
function epochKey(partition: string): string {
  return partition === '' ? EPOCH_KEY : HASH_PREFIX + tagOf(partition)
}

/** Keys with one tag are on one server: https://valkey.io/topics/cluster-spec/#hash-tags */
function tagOf(partition: string): string {
  return partition === '' ? '' : `{${partition}}`
}

/** What this instance applies of the limits of a key or group while the store is away. */
interface Share {
  readonly of: Limits | null
  readonly instances: number
  readonly limited: LimitedKey
}

function chunks<T>(all: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(all.length / size) }, (_, n) => all.slice(n * size, (n + 1) * size))
}

/** What one worker, or this process, has open. */
export class SharedConnection {
  readonly #limits: SharedLimits
  readonly #send: (replies: LimiterReplies) => void
  readonly #chains = new Map<number, SharedChain>()
  /** By the ids that the worker gives them. */
  readonly #open: (SharedHold | null)[] = []
  readonly #leases = new Slots<SharedHold>()
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

const NO_RATES: RateLimitStates = Object.freeze({ requests: null, tokens: null })

function requestOf({ chain, model, tokens, pico }: Pending) {
  const { name, own } = chain[0]!
  return { key: { name, limits: own }, model, estimate: { tokens, pico } }
}

function unavailable(chain: SharedChain): Refusal {
  return {
    which: 'unavailable',
    scope: { key: chain[0]!.name, group: null, model: null },
    retryAfterMs: 1_000,
    renewsSoon: true,
    message: 'The limits of this key cannot be checked at the moment.',
  }
}

function ratesOf(scopes: readonly SharedScope[], call: SharedCall, levels: readonly number[]): RateLimitStates {
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
