import type { Budget, Budgets } from '../api/billing.ts'
import { compileGlob } from '../../config/glob.ts'
import { usd } from '../../ledger/usd.ts'
import { ceil, DAY, floor } from './period.ts'
import { nameOf, source, totals } from './sums.ts'
import type { Stored, View } from './view.ts'

/** A budget as it is configured. */
export interface BudgetAsked {
  readonly key: string
  /** null: of the key as a whole; else a glob of models. */
  readonly model: string | null
  readonly per: 'day' | 'month' | 'total'
  readonly limit_usd: string
}

/** Days of the course of a budget that has no period. */
const LATELY = 30

interface DaySpend {
  readonly day: number
  readonly model: string | null
  /** Picodollars. */
  readonly cost: bigint
}

export function budgets(view: View, asked: readonly BudgetAsked[]): Budgets {
  // A budget of a key as a whole needs none of the models that make most of the sums.
  const whole = spendOfKeys(view, asked.filter(({ model }) => model === null))
  const models = new Map<string, readonly DaySpend[]>()
  for (const { key, model } of asked) {
    if (model !== null && !models.has(key)) models.set(key, spendByModel(view, key))
  }
  const spent = ({ key, model }: BudgetAsked) => (model === null ? whole : models).get(key) ?? []
  return { budgets: asked.map(each => told(each, spent(each), view.now)) }
}

function spendOfKeys(view: View, asked: readonly BudgetAsked[]): Map<string, DaySpend[]> {
  const spent = new Map<string, DaySpend[]>(asked.map(({ key }) => [key, []]))
  if (asked.length === 0) return spent
  const since = Math.min(...asked.map(({ per }) => periodOf(per, view.now).from ?? 0))
  const { sql, values } = source(view, { from: since, to: ceil(view.now, DAY) }, {}, 'key')
  const found = view.all({
    sql: `SELECT key, at / ${DAY} AS day, sum(cost_high) AS cost_high, sum(cost_low) AS cost_low FROM (${sql})
      WHERE key IN (SELECT value FROM json_each(?)) GROUP BY 1, 2 ORDER BY 2`,
    values: [...values, JSON.stringify([...spent.keys()])],
  })
  for (const stored of found) spent.get(String(stored['key']))?.push(daySpend(stored))
  return spent
}

function spendByModel(view: View, key: string): DaySpend[] {
  const { sql, values } = source(view, { from: 0, to: ceil(view.now, DAY) }, { key }, 'model')
  return view.all({
    sql: `SELECT at / ${DAY} AS day, model, sum(cost_high) AS cost_high, sum(cost_low) AS cost_low
      FROM (${sql}) GROUP BY 1, 2 ORDER BY 1`,
    values,
  }).map(daySpend)
}

function daySpend(stored: Stored): DaySpend {
  return { day: Number(stored['day']) * DAY, model: nameOf(stored['model']), cost: totals(stored).cost }
}

function told({ key, model, per, limit_usd }: BudgetAsked, spent: readonly DaySpend[], now: number): Budget {
  const { from, to } = periodOf(per, now)
  const fits = compileGlob(model ?? '*')
  const counts = (used: string | null) => model === null || (used !== null && fits(used))
  const counted = spent.filter(({ day, model: used }) => day >= (from ?? 0) && counts(used))
  const today = floor(now, DAY)
  const first = from ?? today - (LATELY - 1) * DAY
  const course: Budget['course'] = []
  let sum = 0n
  let at = 0
  for (let day = first; day <= today; day += DAY) {
    for (let next = counted[at]; next !== undefined && next.day <= day; next = counted[at += 1]) {
      sum += next.cost
    }
    course.push({ day: new Date(day).toISOString().slice(0, 10), spent_usd: usd(sum) })
  }
  const all = counted.reduce((total, { cost }) => total + cost, 0n)
  return {
    key,
    model,
    per,
    limit_usd,
    spent_usd: usd(all),
    used: used(all, limit_usd),
    period_from: from === null ? null : new Date(from).toISOString(),
    period_to: to === null ? null : new Date(to).toISOString(),
    course,
  }
}

/** A share is for people: floats will do. */
function used(pico: bigint, limit: string): number {
  const share = Number(pico) / 1e12 / Number(limit)
  return Number.isFinite(share) ? share : Number(pico > 0n)
}

function periodOf(per: BudgetAsked['per'], now: number): { from: number | null; to: number | null } {
  const date = new Date(now)
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()]
  switch (per) {
    case 'day':
      return { from: floor(now, DAY), to: floor(now, DAY) + DAY }
    case 'month':
      return { from: Date.UTC(year, month), to: Date.UTC(year, month + 1) }
    case 'total':
      return { from: null, to: null }
  }
}
