import type { Limits } from '../config/types.ts'
import type { Account } from './account.ts'
import { estimated } from './amounts.ts'
import { Claims } from './multi-scope-reservation.ts'
import { LEAST_LOAN, Loan, LOAN_MS } from './quota-lease.ts'
import { plan } from './effective-limits.ts'
import { refusalOf } from './refusal.ts'
import { Scope } from './scope.ts'
import type { Moment, Obstacle } from './scope.ts'
import type {
  Admission, Ask, CompileGlob, Figures, LimitClock, LimitedKey, Limiter, RateFigures, Spend,
} from './types.ts'
import { UNLIMITED } from './unlimited.ts'

/** A limiter whose state is in this process, so that it can answer at once. */
export interface LocalLimiter extends Limiter {
  admit(ask: Ask): Admission
  /**
   * Lends what up to `most` requests like this one may need, where that is little of
   * what is free; null where it is not, and where nothing limits this key.
   */
  lend(ask: Ask, most: number): Loan | null
  /** Tells of a key that may have lost its limits: what it spends from here on is not counted. */
  lapse(key: LimitedKey): void
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
const FIRST_SWEEP = 16_384

class MemoryLimiter implements LocalLimiter {
  #defaults: Limits | null
  readonly #compileGlob: CompileGlob
  readonly #clock: LimitClock
  readonly #keys = new Map<string, KeyState>()
  #sweepAt = FIRST_SWEEP

  constructor(defaults: Limits | null, compileGlob: CompileGlob, clock: LimitClock) {
    this.#defaults = defaults
    this.#compileGlob = compileGlob
    this.#clock = clock
  }

  admit(ask: Ask): Admission {
    if (this.#unlimited(ask.key)) {
      this.lapse(ask.key)
      return UNLIMITED
    }
    const now = this.#now()
    const scopes = this.#scopes(ask.key, ask.model, now)
    const { tokens, pico } = estimated(ask.estimate)

    let worst: Obstacle | null = null
    for (const scope of scopes) {
      const obstacle = scope.obstacle(tokens, pico, now)
      if (obstacle !== null && obstacle.waitMs > (worst?.waitMs ?? 0)) worst = obstacle
    }
    if (worst !== null) return { ok: false, refusal: refusalOf(worst, ask) }

    const claims = scopes.map(scope => scope.claim(tokens, pico, now))
    return { ok: true, reservation: new Claims(claims, this.#clock) }
  }

  lend({ key, model, estimate }: Ask, most: number): Loan | null {
    if (this.#unlimited(key)) return null
    const now = this.#now()
    const scopes = this.#scopes(key, model, now)
    const { tokens, pico } = estimated(estimate)
    const requests = Math.min(most, ...scopes.map(scope => scope.lendable(tokens, pico, now)))
    if (requests < LEAST_LOAN) return null
    const isCounted = scopes.some(({ limits }) => limits.tokensPerMinute !== null)
    const isPaid = scopes.some(({ limits }) => limits.budget !== null)
    const size = {
      requests,
      tokens: isCounted ? tokens * requests : null,
      pico: isPaid ? (pico ?? 0n) * BigInt(requests) : null,
    }
    const lifetimeMs = Math.min(LOAN_MS, ...scopes.map(scope => scope.renewalMs(now)))
    return new Loan(size, lifetimeMs, scopes.map(scope => scope.lend(size, now)), this.#clock)
  }

  lapse(key: LimitedKey): void {
    if (!this.#unlimited(key)) return
    const known = this.#keys.get(key.name)
    if (known !== undefined) this.#refresh(known, null, this.#now())
  }

  figures(key: LimitedKey, model: string | null): Figures {
    if (this.#unlimited(key)) return { requests: null, tokens: null }
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
    for (const account of told) account.begin()
  }

  reconfigure(defaults: Limits | null): void {
    this.#defaults = defaults
    if (defaults !== null) return
    const now = this.#now()
    for (const state of this.#keys.values()) if (state.own === null) this.#refresh(state, null, now)
  }

  #unlimited(key: LimitedKey): boolean {
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
    const { whole, models } = plan(own, this.#defaults)
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
    this.#sweepAt = Math.max(FIRST_SWEEP, this.#keys.size * 2)
  }
}

function tightest(scopes: readonly Scope[], kind: 'requests' | 'tokens', now: Moment): RateFigures | null {
  let found: RateFigures | null = null
  for (const scope of scopes) {
    const figures = scope.figures(kind, now)
    if (figures !== null && (found === null || figures.remaining < found.remaining)) found = figures
  }
  return found
}
