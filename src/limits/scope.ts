import { picoUsd } from '../base/decimal.ts'
import type { Budget } from '../config/types.ts'
import { Account, IN_FLIGHT_RETRY_MS } from './account.ts'
import type { Period } from './account.ts'
import { Bucket } from './bucket.ts'
import type { Hold } from './bucket.ts'
import type { LeaseSize, ActualUsage, RateLimitState, RefusalReason, ScopeLimits } from './types.ts'

/** One moment on both clocks. */
export interface Moment {
  /** Whole milliseconds, monotonic. */
  readonly mono: number
  /** Milliseconds since 1970. */
  readonly wall: number
}

/** The limit that a request has to wait for the longest. */
export interface BlockingLimit {
  readonly which: RefusalReason
  /** Infinity = for ever. */
  readonly waitMs: number
  readonly scope: Scope
}

/** Of what is free of a rate or a budget one loan may take this part: so little that no figure is far off. */
const LEASE_SHARE_DIVISOR = 32
/** That of turns, which no figure shows. */
const CONCURRENCY_SHARE_DIVISOR = 8

const NO_LIMITS: ScopeLimits = {
  requestsPerMinute: null,
  tokensPerMinute: null,
  concurrent: null,
  budget: null,
}

/**
 * One set of limits and the state that they need: of a key as a whole (model
 * null) or of a glob of models inside it. State outlives the limit that it was
 * made for: a limit that goes and comes back finds it, as happens for a moment
 * while a reload is under way and requests come with the old and the new key.
 */
export class Scope {
  readonly model: string | null
  #limits = NO_LIMITS
  #running = 0
  #requests: Bucket | null = null
  #tokens: Bucket | null = null
  #account: Account | null = null
  readonly #accounts: Account[] = []

  constructor(model: string | null) {
    this.model = model
  }

  /** Those in force; none to begin with. */
  get limits(): ScopeLimits {
    return this.#limits
  }

  /** Puts `limits` in force, or none. */
  configure(limits: ScopeLimits | null, now: Moment): void {
    this.#limits = limits ?? NO_LIMITS
    const { requestsPerMinute, tokensPerMinute, budget } = this.#limits
    if (requestsPerMinute !== null) this.#requests = withRate(this.#requests, requestsPerMinute, now)
    if (tokensPerMinute !== null) this.#tokens = withRate(this.#tokens, tokensPerMinute, now)
    const account = budget === null ? null : this.#accountFor(budget, now)
    if (account !== this.#account) this.#account?.suspend()
    this.#account = account
  }

  /**
   * What stands in the way of a request, if anything does.
   *
   * @param pico - worst case in 1e-12 USD, null = unknown
   */
  blockingLimit(tokens: number, pico: bigint | null, now: Moment): BlockingLimit | null {
    let which: RefusalReason = 'requests'
    let waitMs = this.#requestBucket()?.wait(1, now.mono) ?? 0
    const tokenWait = this.#tokenBucket()?.wait(tokens, now.mono) ?? 0
    if (tokenWait > waitMs) [which, waitMs] = ['tokens', tokenWait]
    const turnWait = this.#concurrencyWait()
    if (turnWait > waitMs) [which, waitMs] = ['concurrent', turnWait]
    if (this.#account !== null) {
      const moneyWait = pico === null ? Infinity : this.#account.wait(pico, now.wall)
      if (moneyWait > waitMs) [which, waitMs] = [pico === null ? 'unpriced' : 'budget', moneyWait]
    }
    return waitMs === 0 ? null : { which, waitMs, scope: this }
  }

  /** Takes what a request may need at most; only where there is no obstacle. */
  reserve(tokens: number, pico: bigint | null, now: Moment): ScopeReservation {
    this.#running++
    this.#requestBucket()?.add(1, now.mono)
    const bucket = this.#tokenBucket()
    const hold = bucket?.hold(tokens, now.mono) ?? null
    const period = this.#account?.reserve(pico ?? 0n, now.wall) ?? null
    return { scope: this, bucket, hold, period, pico: pico ?? 0n }
  }

  /** A request with a claim runs no more; once for each, before it is settled. */
  releaseConcurrency(): void {
    this.#running--
  }

  /** Ends a claim; once for each. `outcome` as in Reservation.settle, its numbers whole and not negative. */
  settle({ bucket, hold, period, pico }: ScopeReservation, outcome: ActualUsage, mono: number): void {
    if (bucket !== null && hold !== null) bucket.settle(hold, outcome.tokens ?? hold.amount, mono)
    if (period !== null) {
      period.reserved -= pico
      period.spent += outcome.pico ?? pico
    }
  }

  /** How many requests like this one may be lent at once. */
  leasableRequests(tokens: number, pico: bigint | null, now: Moment): number {
    const { concurrent } = this.#limits
    const requests = this.#requestBucket()?.remaining(now.mono) ?? Infinity
    const counted = tokens === 0 ? Infinity : (this.#tokenBucket()?.remaining(now.mono) ?? Infinity) / tokens
    const turns = concurrent === null ? Infinity : (concurrent - this.#running) / CONCURRENCY_SHARE_DIVISOR
    return Math.floor(Math.min(requests / LEASE_SHARE_DIVISOR, counted / LEASE_SHARE_DIVISOR, turns, this.#affordableRequests(pico, now)))
  }

  /** Milliseconds until another period of the budget begins. */
  renewalMs(now: Moment): number {
    return this.#account === null ? Infinity : this.#account.periodAt(now.wall).end - now.wall
  }

  /** Takes what is lent; only where that much is lendable. */
  lease(size: LeaseSize, now: Moment): ScopeLease {
    this.#running += size.requests
    const requests = this.#requestBucket()
    const bucket = this.#tokenBucket()
    const pico = size.pico ?? 0n
    return {
      scope: this,
      running: size.requests,
      requests,
      requestsHold: requests?.hold(size.requests, now.mono) ?? null,
      bucket,
      hold: bucket?.hold(size.tokens ?? 0, now.mono) ?? null,
      period: this.#account?.reserve(pico, now.wall) ?? null,
      pico,
    }
  }

  /** The part of what was lent that an open request keeps when the rest goes back. */
  splitLease(lent: ScopeLease, tokens: number, pico: bigint): ScopeReservation {
    const { bucket, hold, period } = lent
    const part = pico < lent.pico ? pico : lent.pico
    lent.running--
    lent.pico -= part
    const own = bucket === null || hold === null ? null : bucket.split(hold, tokens)
    return { scope: this, bucket, hold: own, period, pico: part }
  }

  /** Ends what was lent, of which open requests have their parts by now; `used` is whole and not negative. */
  settleLease(
    { running, requests, requestsHold, ...claim }: ScopeLease,
    used: { readonly requests: number, readonly tokens: number, readonly pico: bigint }, mono: number,
  ): void {
    this.#running -= running
    if (requests !== null && requestsHold !== null) requests.settle(requestsHold, used.requests, mono)
    this.settle(claim, used, mono)
  }

  /** Adds past spending (1e-12 USD); returns the account that took it, if one did. */
  restore(pico: bigint, startedAt: number): Account | null {
    return this.#account?.restore(pico, startedAt) === true ? this.#account : null
  }

  /** Figures of the limits in force. */
  rateLimitState(kind: 'requests' | 'tokens', { mono }: Moment): RateLimitState | null {
    const bucket = kind === 'requests' ? this.#requestBucket() : this.#tokenBucket()
    if (bucket === null) return null
    return { limit: bucket.perMinute, remaining: bucket.remaining(mono), resetMs: bucket.resetMs(mono) }
  }

  /** Whether it differs in nothing from a new one. */
  idle(now: Moment): boolean {
    return this.#running === 0
      && (this.#requests?.idle(now.mono) ?? true)
      && (this.#tokens?.idle(now.mono) ?? true)
      && this.#accounts.every(account => account.idle())
  }

  #requestBucket(): Bucket | null {
    return this.#limits.requestsPerMinute === null ? null : this.#requests
  }

  #tokenBucket(): Bucket | null {
    return this.#limits.tokensPerMinute === null ? null : this.#tokens
  }

  #affordableRequests(pico: bigint | null, now: Moment): number {
    if (this.#account === null || pico === 0n) return Infinity
    return pico === null ? 0 : Number(this.#account.free(now.wall) / (pico * BigInt(LEASE_SHARE_DIVISOR)))
  }

  #concurrencyWait(): number {
    const { concurrent } = this.#limits
    if (concurrent === null || this.#running < concurrent) return 0
    return concurrent === 0 ? Infinity : IN_FLIGHT_RETRY_MS
  }

  #accountFor(budget: Budget, now: Moment): Account {
    const limit = picoUsd(budget.usd)
    let account = this.#accounts.find(({ per }) => per === budget.per)
    if (account === undefined) {
      account = new Account(budget.per, limit, now.wall)
      this.#accounts.push(account)
    }
    account.limit = limit
    return account
  }
}

/** What one admitted request took from one scope. */
export interface ScopeReservation {
  readonly scope: Scope
  readonly bucket: Bucket | null
  readonly hold: Hold | null
  readonly period: Period | null
  readonly pico: bigint
}

/** What a loan took from one scope; its parts come out of it. */
export interface ScopeLease {
  readonly scope: Scope
  running: number
  readonly requests: Bucket | null
  readonly requestsHold: Hold | null
  readonly bucket: Bucket | null
  readonly hold: Hold | null
  readonly period: Period | null
  pico: bigint
}

function withRate(bucket: Bucket | null, perMinute: number, now: Moment): Bucket {
  if (bucket === null) return new Bucket(perMinute, now.mono)
  bucket.setRate(perMinute, now.mono)
  return bucket
}
