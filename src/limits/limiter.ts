import type { Limits } from '../config/types.ts'
import type { BudgetAccount } from './budget-account.ts'
import { effectiveLimits } from './effective-limits.ts'
import { MIN_LEASE_REQUESTS, QuotaLease, MAX_LEASE_MS } from './quota-lease.ts'
import { refusalOf } from './refusal.ts'
import { normalizeEstimate, MultiScopeReservation, UNLIMITED } from './reservation.ts'
import { Scope } from './scope.ts'
import type { Moment, BlockingLimit } from './scope.ts'
import type {
  Admission, AdmissionRequest, CompileGlob, RateLimitStates, LimitClock, LimitedKey, Limiter, RateLimitState, Spend,
} from './types.ts'

/** A limiter whose state is in this process, so that it decides at once. */
export interface LocalLimiter extends Limiter {
  admit(request: AdmissionRequest): Admission
  /**
   * Reserves what up to `maxRequests` requests like this one may need.
   * @returns null where that is too much of what is free, and where nothing limits this key
   */
  lease(request: AdmissionRequest, maxRequests: number): QuotaLease | null
  /** A key may have lost its limits: what it spends from now on is not counted. */
  limitsRemoved(key: LimitedKey): void
}

/**
 * Limits with their state in memory. A key's state comes into being with its
 * first request, and what a request costs does not depend on the number of keys.
 *
 * @param defaults - hold for every key, field by field, where it sets none of its own
 * @param compileGlob - for the globs in `limits.models`
 */
export function createLimiter(options: {
  defaults: Limits | null
  compileGlob: CompileGlob
  clock: LimitClock
}): LocalLimiter {
  return new MemoryLimiter(options.defaults, options.compileGlob, options.clock)
}

/** The scopes of one key, and which limits they were last configured with. */
interface KeyState {
  own: Limits | null
  defaults: Limits | null
  readonly whole: Scope
  /** Every glob that ever was in force. */
  readonly byGlob: Map<string, Scope>
  /** Those in force. */
  models: readonly { readonly matches: (model: string) => boolean; readonly scope: Scope }[]
}

/** States, about 10 MB, at which idle ones are removed for the first time. */
const INITIAL_SWEEP_SIZE = 16_384

class MemoryLimiter implements LocalLimiter {
  #defaults: Limits | null
  readonly #compileGlob: CompileGlob
  readonly #clock: LimitClock
  readonly #keys = new Map<string, KeyState>()
  #sweepAt = INITIAL_SWEEP_SIZE

  constructor(defaults: Limits | null, compileGlob: CompileGlob, clock: LimitClock) {
    this.#defaults = defaults
    this.#compileGlob = compileGlob
    this.#clock = clock
  }

  admit(request: AdmissionRequest): Admission {
    if (this.#isUnlimited(request.key)) {
      this.limitsRemoved(request.key)
      return UNLIMITED
    }
    const now = this.#now()
    const scopes = this.#scopes(request.key, request.model, now)
    const { tokens, pico } = normalizeEstimate(request.estimate)

    let worst: BlockingLimit | null = null
    for (const scope of scopes) {
      const blocking = scope.blockingLimit(tokens, pico, now)
      if (blocking !== null && blocking.waitMs > (worst?.waitMs ?? 0)) worst = blocking
    }
    if (worst !== null) return { ok: false, refusal: refusalOf(worst, request) }

    const reservations = scopes.map(scope => scope.reserve(tokens, pico, now))
    return { ok: true, reservation: new MultiScopeReservation(reservations, this.#clock) }
  }

  lease({ key, model, estimate }: AdmissionRequest, maxRequests: number): QuotaLease | null {
    if (this.#isUnlimited(key)) return null
    const now = this.#now()
    const scopes = this.#scopes(key, model, now)
    const { tokens, pico } = normalizeEstimate(estimate)
    const requests = Math.min(maxRequests, ...scopes.map(scope => scope.leasableRequests(tokens, pico, now)))
    if (requests < MIN_LEASE_REQUESTS) return null
    const countsTokens = scopes.some(({ limits }) => limits.tokensPerMinute !== null)
    const hasBudget = scopes.some(({ limits }) => limits.budget !== null)
    const size = {
      requests,
      tokens: countsTokens ? tokens * requests : null,
      pico: hasBudget ? (pico ?? 0n) * BigInt(requests) : null,
    }
    const lifetimeMs = Math.min(MAX_LEASE_MS, ...scopes.map(scope => scope.renewalMs(now)))
    return new QuotaLease(size, lifetimeMs, scopes.map(scope => scope.lease(size, now)), this.#clock)
  }

  limitsRemoved(key: LimitedKey): void {
    if (!this.#isUnlimited(key)) return
    const known = this.#keys.get(key.name)
    if (known !== undefined) this.#refresh(known, null, this.#now())
  }

  rateLimitStates(key: LimitedKey, model: string | null): RateLimitStates {
    if (this.#isUnlimited(key)) return { requests: null, tokens: null }
    const now = this.#now()
    const scopes = this.#scopes(key, model, now)
    return { requests: tightest(scopes, 'requests', now), tokens: tightest(scopes, 'tokens', now) }
  }

  budgetSpend(): ReadonlyMap<string, bigint> {
    const { wall } = this.#now()
    const spend = new Map<string, bigint>()
    for (const [name, { whole }] of this.#keys) {
      const spent = whole.budgetSpent(wall)
      if (spent !== null) spend.set(name, spent)
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
    for (const state of this.#keys.values()) if (state.own === null) this.#refresh(state, null, now)
  }

  #isUnlimited(key: LimitedKey): boolean {
    return key.limits === null && this.#defaults === null
  }

  #now(): Moment {
    return { mono: Math.floor(this.#clock.monotonic()), wall: this.#clock.wall() }
  }

  #scopes(key: LimitedKey, model: string | null, now: Moment): readonly Scope[] {
    const { whole, models } = this.#state(key, now)
    const scopes = [whole]
    if (model === null) return scopes
    for (const { matches, scope } of models) if (matches(model)) scopes.push(scope)
    return scopes
  }

  #state(key: LimitedKey, now: Moment): KeyState {
    const known = this.#keys.get(key.name)
    if (known !== undefined) {
      this.#refresh(known, key.limits, now)
      return known
    }
    if (this.#keys.size >= this.#sweepAt) this.#sweep(now)
    const state = { own: null, defaults: null, whole: new Scope(null), byGlob: new Map(), models: [] }
    this.#configure(state, key.limits, now)
    this.#keys.set(key.name, state)
    return state
  }

  #refresh(state: KeyState, own: Limits | null, now: Moment): void {
    if (state.own !== own || state.defaults !== this.#defaults) this.#configure(state, own, now)
  }

  #configure(state: KeyState, own: Limits | null, now: Moment): void {
    const { whole, models } = effectiveLimits(own, this.#defaults)
    state.own = own
    state.defaults = this.#defaults
    state.whole.configure(whole, now)
    for (const [glob, scope] of state.byGlob) if (!models.has(glob)) scope.configure(null, now)
    state.models = [...models].map(([glob, limits]) => {
      const scope = state.byGlob.get(glob) ?? new Scope(glob)
      scope.configure(limits, now)
      state.byGlob.set(glob, scope)
      return { matches: this.#compileGlob(glob), scope }
    })
  }

  /** Removes states that equal a new one, so that keys which come and go leave no memory in use. */
  #sweep(now: Moment): void {
    for (const [name, { whole, byGlob }] of this.#keys) {
      if (whole.idle(now) && [...byGlob.values()].every(scope => scope.idle(now))) this.#keys.delete(name)
    }
    this.#sweepAt = Math.max(INITIAL_SWEEP_SIZE, this.#keys.size * 2)
  }
}

function tightest(scopes: readonly Scope[], kind: 'requests' | 'tokens', now: Moment): RateLimitState | null {
  let found: RateLimitState | null = null
  for (const scope of scopes) {
    const rateLimits = scope.rateLimitState(kind, now)
    if (rateLimits !== null && (found === null || rateLimits.remaining < found.remaining)) found = rateLimits
  }
  return found
}
