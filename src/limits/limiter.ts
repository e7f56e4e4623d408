import type { Limits } from '../config/key-types.ts'
import type { BudgetAccount } from './budget-account.ts'
import { effectiveLimits } from './effective-limits.ts'
import { MIN_LEASE_REQUESTS, QuotaLease, MAX_LEASE_MS } from './quota-lease.ts'
import { AdmissionQueue, type LimitQueue, type Ticket, type WaitTerms } from './queue/admission-queue.ts'
import { refusalOf } from './refusal.ts'
import { normalizeEstimate, MultiScopeReservation, UNLIMITED } from './reservation.ts'
import { Scope, type Moment, type BlockingLimit } from './scope.ts'
import { idOf, isUnlimited } from './types.ts'
import type {
  Admission, AdmissionRequest, CompileGlob, RateLimitStates, LimitClock, LimitedKey, Limiter, LimitRefusal, RateLimitState, Reservation, Spend,
} from './types.ts'

/** @param options `defaults`: limits of every key; each field applies to keys that do not set the field */
export function createLimiter(options: { defaults: Limits | null; compileGlob: CompileGlob; clock: LimitClock }): LocalLimiter {
  return new LocalLimiter(options.defaults, options.compileGlob, options.clock)
}

/** The state of one key or group. */
interface KeyState {
  key: LimitedKey
  defaults: Limits | null
  readonly whole: Scope
  /** The scopes of all globs that have been active. */
  readonly byGlob: Map<string, Scope>
  models: readonly { readonly matches: (model: string) => boolean; readonly scope: Scope }[]
}

/** At this number of states (about 10 MB), idle states are removed for the first time. */
const INITIAL_SWEEP_SIZE = 16_384

/** A limiter whose state is in this process. The time for a request does not depend on the number of keys. */
export class LocalLimiter implements Limiter {
  #defaults: Limits | null
  readonly #compileGlob: CompileGlob
  readonly #clock: LimitClock
  readonly #keys = new Map<string, KeyState>()
  #sweepAt = INITIAL_SWEEP_SIZE
  /** null = no request has waited yet. */
  #queue: AdmissionQueue<AdmissionRequest, Reservation> | null = null

  constructor(defaults: Limits | null, compileGlob: CompileGlob, clock: LimitClock) {
    this.#defaults = defaults
    this.#compileGlob = compileGlob
    this.#clock = clock
  }

  /** @param turn the queue whose turn it is; null = the request has to wait behind those that wait */
  admit(request: AdmissionRequest, turn: LimitQueue | null = null): Admission {
    if (isUnlimited(request.key, this.#defaults)) {
      this.limitsRemoved(request.key)
      return UNLIMITED
    }
    const now = this.#now()
    const scopes = this.#scopes(request.key, request.model, now)
    const { tokens, pico } = normalizeEstimate(request.estimate)
    const isPart = request.isPart === true
    let worst: BlockingLimit | null = null
    // A request goes on to queues of later scopes only: behind two queues, requests could change places without end.
    const turnAt = turn === null ? -1 : scopes.findIndex(({ queue }) => queue === turn)
    for (const [at, scope] of scopes.entries()) {
      const blocking = scope.blockingLimit(tokens, pico, now, isPart, at <= turnAt)
      if (blocking !== null && blocking.waitMs > (worst?.waitMs ?? 0)) worst = blocking
    }
    if (worst !== null) return { ok: false, refusal: refusalOf(worst, request) }
    const reservations = scopes.map(scope => scope.reserve(tokens, pico, now, isPart))
    return { ok: true, reservation: new MultiScopeReservation(reservations, this.#clock, !isPart) }
  }

  wait(request: AdmissionRequest, terms: WaitTerms, done: (admission: Admission) => void): Ticket {
    this.#queue ??= new AdmissionQueue<AdmissionRequest, Reservation>({
      decide: (waiting, turn, decided) => decided(this.admit(waiting, turn)),
      setQueue: (waiting, scope, queue) => this.setQueue(waiting, scope, queue),
      asksAgain: false,
    }, this.#clock)
    return this.#queue.wait(request, terms, done)
  }

  /** Makes requests wait behind the queue of a limit that refused the request; null = nothing waits any more. */
  setQueue({ key }: AdmissionRequest, { group, model }: LimitRefusal['scope'], queue: LimitQueue | null): void {
    const holder = group === null || (key.isGroup && key.name === group) ? key : key.groups?.find(({ name }) => name === group)
    const state = holder && this.#keys.get(idOf(holder))
    const scope = model === null ? state?.whole : state?.byGlob.get(model)
    if (scope !== undefined) scope.queue = queue
  }

  /**
   * Reserves the quota for up to `maxRequests` requests with the same estimate.
   * @returns null = not enough is free for a lease, or the key has no limits
   */
  lease({ key, model, estimate }: AdmissionRequest, maxRequests: number): QuotaLease | null {
    if (isUnlimited(key, this.#defaults)) return null
    const now = this.#now()
    const scopes = this.#scopes(key, model, now)
    const { tokens, pico } = normalizeEstimate(estimate)
    const requests = Math.min(maxRequests, ...scopes.map(scope => scope.leasableRequests(tokens, pico, now)))
    if (requests < MIN_LEASE_REQUESTS) return null
    const countsTokens = scopes.some(({ limits }) => limits.tokensPerMinute !== null)
    const hasBudget = scopes.some(({ limits }) => limits.budget !== null)
    const size = { requests, tokens: countsTokens ? tokens * requests : null, pico: hasBudget ? (pico ?? 0n) * BigInt(requests) : null }
    const lifetimeMs = Math.min(MAX_LEASE_MS, ...scopes.map(scope => scope.renewalMs(now)))
    return new QuotaLease(size, lifetimeMs, scopes.map(scope => scope.lease(size, now)), this.#clock)
  }

  /** Stops counting the spend of a key after its limits were removed. */
  limitsRemoved(key: LimitedKey): void {
    if (!isUnlimited(key, this.#defaults)) return
    for (const each of [key, ...key.groups ?? []]) {
      const known = this.#keys.get(idOf(each))
      if (known !== undefined) this.#refresh(known, each, this.#now())
    }
  }

  rateLimitStates(key: LimitedKey, model: string | null): RateLimitStates {
    if (isUnlimited(key, this.#defaults)) return { requests: null, tokens: null }
    const now = this.#now()
    const scopes = this.#scopes(key, model, now)
    return { requests: tightest(scopes, 'requests', now), tokens: tightest(scopes, 'tokens', now) }
  }

  budgetSpend(): ReadonlyMap<string, bigint> {
    const { wall } = this.#now()
    const spend = new Map<string, bigint>()
    for (const [id, { whole }] of this.#keys) {
      const spent = whole.budgetSpent(wall)
      if (spent !== null) spend.set(id, spent)
    }
    return spend
  }

  restoreSpend(rows: Iterable<Spend>): void {
    const restored = new Set<BudgetAccount>()
    const now = this.#now()
    for (const { key, model, startedAt, pico } of rows) {
      for (const scope of this.#scopes(key, model, now)) {
        const account = scope.restore(pico, startedAt)
        if (account !== null) restored.add(account)
      }
    }
    for (const account of restored) account.closeRestore()
  }

  reconfigure(defaults: Limits | null): void {
    this.#defaults = defaults
    if (defaults !== null) return
    const now = this.#now()
    for (const state of this.#keys.values()) if (state.key.limits === null) this.#refresh(state, state.key, now)
  }

  #now(): Moment {
    return { mono: Math.floor(this.#clock.monotonic()), wall: this.#clock.wall() }
  }

  /** The scopes of the key and of its groups that apply to the model. */
  #scopes(key: LimitedKey, model: string | null, now: Moment): readonly Scope[] {
    const scopes: Scope[] = []
    this.#addScopes(scopes, key, model, now)
    for (const group of key.groups ?? []) if (group.limits !== null) this.#addScopes(scopes, group, model, now)
    return scopes
  }

  #addScopes(scopes: Scope[], key: LimitedKey, model: string | null, now: Moment): void {
    const { whole, models } = this.#state(key, now)
    scopes.push(whole)
    if (model === null) return
    for (const { matches, scope } of models) if (matches(model)) scopes.push(scope)
  }

  #state(key: LimitedKey, now: Moment): KeyState {
    const id = idOf(key)
    const known = this.#keys.get(id)
    if (known !== undefined) {
      this.#refresh(known, key, now)
      return known
    }
    if (this.#keys.size >= this.#sweepAt) this.#sweep(now)
    const state: KeyState = { key, defaults: null, whole: new Scope(null, groupOf(key)), byGlob: new Map(), models: [] }
    this.#configure(state, key, now)
    this.#keys.set(id, state)
    return state
  }

  #refresh(state: KeyState, key: LimitedKey, now: Moment): void {
    if (state.key.limits !== key.limits || state.defaults !== this.#defaults) this.#configure(state, key, now)
  }

  #configure(state: KeyState, key: LimitedKey, now: Moment): void {
    const { whole, models } = effectiveLimits(key.limits, key.isGroup ? null : this.#defaults)
    state.key = key
    state.defaults = this.#defaults
    state.whole.configure(whole, now)
    for (const [glob, scope] of state.byGlob) if (!models.has(glob)) scope.configure(null, now)
    state.models = [...models].map(([glob, limits]) => {
      const scope = state.byGlob.get(glob) ?? new Scope(glob, groupOf(key))
      scope.configure(limits, now)
      state.byGlob.set(glob, scope)
      return { matches: this.#compileGlob(glob), scope }
    })
  }

  /** Removes the states of idle keys and groups, so that deleted keys use no memory. */
  #sweep(now: Moment): void {
    for (const [name, { whole, byGlob }] of this.#keys) {
      if (whole.idle(now) && [...byGlob.values()].every(scope => scope.idle(now))) this.#keys.delete(name)
    }
    this.#sweepAt = Math.max(INITIAL_SWEEP_SIZE, this.#keys.size * 2)
  }
}

function groupOf({ name, isGroup }: LimitedKey): string | null {
  return isGroup ? name : null
}

function tightest(scopes: readonly Scope[], kind: 'requests' | 'tokens', now: Moment): RateLimitState | null {
  let found: RateLimitState | null = null
  for (const scope of scopes) {
    const rateLimits = scope.rateLimitState(kind, now)
    if (rateLimits !== null && (found === null || rateLimits.remaining < found.remaining)) found = rateLimits
  }
  return found
}
