import type { Clock } from '../../base/clock.ts'
import type { Limits } from '../../config/key-types.ts'
import { createLimiter, type LocalLimiter } from '../../limits/limiter.ts'
import type { Pending } from './shared-connection.ts'
import { isAllowed, takeHold, type SharedChain, type SharedKey, type SharedScope } from './shared-key.ts'
import type { Admission, CompileGlob, LimitedKey, RateLimitStates, LimitRefusal } from '../../limits/types.ts'

const NO_RATES: RateLimitStates = Object.freeze({ requests: null, tokens: null })

/** This instance's share of the limits of a key or group. */
type Share = { readonly of: Limits | null; readonly instances: number; readonly limited: LimitedKey }

/** Admits requests without the store: by this instance's share of each limit, and by its allowances of budgets. */
export class OfflineShares {
  readonly #mode: 'share' | 'refuse'
  readonly #clock: Clock
  readonly #limiter: LocalLimiter
  readonly #shares = new Map<string, Share>()
  /** Number of instances that share the limits; written by SharedLimits. */
  instances = 1
  /** The default limits; written by SharedLimits. */
  defaults: Limits | null = null

  constructor(mode: 'share' | 'refuse', clock: Clock, compileGlob: CompileGlob) {
    this.#mode = mode
    this.#clock = clock
    this.#limiter = createLimiter({ defaults: null, compileGlob, clock })
  }

  decide(pending: Pending): void {
    if (this.#mode === 'share') {
      if (this.admitOnAllowance(pending)) return
      const admission = this.#admit(pending)
      if (!admission.ok) return pending.connection.refused(pending.id, admission.refusal, NO_RATES)
      admission.reservation.release()
    }
    pending.connection.refused(pending.id, unavailable(pending.chain), NO_RATES)
  }

  /** @returns true = admitted; false = not admitted and not refused, because the allowance is too small or a limit has no room */
  admitOnAllowance(pending: Pending): boolean {
    const now = this.#clock.wall()
    if (pending.chain.some(({ isCalling }) => isCalling) || !isAllowed(pending, now)) return false
    const admission = this.#admit(pending)
    if (!admission.ok) return false
    pending.connection.admitted(pending.id, takeHold(pending, 1, now, admission.reservation), null, NO_RATES, [])
    return true
  }

  /** Reserves at all limits except budgets. */
  #admit({ chain, model, tokens, isPart }: Pending): Admission {
    const [key, ...groups] = chain.map(each => this.#shareOf(each)) as [Share, ...Share[]]
    const limited = { ...key.limited, groups: groups.map(group => group.limited) }
    return this.#limiter.admit({ key: limited, model, estimate: { tokens, pico: 0n }, isPart })
  }

  #shareOf({ id, name, isGroup, own }: SharedKey): Share {
    const { instances } = this
    const of = own ?? (isGroup ? null : this.defaults)
    const known = this.#shares.get(id)
    if (known?.of === of && known.instances === instances) return known
    const share = { of, instances, limited: { name, limits: shareOf(of, instances), isGroup: isGroup || undefined } }
    this.#shares.set(id, share)
    return share
  }
}

/** With n instances, each limit becomes 1/n, but at least 1. Budgets are not divided, because instances have allowances of budgets. */
function shareOf(limits: Limits | null, instances: number): Limits | null {
  if (limits === null) return null
  const share = (limit: number | null) => limit === null || limit === 0 ? limit : Math.max(1, Math.floor(limit / instances))
  const ofScope = ({ requestsPerMinute, tokensPerMinute, concurrent }: SharedScope['limits']) => ({
    requestsPerMinute: share(requestsPerMinute), tokensPerMinute: share(tokensPerMinute), concurrent: share(concurrent), budget: null,
  })
  return { ...ofScope(limits), models: new Map([...limits.models].map(([glob, scope]) => [glob, ofScope(scope)])) }
}

function unavailable(chain: SharedChain): LimitRefusal {
  return {
    which: 'unavailable', scope: { key: chain[0]!.name, group: null, model: null }, retryAfterMs: 1_000, renewsSoon: true,
    message: 'The limits of this key cannot be checked at the moment.',
  }
}
