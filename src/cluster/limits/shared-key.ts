import type { Limits } from '../../config/key-types.ts'
import { periodOf } from '../../limits/budget-account.ts'
import type { LimitQueue } from '../../limits/queue/admission-queue.ts'
import { effectiveLimits } from '../../limits/effective-limits.ts'
import { PERIOD_SEPARATOR } from './shared-script.ts'
import { idOf, type CompileGlob, type LimitedKey, type Reservation, type ScopeLimits, type Spend } from '../../limits/types.ts'

const PICO_PER_NANO = 1_000n

/** @returns nanodollars, rounded up. A number is exact up to nine million USD */
export function nanoOf(pico: bigint): number {
  return Number((pico + PICO_PER_NANO - 1n) / PICO_PER_NANO)
}

/** This instance's part of one budget in one period. Amounts are nanodollars. */
export interface SharedAccount {
  readonly id: string
  readonly start: number
  readonly end: number
  /** Spend of this process since its start. */
  own: number
  reserved: number
  /** The amount that this instance can spend without Valkey, including `reservedOffline`. */
  allowance: number
  reservedOffline: number
  /** The allowance that this instance should have. */
  target: number
  /** The spend in PostgreSQL, which the next call sends; -1 = nothing to send. */
  floor: number
  /** 1 = `floor` is the whole spend, so that a server that does not know the account can start with it. */
  restores: 0 | 1
  /** Spend of all instances, by the last reply; -1 = unknown. */
  spent: number
}

/** The limits of a whole key (`model` null) or of a glob of models, with this instance's part of the counts. */
export class SharedScope {
  /** The group whose limits these are; null = limits of a key. */
  readonly group: string | null
  readonly model: string | null
  readonly matches: (model: string | null) => boolean
  limits: ScopeLimits
  /** The requests that wait at this instance; null = none. */
  queue: LimitQueue | null = null
  running = 0
  refundRequests = 0
  refundTokens = 0
  readonly accounts = new Map<string, SharedAccount>()
  #lastEnd = 0

  constructor(group: string | null, model: string | null, limits: ScopeLimits, matches: (model: string | null) => boolean) {
    this.group = group
    this.model = model
    this.limits = limits
    this.matches = matches
  }

  /** @param now ms since 1970 @returns the account of the current period; null = there is no budget */
  account(now: number): SharedAccount | null {
    const { budget } = this.limits
    if (budget === null) return null
    const { start, end } = periodOf(budget.per, now)
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

  /** @returns the spend of the next later period, with which a period starts if the clock was set back (as in BudgetAccount); -1 = none */
  #spentAfter(end: number): number {
    const later = [...this.accounts.values()].filter(account => account.end > end)
    const next = later.reduce<SharedAccount | null>((a, b) => (a !== null && a.end < b.end ? a : b), null)
    return next === null ? -1 : Math.max(next.spent, next.own) + next.reserved
  }
}

/** The reservation of a hold in one scope. */
interface Part {
  readonly key: SharedKey
  readonly scope: SharedScope
  readonly account: SharedAccount | null
  /** The value of `SharedKey.round` when the part was reserved. */
  readonly round: number
}

export class SharedHold {
  readonly parts: readonly Part[]
  requests: number
  tokens: number
  nano: number
  running: number
  /** The local reservation of a request that was admitted without Valkey; null = admitted by Valkey. */
  readonly offline: Reservation | null

  constructor(parts: readonly Part[], requests: number, tokens: number, nano: number, offline: Reservation | null = null) {
    this.parts = parts
    this.requests = this.running = requests
    this.tokens = tokens
    this.nano = nano
    this.offline = offline
  }

  release(count = this.running): void {
    this.running -= count
    for (const { key, scope } of this.parts) {
      key.isDirty = true
      scope.running -= count
      if (scope.queue !== null) scope.queue.freed()
    }
  }

  /** Moves one request of a lease to its own hold. */
  split(tokens: number, nano: number): SharedHold {
    const part = new SharedHold(this.parts, 1, Math.min(tokens, this.tokens), Math.min(nano, this.nano))
    this.requests -= 1
    this.running -= 1
    this.tokens -= part.tokens
    this.nano -= part.nano
    return part
  }

  /** @param used null = the reserved amount was used */
  settle(used: { requests: number, tokens: number | null, nano: number | null }): void {
    this.release()
    const spent = used.nano ?? this.nano
    for (const { key, scope, account, round } of this.parts) {
      if (this.offline === null) {
        scope.refundRequests += this.requests - used.requests
        scope.refundTokens += this.tokens - (used.tokens ?? this.tokens)
      }
      if (account === null) continue
      account.reserved -= this.nano
      account.own += spent
      if (this.offline === null || round !== key.round) continue
      account.reservedOffline -= this.nano
      account.allowance = Math.max(0, account.allowance - spent)
    }
  }
}

/** A key, followed by those of its groups that have limits, nearest first. */
export type SharedChain = readonly SharedKey[]

export interface SharedAdmission {
  readonly chain: SharedChain
  readonly model: string | null
  readonly tokens: number
  /** null = unpriced. */
  readonly nano: number | null
  readonly leaseRequests: number
  readonly isPart: boolean
  /** The queue whose turn it is; absent or null = the request has to wait behind those that wait. */
  readonly turn?: LimitQueue | null
}

/** @returns all scopes that count a request */
export function scopesOf(chain: SharedChain, model: string | null): readonly SharedScope[] {
  return chain.flatMap(key => key.scopesFor(model))
}

/** Reserves the estimated maximum. @param now ms since 1970 */
export function takeHold(
  { chain, model, tokens, nano, isPart }: SharedAdmission, requests: number, now: number, offline: Reservation | null = null,
): SharedHold {
  const parts = chain.flatMap(key => key.scopesFor(model).map(scope => ({ key, scope, account: scope.account(now), round: key.round })))
  const hold = new SharedHold(parts, isPart ? 0 : requests, tokens * requests, (nano ?? 0) * requests, offline)
  for (const { scope, account } of parts) {
    scope.running += hold.running
    if (account === null) continue
    account.reserved += hold.nano
    if (offline !== null) account.reservedOffline += hold.nano
  }
  return hold
}

/** @returns true = the allowances have room for the request @param now ms since 1970 */
export function isAllowed({ chain, model, nano }: SharedAdmission, now: number): boolean {
  return nano === 0 || scopesOf(chain, model).every(scope => {
    const account = scope.account(now)
    return account === null || (nano !== null && account.allowance - account.reservedOffline >= nano)
  })
}

/** The limits of one key or group, with this instance's part of the counts. */
export class SharedKey {
  readonly id: string
  readonly name: string
  readonly isGroup: boolean
  /** Id of the key's lane. One call decides the requests of one lane. */
  lane = ''
  isCalling = false
  /** For a group: the groups whose spend counts for this group. */
  members: readonly string[] = []
  /** Number of successful calls. After the next call, requests that were admitted without Valkey count as reserved there. */
  round = 0
  /** When a request last used the key, ms on a monotonic clock. */
  usedAt = -Infinity
  /** true = reservations or spend have changed since the last call. */
  isDirty = false
  /** Spend by this instance's ledger, used if there is no PostgreSQL. */
  localSpend: readonly Omit<Spend, 'key'>[] = []
  /** The key's own limits, without defaults. */
  own: Limits | null = null
  #scopes: readonly SharedScope[] = []
  readonly #byModel = new Map<string | null, SharedScope>()

  constructor({ name, isGroup }: Pick<LimitedKey, 'name' | 'isGroup'>) {
    this.id = idOf({ name, isGroup })
    this.name = name
    this.isGroup = isGroup ?? false
  }

  configure(own: Limits | null, defaults: Limits | null, compileGlob: CompileGlob): void {
    this.own = own
    const { whole, models } = effectiveLimits(own, defaults)
    this.#scopes = [[null, whole] as const, ...models].map(([model, limits]) => {
      const globMatches = model === null ? null : compileGlob(model)
      const scope = this.#byModel.get(model)
        ?? new SharedScope(this.isGroup ? this.name : null, model, limits, asked => globMatches === null || (asked !== null && globMatches(asked)))
      scope.limits = limits
      scope.queue?.freed()
      this.#byModel.set(model, scope)
      return scope
    })
  }

  scopesFor(model: string | null): readonly SharedScope[] {
    return this.#scopes.filter(scope => scope.matches(model))
  }

  /** @param model a glob of `limits.models`; null = the whole key */
  scope(model: string | null): SharedScope | null {
    return this.#byModel.get(model) ?? null
  }

  /** The accounts of all budgets, including past periods. */
  accounts(): SharedAccount[] {
    return [...this.#byModel.values()].flatMap(({ accounts }) => [...accounts.values()])
  }

  giveUpAllowances(): void {
    for (const account of this.accounts()) account.target = 0
  }

  /**
   * Makes the next call raise the spend of each account to the sum of its rows.
   * @param rows all spend of the accounts' periods @param restores true = also if the server does not know the account
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

  /** true = this instance has reservations, allowances or spend to report. */
  get isBusy(): boolean {
    return this.isDirty || [...this.#byModel.values()].some(({ running }) => running > 0)
      || this.accounts().some(({ reserved, allowance }) => reserved > 0 || allowance > 0)
  }

  /** All scopes, including those whose limits were removed. */
  scopes(): Iterable<SharedScope> {
    return this.#byModel.values()
  }
}
