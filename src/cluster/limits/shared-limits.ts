import { messageOf } from '../../base/message-of.ts'
import type { Limits } from '../../config/key-types.ts'
import { raiseToCommonSpend, restoreSpend, type CommonSpend } from './common-spend.ts'
import { AdmissionQueue, type Decision, type LimitQueue, type Ticket, type WaitTerms } from '../../limits/queue/admission-queue.ts'
import type { LimiterReplies } from '../../limits/workers/lease-messages.ts'
import { OfflineShares } from './offline-shares.ts'
import { refusalOf } from '../../limits/refusal.ts'
import { SharedCall, ratesOf } from './shared-call.ts'
import { SharedConnection, type Pending, type SharedAdmitter, type SharedPlace, type SharedRequest } from './shared-connection.ts'
import { scopesOf, takeHold, type SharedChain, type SharedHold, type SharedKey, type SharedScope } from './shared-key.ts'
import { SharedLanes, type Lane } from './shared-lanes.ts'
import type { AdmitReply, ScriptArgument, ScriptReply } from './shared-script.ts'
import { INSTANCES_KEY, epochKey, hashOf } from './shared-store.ts'
import { StoreHeartbeat, type StoreHeartbeatOptions } from './store-heartbeat.ts'
import type { BlockingLimit } from '../../limits/scope.ts'
import type { CompileGlob, LimitedKey, LimitReason, LimitRefusal } from '../../limits/types.ts'

export interface SharedLimitsOptions extends CommonSpend, StoreHeartbeatOptions {
  /** A name that differs for each process. */
  readonly instance: string
  /** What happens to requests while the store is unreachable. */
  readonly offline: 'share' | 'refuse'
  readonly compileGlob: CompileGlob
}

const SETTLE_MS = 25
/** Milliseconds for which an unused key keeps its allowances. */
const IDLE_MS = 60_000
/** Milliseconds between two comparisons with the spend in PostgreSQL. */
const COMPARE_MS = 10_000
/** Milliseconds until budgets are restored in a new store, so that every instance has reported its state and sent its rows before. */
const RESTORE_AFTER_MS = 3_000
const MAX_BATCH = 200
/** Maximum keys and groups in one call. */
const MAX_KEYS = 50
const CODES: readonly LimitReason[] = ['requests', 'tokens', 'concurrent', 'budget', 'unpriced']
const RESTORE = 6

/**
 * Limits that several gateways share. The store has the state of the limits. Each call sends this instance's reservations and spend. Only
 * one call of a lane runs at a time, and later requests wait for the next call. As with LeaseServer, workers get leases, so that most
 * requests need no call.
 *
 * While the store is unreachable, `share` divides each limit by the number of instances. For a budget, this instance can spend only its
 * allowance, which no other instance spends.
 */
export class SharedLimits implements SharedAdmitter {
  readonly #options: SharedLimitsOptions
  readonly #lanes: SharedLanes
  readonly #offline: OfflineShares
  readonly #heartbeat: StoreHeartbeat
  readonly #queue: AdmissionQueue<SharedRequest, SharedPlace>
  #calls = 0
  #defaults: Limits | null = null
  #comparedAt: number

  constructor(options: SharedLimitsOptions) {
    this.#options = options
    const { clock, compileGlob } = options
    this.#lanes = new SharedLanes(options.store.isPartitioned)
    this.#offline = new OfflineShares(options.offline, clock, compileGlob)
    this.#comparedAt = clock.monotonic()
    this.#queue = new AdmissionQueue<SharedRequest, SharedPlace>({
      decide: (request, turn, done) => this.#decide(request, turn, done),
      setQueue: ({ chain }, { group, model }, queue) => {
        const holder = group === null ? chain[0] : chain.find(({ name, isGroup }) => isGroup && name === group)
        const scope = holder?.scope(model)
        if (scope) scope.queue = queue
      },
      asksAgain: true,
    }, clock)
    this.#heartbeat = new StoreHeartbeat(options, () => this.#report())
  }

  /** Resolves at the first response of the store, or after a timeout. */
  ready(): Promise<void> {
    return this.#heartbeat.started
  }

  /** Connects a worker or, without workers, this process. */
  connect(send: (replies: LimiterReplies) => void): SharedConnection {
    return new SharedConnection(this, send)
  }

  /** Spend of all instances in 1e-12 USD, by `idOf`, for groups and whole keys with a budget. */
  budgetSpend(): ReadonlyMap<string, bigint> {
    const spend = new Map<string, bigint>()
    for (const key of this.#lanes.keys) {
      const spent = key.scopesFor(null)[0]?.account(this.#options.clock.wall())?.spent ?? -1
      if (spent >= 0) spend.set(key.id, BigInt(spent) * 1_000n)
    }
    return spend
  }

  /** Releases this instance's reservations and allowances in the store if the store is reachable. */
  async close(): Promise<void> {
    this.#heartbeat.stop()
    if (!this.#heartbeat.isReachable) return
    await Promise.all([...this.#lanes.all].map(async lane => {
      lane.flush?.cancel()
      for (const key of lane.keys) key.giveUpAllowances()
      if (lane.isCalling) return
      for (const keys of chunks([...lane.keys].filter(({ isBusy }) => isBusy), MAX_KEYS)) await this.#call(lane, [], keys, false)
    }))
  }

  setDefaults(limits: Limits | null): void {
    this.#defaults = this.#offline.defaults = limits
    for (const key of this.#lanes.keys) if (!key.isGroup) key.configure(key.own, limits, this.#options.compileGlob)
  }

  configure({ groups = [], ...own }: LimitedKey): SharedChain {
    const limited = [own, ...groups.filter(({ limits }) => limits !== null)]
    const isAlone = limited.length === 1 && !own.isGroup
    return limited.map(each => {
      const key = this.#lanes.key(each)
      key.configure(each.limits, key.isGroup ? null : this.#defaults, this.#options.compileGlob)
      key.members = each.members ?? []
      this.#lanes.assign(key, isAlone)
      return key
    })
  }

  admit(pending: Pending): void {
    const { chain } = pending
    for (const key of chain) key.usedAt = this.#options.clock.monotonic()
    const before = pending.isPart ? null : queueBefore(pending)
    if (before !== null) return pending.connection.refused(pending.id, before, null)
    const lane = this.#lanes.of(chain[0]!)
    lane.queue.push(pending)
    this.#advance(lane)
  }

  wait(request: SharedRequest, terms: WaitTerms, done: (decision: Decision<SharedPlace>) => void): Ticket {
    return this.#queue.wait(request, terms, done)
  }

  #decide(request: SharedRequest, turn: LimitQueue | null, done: (decision: Decision<SharedPlace>) => void): void {
    this.admit({
      ...request, turn, id: 0, connection: {
        admitted: (_id, hold, _lease, rateLimitStates) => done({
          ok: true, reservation: {
            hold, rateLimitStates,
            release: () => {
              hold.settle({ requests: 0, tokens: 0, nano: 0 })
              hold.offline?.release()
              this.changed(hold)
            },
          },
        }),
        refused: (_id, refusal) => done({ ok: false, refusal }),
      },
    })
  }

  changed({ parts }: SharedHold): void {
    for (const { key } of parts) this.#scheduleReport(this.#lanes.of(key))
  }

  now(): number {
    return this.#options.clock.wall()
  }

  #scheduleReport(lane: Lane): void {
    lane.flush ??= this.#options.clock.setTimeout(() => {
      lane.flush = null
      if (!this.#heartbeat.isReachable || this.#heartbeat.isStopped) return
      if (lane.isCalling) return this.#scheduleReport(lane)
      const dirty = [...lane.keys].filter(({ isDirty, isCalling }) => isDirty && !isCalling)
      if (dirty.length > 0) void this.#call(lane, [], dirty.slice(0, MAX_KEYS), true)
      if (dirty.length > MAX_KEYS) this.#scheduleReport(lane)
    }, SETTLE_MS)
  }

  /** Decides the waiting requests of a lane: by the next call or, if the store is unreachable, at once. */
  #advance(lane: Lane): void {
    if (lane.isCalling || lane.queue.length === 0) return
    if (!this.#heartbeat.isReachable) {
      for (const pending of lane.queue.splice(0)) this.#offline.decide(pending)
      return
    }
    const keys = new Set<SharedKey>()
    let count = 0
    for (; count < Math.min(lane.queue.length, MAX_BATCH); count++) {
      const { chain } = lane.queue[count]!
      // A request waits if one of its keys is in a running call, which can be the call of the key's earlier lane.
      if (keys.size + chain.length > MAX_KEYS || chain.some(({ isCalling }) => isCalling)) break
      for (const key of chain) keys.add(key)
    }
    if (count > 0) void this.#call(lane, lane.queue.splice(0, count), [...keys], true)
  }

  /** @param keys the keys of the requests, and other keys whose state is reported */
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
      this.#offline.instances = Math.max(this.#offline.instances, reply[3])
      for (const [n, pending] of batch.entries()) this.#apply(lane, pending, reply[0][n]!, call, reply[1])
    } catch (error) {
      ended()
      call.failed()
      this.#heartbeat.lost(error)
      for (const pending of batch) this.#offline.decide(pending)
    }
    this.#advance(lane)
    for (const key of keys) {
      const own = this.#lanes.of(key)
      if (own !== lane) this.#advance(own)
      if (key.isDirty) this.#scheduleReport(own)
    }
  }

  #apply(lane: Lane, pending: Pending, [code, at, waitMs, leaseRequests]: AdmitReply, call: SharedCall, levels: readonly number[]): void {
    const { connection, id } = pending
    const now = this.now()
    if (code === RESTORE) {
      if (this.#offline.admitOnAllowance(pending)) return
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
    // If the rest of a budget is allowances of instances, this instance can still use its own allowance.
    if (which === 'budget' && this.#offline.admitOnAllowance(pending)) return
    const scope = scopes[at - 1] ?? { group: null, model: null, limits: {} as SharedScope['limits'] }
    connection.refused(id, refusalFor(pending, { which, waitMs: waitMs < 0 ? Infinity : waitMs, scope }), rateLimitStates)
  }

  async #restore(lane: Lane): Promise<void> {
    const { restoring } = lane
    lane.isRestoring = true
    try {
      const { since: epoch, now } = await this.#options.store.since(epochKey(lane.partition))
      const pause = epoch + RESTORE_AFTER_MS - now
      if (pause > 0) await new Promise<void>(resolve => this.#options.clock.setTimeout(resolve, pause))
      await restoreSpend(new Set(restoring.flatMap(({ chain }) => chain)), { epoch, now: this.now() }, this.#options)
    } catch (error) {
      this.#options.onState(`budgets cannot be restored: ${messageOf(error)}`)
      lane.isRestoring = false
      for (const pending of restoring.splice(0)) this.#offline.decide(pending)
      return
    }
    lane.isRestoring = false
    lane.queue.push(...restoring.splice(0))
    this.#advance(lane)
  }

  async #report(): Promise<void> {
    const { instance, store, clock, spentOf } = this.#options
    const argument: ScriptArgument = { instance, call: ++this.#calls, buckets: [], gauges: [], accounts: [], admits: [] }
    const reply = await store.run([INSTANCES_KEY], JSON.stringify(argument)) as ScriptReply
    this.#offline.instances = reply[3]
    const busy = [...this.#lanes.keys].filter(({ isBusy }) => isBusy)
    const mono = clock.monotonic()
    if (spentOf !== null && mono - this.#comparedAt > COMPARE_MS && busy.length > 0) {
      this.#comparedAt = mono
      // Ignore a failure: the comparison matters only if an older copy has replaced the store.
      await raiseToCommonSpend(busy, false, this.#options).catch(() => undefined)
    }
    await Promise.all([...this.#lanes.all].map(lane => this.#reportLane(lane)))
  }

  async #reportLane(lane: Lane): Promise<void> {
    for (const keys of chunks([...lane.keys].filter(({ isBusy }) => isBusy), MAX_KEYS)) {
      // Stop here: the running call, or the next heartbeat, reports the other keys.
      if (lane.isCalling || !this.#heartbeat.isReachable) return
      await this.#call(lane, [], keys.filter(({ isCalling }) => !isCalling), true)
    }
  }
}

function refusalFor({ chain, model, tokens, pico }: Pending, blocking: BlockingLimit): LimitRefusal {
  const { name, own } = chain[0]!
  return refusalOf(blocking, { key: { name, limits: own }, model, estimate: { tokens, pico } })
}

/** @returns the refusal of a request that cannot pass those that wait for a limit; null = none waits */
function queueBefore(pending: Pending): LimitRefusal | null {
  const { turn } = pending
  const scopes = [...scopesOf(pending.chain, pending.model)]
  // As at one gateway: a request goes on to queues of later scopes only.
  const turnAt = turn === null ? -1 : scopes.findIndex(({ queue }) => queue === turn)
  for (const scope of scopes.slice(turnAt + 1)) {
    const { queue } = scope
    if (queue !== null) return refusalFor(pending, { which: queue.which, waitMs: queue.waitMs, scope })
  }
  return null
}

function chunks<T>(all: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(all.length / size) }, (_, n) => all.slice(n * size, (n + 1) * size))
}
