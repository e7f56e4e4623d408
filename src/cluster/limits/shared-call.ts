import { picoUsd } from '../../base/decimal.ts'
import { nanoOf, scopesOf, type SharedAccount, type SharedAdmission, type SharedKey, type SharedScope } from './shared-key.ts'
import type { AccountArgument, AccountReply, AdmitArgument, BucketArgument, GaugeArgument } from './shared-script.ts'
import type { RateLimitState, RateLimitStates } from '../../limits/types.ts'

export class SharedCall {
  readonly buckets: BucketArgument[] = []
  readonly gauges: GaugeArgument[] = []
  readonly accounts: AccountArgument[] = []
  readonly admits: AdmitArgument[]
  readonly #accounts: { readonly key: SharedKey, readonly account: SharedAccount }[] = []
  readonly #refunds: { readonly scope: SharedScope, readonly requests: number, readonly tokens: number }[] = []
  readonly #keys: readonly SharedKey[]
  /** Indexes of a scope's limits in the call, from 1: requests, tokens, concurrency, account; 0 = none. */
  readonly #places = new Map<SharedScope, [number, number, number, number]>()

  /** @param keys the keys of the admissions, and other keys whose state is reported @param now ms since 1970 */
  constructor(
    keys: readonly SharedKey[], admissions: readonly SharedAdmission[], now: number, wantsAllowance: (key: SharedKey) => boolean,
  ) {
    this.#keys = keys
    for (const [n, key] of keys.entries()) {
      key.isDirty = false
      for (const scope of key.scopes()) this.#addScope(key, n + 1, scope, now, wantsAllowance(key))
    }
    this.admits = admissions.map(({ chain, model, tokens, nano, leaseRequests, isPart }) => [
      tokens, nano ?? -1, leaseRequests, scopesOf(chain, model).map(scope => {
        const [requests, counted, running, account] = this.#places.get(scope) ?? [0, 0, 0, 0]
        return isPart ? [0, counted, 0, account] : [requests, counted, running, account]
      }),
    ])
  }

  /** @param levels of the buckets in the reply */
  levelsOf(scope: SharedScope, levels: readonly number[]): { readonly requests: number, readonly tokens: number } {
    const [requests = 0, tokens = 0] = this.#places.get(scope) ?? []
    return { requests: levels[requests - 1] ?? 0, tokens: levels[tokens - 1] ?? 0 }
  }

  succeeded(replies: readonly AccountReply[]): void {
    for (const [n, { key, account }] of this.#accounts.entries()) {
      const [spent = -1, allowance = 0, target = 0] = replies[n] ?? []
      if (allowance > target) key.isDirty = true
      Object.assign(account, { spent, allowance, target, floor: -1, restores: 0, reservedOffline: 0 })
    }
    for (const key of this.#keys) key.round += 1
  }

  /** Call this if no reply arrived. The next call sends the same state again, because the server may not have executed this call. */
  failed(): void {
    for (const key of this.#keys) key.isDirty = true
    for (const { scope, requests, tokens } of this.#refunds) {
      scope.refundRequests += requests
      scope.refundTokens += tokens
    }
  }

  /** @param hash index of the key's hash, from 1 */
  #addScope(key: SharedKey, hash: number, scope: SharedScope, now: number, wantsAllowance: boolean): void {
    const { limits, model, running, refundRequests, refundTokens } = scope
    const id = model ?? ''
    const place: [number, number, number, number] = [0, 0, 0, 0]
    if (limits.requestsPerMinute !== null) place[0] = this.buckets.push([`r ${id}`, limits.requestsPerMinute, refundRequests, hash])
    if (limits.tokensPerMinute !== null) place[1] = this.buckets.push([`t ${id}`, limits.tokensPerMinute, refundTokens, hash])
    if (limits.concurrent !== null) place[2] = this.gauges.push([id, limits.concurrent, running, hash])
    this.#refunds.push({ scope, requests: refundRequests, tokens: refundTokens })
    scope.refundRequests = scope.refundTokens = 0
    const current = scope.account(now)
    for (const account of scope.accounts.values()) {
      const isCurrent = account === current
      // Report a past period until its last requests are settled, because its spend can change until then.
      if (!isCurrent && account.reserved === 0 && now > account.end + PAST_PERIOD_MS) {
        scope.accounts.delete(account.id)
        continue
      }
      const { own, reserved, allowance, reservedOffline, target, floor } = account
      const keep = isCurrent ? Math.max(0, Math.min(allowance - reservedOffline, target)) : 0
      const limit = isCurrent && limits.budget !== null ? nanoOf(picoUsd(limits.budget.usd)) : 0
      const renewalMs = account.end === Infinity ? -1 : Math.max(1, account.end - now)
      const argument: AccountArgument = [
        account.id, limit, own, reserved, keep, floor, isCurrent && wantsAllowance ? 1 : 0, renewalMs, account.restores, hash,
      ]
      const at = this.accounts.push(argument)
      this.#accounts.push({ key, account })
      // Until the reply, this instance can spend only this amount without Valkey.
      account.allowance = keep + reservedOffline
      if (isCurrent) place[3] = at
    }
    this.#places.set(scope, place)
  }
}

/** Milliseconds for which the spend of a past period is still reported. */
const PAST_PERIOD_MS = 3_600_000

/** @param levels of the reply @returns the rate limits that allow the least, among those of a key and its groups */
export function ratesOf(scopes: readonly SharedScope[], call: SharedCall, levels: readonly number[]): RateLimitStates {
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
