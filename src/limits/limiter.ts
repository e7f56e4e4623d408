import type { Limits } from '../config/types.ts'
import type { Account } from './account.ts'
import { normalizeEstimate } from './amounts.ts'
import { effectiveLimits } from './effective-limits.ts'
import { MultiScopeReservation } from './multi-scope-reservation.ts'
import { MIN_LEASE_REQUESTS, QuotaLease, MAX_LEASE_MS } from './quota-lease.ts'
import { refusalOf } from './refusal.ts'
import { Scope } from './scope.ts'
import type { Moment, BlockingLimit } from './scope.ts'
import type {
  Admission, AdmissionRequest, CompileGlob, RateLimitStates, LimitClock, LimitedKey, Limiter, RateLimitState, Spend,
} from './types.ts'
import { UNLIMITED } from './unlimited.ts'

/** A limiter whose state is in this process, so that it can answer at once. */
export interface LocalLimiter extends Limiter {
  admit(ask: AdmissionRequest): Admission
  /**
   * Lends what up to `most` requests like this one may need, where that is little of
   * what is free; null where it is not, and where nothing limits this key.
   */
  lease(ask: AdmissionRequest, most: number): QuotaLease | null
  /** Tells of a key that may have lost its limits: what it spends from here on is not counted. */
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

/** The number of states, about 10 MB of them, at which a first look for idle ones is due. */
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

  admit(ask: AdmissionRequest): Admission {
    if (this.#isUnlimited(ask.key)) {
      this.limitsRemoved(ask.key)
      return UNLIMITED
    }
    const now = this.#now()
    const scopes = this.#scopes(ask.key, ask.model, now)
    const { tokens, pico } = normalizeEstimate(ask.estimate)

    let worst: BlockingLimit | null = null
    for (const scope of scopes) {
      const obstacle = scope.blockingLimit(tokens, pico, now)
      if (obstacle !== null && obstacle.waitMs > (worst?.waitMs ?? 0)) worst = obstacle
    }
    if (worst !== null) return { ok: false, refusal: refusalOf(worst, ask) }

    const claims = scopes.map(scope => scope.reserve(tokens, pico, now))
    return { ok: true, reservation: new MultiScopeReservation(claims, this.#clock) }
  }

  lease({ key, model, estimate }: AdmissionRequest, most: number): QuotaLease | null {
    if (this.#isUnlimited(key)) return null
    const now = this.#now()
    const scopes = this.#scopes(key, model, now)
    const { tokens, pico } = normalizeEstimate(estimate)
    const requests = Math.min(most, ...scopes.map(scope => scope.leasableRequests(tokens, pico, now)))
    if (requests < MIN_LEASE_REQUESTS) return null
    const isCounted = scopes.some(({ limits }) => limits.tokensPerMinute !== null)
    const isPaid = scopes.some(({ limits }) => limits.budget !== null)
    const size = {
      requests,
      tokens: isCounted ? tokens * requests : null,
      pico: isPaid ? (pico ?? 0n) * BigInt(requests) : null,
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

  restoreSpend(rows: Iterable<Spend>): void {
    const told = new Set<Account>()
    const now = this.#now()
    for (const { key, model, startedAt, pico } of rows) {
      for (const scope of this.#scopes(key, model, now)) {
        const account = scope.restore(pico, startedAt)
        if (account !== null) told.add(account)
      }
    }
    for (const account of told) account.closeRestore()
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

  /** Forgets states that a new one would equal, so that keys which come and go leave nothing behind. */
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
    const figures = scope.rateLimitState(kind, now)
    if (figures !== null && (found === null || figures.remaining < found.remaining)) found = figures
  }
  return found
}
