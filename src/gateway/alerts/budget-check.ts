import { createHash } from 'node:crypto'
import { formatUsd, picoUsd } from '../../base/decimal.ts'
import type { Budget } from '../../config/key-types.ts'
import type { Config } from '../../config/types.ts'
import type { Gateway, PassedShare, PassedShares } from '../../pipeline/parts/gateway.ts'
import type { AlertEvent } from './pending-events.ts'
import { periodOf } from '../../limits/budget-account.ts'
import { effectiveLimits } from '../../limits/effective-limits.ts'
import { idOf, type LimitedKey } from '../../limits/types.ts'

/** The spend of each key and group in picodollars (1e-12 USD), by `idOf`; null = the spend is not known yet. */
export type BudgetSpend = () => ReadonlyMap<string, bigint> | null

/** Sends an event. @param id absent = a random id @param at ms since 1970; absent = now */
export type Send = (event: Omit<AlertEvent, 'id' | 'at'>, id?: string, at?: number) => void

/** Reports keys and groups whose spend passes a share of their budget. */
export class BudgetCheck {
  /** The shares that were already passed; null = no check has run yet. */
  #passed: ReadonlyMap<string, PassedShare> | null
  readonly #budgetSpend: BudgetSpend
  readonly #savePassed: PassedShares['save']

  constructor(budgetSpend: BudgetSpend, { initial, save }: PassedShares) {
    this.#passed = initial
    this.#budgetSpend = budgetSpend
    this.#savePassed = save
  }

  check({ config, keyStore, clock }: Gateway, send: Send): void {
    const shares = config.alerts?.budget ?? []
    const spent = this.#budgetSpend()
    if (spent === null) return
    const now = clock.wall()
    const before = this.#passed
    const passed = new Map<string, PassedShare>()
    let isNew = before === null
    const holders: readonly LimitedKey[] = [...config.keys, ...keyStore?.keys() ?? [], ...config.groups.values()]
    for (const holder of holders) {
      const holderId = idOf(holder)
      const pico = spent.get(holderId)
      if (pico === undefined) continue
      const budget = budgetOf(holder, config)
      if (budget === null) continue
      const limit = picoUsd(budget.usd)
      const share = shares.findLast(each => pico * 100n >= limit * BigInt(each)) ?? 0
      const { start: period } = periodOf(budget.per, now)
      if (share === 0) continue
      passed.set(holderId, { share, period })
      const known = before?.get(holderId)
      // Do not report a share that was passed before the first check, or was already reported.
      if (before === null || (known?.period === period && known.share >= share)) continue
      isNew = true
      const { name, isGroup } = holder
      // The same id in all gateways that share the budget, so that the receiver can recognise duplicates.
      const id = createHash('sha256').update(JSON.stringify([isGroup ? 'group budget' : 'budget', name, share, budget, period]))
        .digest('hex').slice(0, 32)
      send({
        type: 'budget.reached', severity: share >= 100 ? 'error' : 'warning', subject: name,
        message: `${isGroup ? 'Group ' : ''}${name} has used ${share} % of its budget: $${formatUsd(pico)} of $${budget.usd} ${budget.per === 'total' ? 'in total' : `per ${budget.per}`}`,
        data: { [isGroup ? 'group' : 'key']: name, share, spent_usd: formatUsd(pico), limit_usd: budget.usd, per: budget.per },
      }, id)
    }
    this.#passed = passed
    // Save after sending. If the process is killed in between, the event is sent twice with the same id, but never lost.
    if (isNew) this.#savePassed(passed)
  }
}

/** The budget of a key or group for all models together. The defaults apply to keys, not to groups. */
export function budgetOf({ limits, isGroup }: LimitedKey, { limits: defaults }: Config): Budget | null {
  return effectiveLimits(limits, isGroup ? null : defaults).whole.budget
}
