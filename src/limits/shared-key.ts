import { picoUsd } from '../base/decimal.ts'
import type { Limits } from '../config/types.ts'
import { BudgetAccount } from './budget-account.ts'
import { effectiveLimits } from './effective-limits.ts'
import { PERIOD_SEPARATOR } from './shared-script.ts'
import type { AccountArgument, AccountReply, AdmitArgument, BucketArgument, GaugeArgument } from './shared-script.ts'
import type { CompileGlob, Reservation, ScopeLimits, Spend } from './types.ts'

const PICO_PER_NANO = 1_000n

/** Nanodollars, rounded up: a whole number of them is exact up to nine million USD. */
export function nanoOf(pico: bigint): number {
  return Number((pico + PICO_PER_NANO - 1n) / PICO_PER_NANO)
}

/** What this instance has of one budget in one period; nanodollars. */
export interface SharedAccount {
  readonly id: string
  readonly start: number
  readonly end: number
  /** Spent by this process since its start. */
  own: number
  reserved: number
  /** What this instance may spend without Valkey; a part of it may be reserved already. */
  allowance: number
  reservedOffline: number
  /** What the allowance should be. */
  target: number
  /** What PostgreSQL says was spent, to be sent; -1 = nothing to send. */
  floor: number
  /** The floor is all that was spent: a server that does not know the account can begin with it. */
  restores: 0 | 1
  /** By all instances, as of the last reply; -1 = unknown. */
  spent: number
}

/** The limits of a key as a whole, or of a glob of models, and what this instance has of them. */
export class SharedScope {
  /** Limits of groups are not shared. */
  readonly group = null
  readonly model: string | null
  readonly matches: (model: string | null) => boolean
  limits: ScopeLimits
  running = 0
  refundRequests = 0
  refundTokens = 0
  readonly accounts = new Map<string, SharedAccount>()
  /** End of the period that was asked for last. */
  #lastEnd = 0

  constructor(model: string | null, limits: ScopeLimits, matches: (model: string | null) => boolean) {
    this.model = model
    this.limits = limits
    this.matches = matches
  }

  /** The account of the budget in force; null = there is no budget. @param now ms since 1970 */
  account(now: number): SharedAccount | null {
    const { budget } = this.limits
    if (budget === null) return null
    const { start, end } = new BudgetAccount(budget.per, 0n, now).periodAt(now)
    const id = `${budget.per} ${this.model ?? ''}${PERIOD_SEPARATOR}${end === Infinity ? 0 : end}`
    let account = this.accounts.get(id)
    if (account === undefined) {
      const floor = end < this.#lastEnd ? this.#spentAfter(end) : -1
      account = {
        id, start, end, own: 0, reserved: 0, allowance: 0, reservedOffline: 0, target: 0, floor, restores: floor < 0 ? 0 : 1, spent: -1,
      }
      this.accounts.set(id, account)
    }
    this.#lastEnd = end
    return account
  }

  /** As in BudgetAccount, a date that is set back must not renew a budget: what counts is the next later period, or -1. */
  #spentAfter(end: number): number {
    const later = [...this.accounts.values()].filter(account => account.end > end)
    const next = later.reduce<SharedAccount | null>((a, b) => (a !== null && a.end < b.end ? a : b), null)
    return next === null ? -1 : Math.max(next.spent, next.own) + next.reserved
  }
}

/** What a request, or a lease for several, took of one scope. */
interface Part {
  readonly scope: SharedScope
  readonly account: SharedAccount | null
}

/** What is held for one request, or for a lease. */
export class SharedHold {
  readonly parts: readonly Part[]
  requests: number
  tokens: number
  nano: number
  running: number
  /** It was admitted without Valkey: by the limits of this process, and on the allowances. */
  readonly offline: { readonly reservation: Reservation, readonly round: number } | null

  constructor(parts: readonly Part[], requests: number, tokens: number, nano: number, offline: SharedHold['offline'] = null) {
    this.parts = parts
    this.requests = this.running = requests
    this.tokens = tokens
    this.nano = nano
    this.offline = offline
  }
}

/** A request that is to be admitted. */
export interface SharedAdmission {
  readonly model: string | null
  readonly tokens: number
  /** null = no price is known. */
  readonly nano: number | null
  readonly leaseRequests: number
}

/** The limits of one key, and what this instance has of them. */
export class SharedKey {
  readonly name: string
  /** Calls of the script that succeeded: what was admitted without Valkey before counts as reserved since. */
  round = 0
  /** ms of a monotonic clock. */
  usedAt = -Infinity
  /** What this instance holds or spent has changed since the last call. */
  isDirty = false
  /** What this instance's own ledger says was spent; instead of PostgreSQL, where there is none. */
  localSpend: readonly Omit<Spend, 'key'>[] = []
  /** The key's own limits, to tell when they change. */
  own: Limits | null = null
  #scopes: readonly SharedScope[] = []
  readonly #byModel = new Map<string | null, SharedScope>()

  constructor(name: string) {
    this.name = name
  }

  configure(own: Limits | null, defaults: Limits | null, compileGlob: CompileGlob): void {
    this.own = own
    const { whole, models } = effectiveLimits(own, defaults)
    this.#scopes = [[null, whole] as const, ...models].map(([model, limits]) => {
      const globMatches = model === null ? null : compileGlob(model)
      const scope = this.#byModel.get(model)
        ?? new SharedScope(model, limits, asked => globMatches === null || (asked !== null && globMatches(asked)))
      scope.limits = limits
      this.#byModel.set(model, scope)
      return scope
    })
  }

  scopesFor(model: string | null): readonly SharedScope[] {
    return this.#scopes.filter(scope => scope.matches(model))
  }

  /** Every account, past periods included. */
  accounts(): SharedAccount[] {
    return [...this.#byModel.values()].flatMap(({ accounts }) => [...accounts.values()])
  }

  /** No allowance is wanted any more. */
  giveUpAllowances(): void {
    for (const account of this.accounts()) account.target = 0
  }

  /**
   * Has the next call raise what was spent to what these rows say, which are all of the accounts' periods.
   * @param restores also where the server does not know the account
   */
  raiseFloors(rows: readonly Omit<Spend, 'key'>[], restores: boolean): void {
    for (const { accounts, matches } of this.#byModel.values()) {
      for (const account of accounts.values()) {
        const counted = rows.filter(({ model, startedAt }) => matches(model) && startedAt >= account.start && startedAt < account.end)
        account.floor = Math.max(account.floor, nanoOf(counted.reduce((sum, { pico }) => sum + pico, 0n)))
        if (restores) account.restores = 1
      }
    }
  }

  /** Whether this instance holds anything that other instances have to know of. */
  get isBusy(): boolean {
    return this.isDirty || [...this.#byModel.values()].some(({ running }) => running > 0)
      || this.accounts().some(({ reserved, allowance }) => reserved > 0 || allowance > 0)
  }

  hold({ model, tokens, nano }: SharedAdmission, requests: number, now: number, offline: SharedHold['offline'] = null): SharedHold {
    const parts = this.scopesFor(model).map(scope => ({ scope, account: scope.account(now) }))
    const hold = new SharedHold(parts, requests, tokens * requests, (nano ?? 0) * requests, offline)
    for (const { scope, account } of parts) {
      scope.running += requests
      if (account === null) continue
      account.reserved += hold.nano
      if (offline !== null) account.reservedOffline += hold.nano
    }
    return hold
  }

  release(hold: SharedHold, count = hold.running): void {
    this.isDirty = true
    hold.running -= count
    for (const { scope } of hold.parts) scope.running -= count
  }

  /** Takes the part of one request out of a lease. */
  split(lease: SharedHold, tokens: number, nano: number): SharedHold {
    const part = new SharedHold(lease.parts, 1, Math.min(tokens, lease.tokens), Math.min(nano, lease.nano))
    lease.requests -= 1
    lease.running -= 1
    lease.tokens -= part.tokens
    lease.nano -= part.nano
    return part
  }

  /** @param used requests, tokens and nanodollars; null = what was held */
  settle(hold: SharedHold, used: { requests: number, tokens: number | null, nano: number | null }): void {
    this.release(hold)
    const spent = used.nano ?? hold.nano
    for (const { scope, account } of hold.parts) {
      if (hold.offline === null) {
        scope.refundRequests += hold.requests - used.requests
        scope.refundTokens += hold.tokens - (used.tokens ?? hold.tokens)
      }
      if (account === null) continue
      account.reserved -= hold.nano
      account.own += spent
      if (hold.offline?.round !== this.round) continue
      account.reservedOffline -= hold.nano
      account.allowance = Math.max(0, account.allowance - spent)
    }
  }

  /** Whether the allowances are enough. */
  isAllowed({ model, nano }: SharedAdmission, now: number): boolean {
    return nano === 0 || this.scopesFor(model).every(scope => {
      const account = scope.account(now)
      return account === null || (nano !== null && account.allowance - account.reservedOffline >= nano)
    })
  }

  /** The arguments of the script: what is held, and what is to be admitted. */
  arguments(admissions: readonly SharedAdmission[], now: number, wantsAllowance: boolean): Call {
    return new Call(this, [...this.#byModel.values()], admissions, now, wantsAllowance)
  }
}

/** One call of the script. */
export class Call {
  readonly buckets: BucketArgument[] = []
  readonly gauges: GaugeArgument[] = []
  readonly accounts: AccountArgument[] = []
  readonly admits: AdmitArgument[]
  readonly #accounts: SharedAccount[] = []
  readonly #refunds: { readonly scope: SharedScope, readonly requests: number, readonly tokens: number }[] = []
  readonly #key: SharedKey
  /** Where each scope's limits are, from 1: requests, tokens, concurrency, account; 0 = there is none. */
  readonly #places = new Map<SharedScope, [number, number, number, number]>()

  constructor(
    key: SharedKey, scopes: readonly SharedScope[], admissions: readonly SharedAdmission[], now: number, wantsAllowance: boolean,
  ) {
    this.#key = key
    key.isDirty = false
    for (const scope of scopes) this.#addScope(scope, now, wantsAllowance)
    this.admits = admissions.map(({ model, tokens, nano, leaseRequests }) => [
      tokens, nano ?? -1, leaseRequests, key.scopesFor(model).map(scope => this.#places.get(scope) ?? [0, 0, 0, 0]),
    ])
  }

  /** The levels of a scope's requests and tokens. @param levels of the reply */
  levelsOf(scope: SharedScope, levels: readonly number[]): { readonly requests: number, readonly tokens: number } {
    const [requests = 0, tokens = 0] = this.#places.get(scope) ?? []
    return { requests: levels[requests - 1] ?? 0, tokens: levels[tokens - 1] ?? 0 }
  }

  /** The server has done it. */
  succeeded(replies: readonly AccountReply[]): void {
    for (const [n, account] of this.#accounts.entries()) {
      const [spent = -1, allowance = 0, target = 0] = replies[n] ?? []
      if (allowance > target) this.#key.isDirty = true
      Object.assign(account, { spent, allowance, target, floor: -1, restores: 0, reservedOffline: 0 })
    }
    this.#key.round += 1
  }

  /**
   * Whether the server has done it is unknown. What it may have admitted is not of the allowances, and counts no more
   * after the next call.
   */
  failed(): void {
    this.#key.isDirty = true
    for (const { scope, requests, tokens } of this.#refunds) {
      scope.refundRequests += requests
      scope.refundTokens += tokens
    }
  }

  #addScope(scope: SharedScope, now: number, wantsAllowance: boolean): void {
    const { limits, model, running, refundRequests, refundTokens } = scope
    const id = model ?? ''
    const place: [number, number, number, number] = [0, 0, 0, 0]
    if (limits.requestsPerMinute !== null) {
      place[0] = this.buckets.push([`r ${id}`, limits.requestsPerMinute, refundRequests])
    }
    if (limits.tokensPerMinute !== null) place[1] = this.buckets.push([`t ${id}`, limits.tokensPerMinute, refundTokens])
    if (limits.concurrent !== null) place[2] = this.gauges.push([id, limits.concurrent, running])
    this.#refunds.push({ scope, requests: refundRequests, tokens: refundTokens })
    scope.refundRequests = scope.refundTokens = 0
    const current = scope.account(now)
    for (const account of scope.accounts.values()) {
      const isCurrent = account === current
      // What is left of a past period is what its last requests spend.
      if (!isCurrent && account.reserved === 0 && now > account.end + PAST_PERIOD_MS) {
        scope.accounts.delete(account.id)
        continue
      }
      const { own, reserved, allowance, reservedOffline, target, floor } = account
      const keep = isCurrent ? Math.max(0, Math.min(allowance - reservedOffline, target)) : 0
      const limit = isCurrent && limits.budget !== null ? nanoOf(picoUsd(limits.budget.usd)) : 0
      const renewalMs = account.end === Infinity ? -1 : Math.max(1, account.end - now)
      const argument: AccountArgument = [
        account.id, limit, own, reserved, keep, floor, isCurrent && wantsAllowance ? 1 : 0, renewalMs, account.restores,
      ]
      const at = this.accounts.push(argument)
      this.#accounts.push(account)
      // Until the reply, this is all that may be spent without Valkey.
      account.allowance = keep + reservedOffline
      if (isCurrent) place[3] = at
    }
    this.#places.set(scope, place)
  }
}

/** ms for which spending of a past period is still reported. */
const PAST_PERIOD_MS = 3_600_000
