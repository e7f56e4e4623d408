import { picoUsd } from '../base/decimal.ts'
import type { Budget } from '../config/key-types.ts'
import { Bucket, type Hold } from './bucket.ts'
import type { LimitQueue } from './queue/admission-queue.ts'
import { BudgetAccount, IN_FLIGHT_RETRY_MS, type Period } from './budget-account.ts'
import type { LeaseSize, ActualUsage, RateLimitState, LimitReason, ScopeLimits } from './types.ts'

export interface Moment {
  /** Whole ms on a monotonic clock. */
  readonly mono: number
  /** ms since 1970. */
  readonly wall: number
}

/** The limit for which a request has to wait longest. */
export interface BlockingLimit {
  readonly which: LimitReason
  /** Milliseconds to wait; Infinity = waiting cannot help. */
  readonly waitMs: number
  readonly scope: Pick<Scope, 'group' | 'model' | 'limits'>
}

/** A lease gets at most 1/32 of the free rate or budget, so that rate-limit headers stay accurate. */
const LEASE_SHARE_DIVISOR = 32
/** A lease gets at most 1/8 of the free concurrency. The share can be larger, because no header shows the concurrency. */
const CONCURRENCY_SHARE_DIVISOR = 8

const NO_LIMITS: ScopeLimits = { requestsPerMinute: null, tokensPerMinute: null, concurrent: null, budget: null }

/**
 * The limits of a whole key (`model` null) or of a glob of models, with their counts. The counts are kept when a limit is removed, because
 * during a reload, requests with the old and the new limits alternate.
 */
export class Scope {
  readonly model: string | null
  /** The group whose limits these are; null = limits of a key. */
  readonly group: string | null
  /** Written by `configure`. */
  limits = NO_LIMITS
  /** The requests that wait for these limits; null = none. */
  queue: LimitQueue | null = null
  #running = 0
  #requests: Bucket | null = null
  #tokens: Bucket | null = null
  /** The buckets above while their limits are active; otherwise null. */
  #requestBucket: Bucket | null = null
  #tokenBucket: Bucket | null = null
  #account: BudgetAccount | null = null
  readonly #accounts: BudgetAccount[] = []

  constructor(model: string | null, group: string | null = null) {
    this.model = model
    this.group = group
  }

  configure(limits: ScopeLimits | null, now: Moment): void {
    this.limits = limits ?? NO_LIMITS
    const { requestsPerMinute, tokensPerMinute, budget } = this.limits
    if (requestsPerMinute !== null) this.#requests = withRate(this.#requests, requestsPerMinute, now)
    if (tokensPerMinute !== null) this.#tokens = withRate(this.#tokens, tokensPerMinute, now)
    this.#requestBucket = requestsPerMinute === null ? null : this.#requests
    this.#tokenBucket = tokensPerMinute === null ? null : this.#tokens
    const account = budget === null ? null : this.#accountFor(budget, now)
    if (account !== this.#account) this.#account?.suspend()
    this.#account = account
    this.queue?.freed()
  }

  /** @param isPart true = count no request and no concurrency @param passesQueue the request need not wait behind those that wait here @returns the limit with the longest wait; null = no limit blocks */
  blockingLimit(tokens: number, pico: bigint | null, now: Moment, isPart = false, passesQueue = false): BlockingLimit | null {
    let which: LimitReason = 'requests'
    let waitMs = isPart ? 0 : this.#requestBucket?.wait(1, now.mono) ?? 0
    const tokenWait = this.#tokenBucket?.wait(tokens, now.mono) ?? 0
    if (tokenWait > waitMs) [which, waitMs] = ['tokens', tokenWait]
    const { concurrent } = this.limits
    const isFull = concurrent !== null && this.#running >= concurrent
    const concurrencyWait = isPart || !isFull ? 0 : concurrent === 0 ? Infinity : IN_FLIGHT_RETRY_MS
    if (concurrencyWait > waitMs) [which, waitMs] = ['concurrent', concurrencyWait]
    if (this.#account !== null) {
      const budgetWait = pico === null ? Infinity : this.#account.wait(pico, now.wall)
      if (budgetWait > waitMs) [which, waitMs] = [pico === null ? 'unpriced' : 'budget', budgetWait]
    }
    if (waitMs > 0) return { which, waitMs, scope: this }
    const { queue } = this
    return queue === null || passesQueue || isPart ? null : { which: queue.which, waitMs: queue.waitMs, scope: this }
  }

  /** Call this only after `blockingLimit` returned null. */
  reserve(tokens: number, pico: bigint | null, now: Moment, isPart = false): ScopeReservation {
    if (!isPart) {
      this.#running++
      this.#requestBucket?.add(1, now.mono)
    }
    const tokenBucket = this.#tokenBucket
    const tokenHold = tokenBucket?.hold(tokens, now.mono) ?? null
    const period = this.#account?.reserve(pico ?? 0n, now.wall) ?? null
    return { scope: this, tokenBucket, tokenHold, period, pico: pico ?? 0n }
  }

  /** @returns 1e-12 USD spent in the current period; null = no budget */
  budgetSpent(wall: number): bigint | null {
    return this.#account?.periodAt(wall).spent ?? null
  }

  /** Call this once for each reservation that is not a part, before settling it. */
  releaseConcurrency(): void {
    this.#running--
    if (this.queue !== null) this.queue.freed()
  }

  /** Call this once for each reservation. @param outcome normalized */
  settle({ tokenBucket, tokenHold, period, pico }: ScopeReservation, outcome: ActualUsage, mono: number): void {
    if (tokenBucket !== null && tokenHold !== null) tokenBucket.settle(tokenHold, outcome.tokens ?? tokenHold.amount, mono)
    if (this.queue !== null) this.queue.freed()
    if (period !== null) {
      period.reserved -= pico
      period.spent += outcome.pico ?? pico
    }
  }

  /** @returns the maximum number of requests with this estimate in a lease */
  leasableRequests(tokens: number, pico: bigint | null, now: Moment): number {
    if (this.queue !== null) return 0
    const { concurrent } = this.limits
    const requests = this.#requestBucket?.remaining(now.mono) ?? Infinity
    const counted = tokens === 0 ? Infinity : (this.#tokenBucket?.remaining(now.mono) ?? Infinity) / tokens
    const slots = concurrent === null ? Infinity : (concurrent - this.#running) / CONCURRENCY_SHARE_DIVISOR
    return Math.floor(Math.min(requests / LEASE_SHARE_DIVISOR, counted / LEASE_SHARE_DIVISOR, slots, this.#affordableRequests(pico, now)))
  }

  /** @returns ms until the next period of the budget */
  renewalMs(now: Moment): number {
    return this.#account === null ? Infinity : this.#account.periodAt(now.wall).end - now.wall
  }

  /** Call this only if `leasableRequests` allows the size. */
  lease(size: LeaseSize, now: Moment): ScopeLease {
    this.#running += size.requests
    const requestBucket = this.#requestBucket
    const tokenBucket = this.#tokenBucket
    const pico = size.pico ?? 0n
    return {
      scope: this, running: size.requests,
      requestBucket, requestHold: requestBucket?.hold(size.requests, now.mono) ?? null,
      tokenBucket, tokenHold: tokenBucket?.hold(size.tokens ?? 0, now.mono) ?? null,
      period: this.#account?.reserve(pico, now.wall) ?? null, pico,
    }
  }

  /** Moves the reservation of an open request out of a lease. */
  splitLease(lease: ScopeLease, tokens: number, pico: bigint): ScopeReservation {
    const { tokenBucket, tokenHold, period } = lease
    const part = pico < lease.pico ? pico : lease.pico
    lease.running--
    lease.pico -= part
    const ownHold = tokenBucket === null || tokenHold === null ? null : tokenBucket.split(tokenHold, tokens)
    return { scope: this, tokenBucket, tokenHold: ownHold, period, pico: part }
  }

  /** Ends a lease after `splitLease` was called for its open requests. @param used normalized */
  settleLease(
    { running, requestBucket, requestHold, ...reservation }: ScopeLease,
    used: { readonly requests: number, readonly tokens: number, readonly pico: bigint }, mono: number,
  ): void {
    this.#running -= running
    if (this.queue !== null) this.queue.freed()
    if (requestBucket !== null && requestHold !== null) requestBucket.settle(requestHold, used.requests, mono)
    this.settle(reservation, used, mono)
  }

  /** @param pico past spend @returns the account that accepted the spend; null = none did */
  restore(pico: bigint, startedAt: number): BudgetAccount | null {
    return this.#account?.restore(pico, startedAt) === true ? this.#account : null
  }

  rateLimitState(kind: 'requests' | 'tokens', { mono }: Moment): RateLimitState | null {
    const bucket = kind === 'requests' ? this.#requestBucket : this.#tokenBucket
    if (bucket === null) return null
    return { limit: bucket.perMinute, remaining: bucket.remaining(mono), resetMs: bucket.resetMs(mono) }
  }

  /** @returns true = no request runs, the buckets are empty and nothing is spent, so that a new scope can replace this scope */
  idle(now: Moment): boolean {
    return this.queue === null && this.#running === 0 && (this.#requests?.idle(now.mono) ?? true)
      && (this.#tokens?.idle(now.mono) ?? true) && this.#accounts.every(account => account.idle())
  }

  #affordableRequests(pico: bigint | null, now: Moment): number {
    if (this.#account === null || pico === 0n) return Infinity
    return pico === null ? 0 : Number(this.#account.free(now.wall) / (pico * BigInt(LEASE_SHARE_DIVISOR)))
  }

  #accountFor(budget: Budget, now: Moment): BudgetAccount {
    const limit = picoUsd(budget.usd)
    let account = this.#accounts.find(({ per }) => per === budget.per)
    if (account === undefined) {
      account = new BudgetAccount(budget.per, limit, now.wall)
      this.#accounts.push(account)
    }
    account.limit = limit
    return account
  }
}

export interface ScopeReservation {
  readonly scope: Scope
  readonly tokenBucket: Bucket | null
  readonly tokenHold: Hold | null
  readonly period: Period | null
  readonly pico: bigint
}

/** The reservation of a lease. `splitLease` moves the reservations of open requests out of it. */
export interface ScopeLease extends ScopeReservation {
  running: number
  readonly requestBucket: Bucket | null
  readonly requestHold: Hold | null
  pico: bigint
}

function withRate(bucket: Bucket | null, perMinute: number, now: Moment): Bucket {
  if (bucket === null) return new Bucket(perMinute, now.mono)
  bucket.setRate(perMinute, now.mono)
  return bucket
}
