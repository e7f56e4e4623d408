import type { Clock } from '../base/clock.ts'
import type { Limits } from '../config/key-types.ts'
import { createLimiter } from './limiter.ts'
import type { LocalLimiter } from './limiter.ts'
import type { SharedAdmission, SharedKey, SharedScope } from './shared-key.ts'
import type { Admission, CompileGlob, LimitedKey } from './types.ts'

/** What this instance applies of the limits of a key or group while the store is away. */
interface Share {
  readonly of: Limits | null
  readonly instances: number
  readonly limited: LimitedKey
}

/** The limits of this process while the store is away: of each limit, the share of one instance. */
export class OfflineShares {
  readonly #limiter: LocalLimiter
  /** By the ids of keys and groups. */
  readonly #shares = new Map<string, Share>()
  /** Instances that share the limits. */
  instances = 1
  /** Of keys that have no limits of their own. */
  defaults: Limits | null = null

  constructor(clock: Clock, compileGlob: CompileGlob) {
    this.#limiter = createLimiter({ defaults: null, compileGlob, clock })
  }

  /** Admits or refuses by all limits but budgets. */
  admit({ chain, model, tokens }: Pick<SharedAdmission, 'chain' | 'model' | 'tokens'>): Admission {
    const [key, ...groups] = chain.map(each => this.#shareOf(each)) as [Share, ...Share[]]
    const limited = { ...key.limited, groups: groups.map(group => group.limited) }
    return this.#limiter.admit({ key: limited, model, estimate: { tokens, pico: 0n } })
  }

  /** The key with its share of the limits; the budget is not one of them. */
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

/** Of n instances each has 1/n; where that is less than one, one. Budgets are not divided: they have allowances. */
function shareOf(limits: Limits | null, instances: number): Limits | null {
  if (limits === null) return null
  const share = (limit: number | null) => limit === null || limit === 0 ? limit : Math.max(1, Math.floor(limit / instances))
  const ofScope = ({ requestsPerMinute, tokensPerMinute, concurrent }: SharedScope['limits']) => ({
    requestsPerMinute: share(requestsPerMinute), tokensPerMinute: share(tokensPerMinute), concurrent: share(concurrent), budget: null,
  })
  return { ...ofScope(limits), models: new Map([...limits.models].map(([glob, scope]) => [glob, ofScope(scope)])) }
}
