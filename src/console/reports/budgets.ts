import { formatUsd } from '../../base/decimal.ts'
import { compileGlob } from '../../config/glob.ts'
import type { Budget, Budgets } from '../api/billing.ts'
import { ceil, DAY, floor, type Period } from './period.ts'
import { groupDays, nameOf, source, totals } from './sums.ts'
import type { Sql, View } from './view.ts'

export interface ConfiguredBudget {
  /** Name of the key; null = the budget of a group. */
  readonly key: string | null
  /** The group; null = the budget of a key. `members`: the group and the groups below it, whose keys' costs count for the budget. */
  readonly group: { readonly name: string, readonly members: readonly string[] } | null
  /** A glob of models; null = the budget is for all models of the key or group. */
  readonly model: string | null
  readonly per: 'day' | 'month' | 'total'
  readonly limit_usd: string
}

export interface NearBudget extends ConfiguredBudget {
  readonly used: number
}

/** Number of days to show for a budget without a period. */
const RECENT_DAYS = 30

interface DaySpend {
  /** Start of the day, in ms since 1970. */
  readonly day: number
  readonly model: string | null
  /** Cost in picodollars. */
  readonly cost: bigint
}

interface BudgetSpend {
  readonly asked: ConfiguredBudget
  /** The spend of each day, the oldest first. The first entry also contains the spend before the shown days. */
  readonly days: readonly DaySpend[]
  /** Cost in picodollars. */
  readonly cost: bigint
  readonly used: number
}

/** @param most number of budgets to return, those with the highest share first; null = all budgets in their order */
export function budgets(view: View, asked: readonly ConfiguredBudget[], most: number | null): Budgets {
  const all = spentOf(view, asked)
  const shown = most === null ? all : all.toSorted((a, b) => b.used - a.used).slice(0, most)
  return { budgets: shown.map(spent => toBudget(spent, view.now)), total: all.length }
}

/** @param share only budgets whose `used` is at least this */
export function nearBudgets(view: View, asked: readonly ConfiguredBudget[], share: number): NearBudget[] {
  return spentOf(view, asked).filter(({ used }) => used >= share).map(({ asked, used }) => ({ ...asked, used }))
}

function spentOf(view: View, asked: readonly ConfiguredBudget[]): BudgetSpend[] {
  // Budgets without a model do not need sums by model, which are far more rows.
  const whole = spendOfKeys(view, asked.filter(({ key, model }) => key !== null && model === null), [])
  const byModel = spendOfKeys(view, asked.filter(({ key, model }) => key !== null && model !== null), ['model'])
  const byGroup = spendOfGroups(view, asked.filter(({ group }) => group !== null))
  return asked.map(each => {
    const { key, group, model, per, limit_usd } = each
    const { from } = periodOf(per, view.now)
    const fits = compileGlob(model ?? '*')
    const counts = (used: string | null) => model === null || (used !== null && fits(used))
    const days = group !== null ? group.members.flatMap(name => byGroup.get(name) ?? []).sort((a, b) => a.day - b.day)
      : (model === null ? whole : byModel).get(key ?? '') ?? []
    const counted = days.filter(({ day, model: used }) => day >= (from ?? 0) && counts(used))
    const cost = counted.reduce((total, { cost }) => total + cost, 0n)
    return { asked: each, days: counted, cost, used: shareOf(cost, limit_usd) }
  })
}

/** Reads the spend of all keys in one query. @param names with `model`, the spend is separate for each model */
function spendOfKeys(view: View, asked: readonly ConfiguredBudget[], names: readonly 'model'[]): Map<string, DaySpend[]> {
  const spent = new Map<string, DaySpend[]>(asked.map(({ key }) => [key ?? '', []]))
  const [first] = spent.keys()
  if (first === undefined) return spent
  const only = spent.size === 1 ? { key: first } : {}
  return addDays(view, spent, ['key', ...names], source(view, shownPeriod(view, asked), only, ['key', ...names]))
}

/** The spend of each group. The spend of a key counts for the group that the key was in at the time. */
function spendOfGroups(view: View, asked: readonly ConfiguredBudget[]): Map<string, DaySpend[]> {
  const spent = new Map<string, DaySpend[]>(asked.flatMap(({ group }) => group?.members ?? []).map(name => [name, []]))
  return spent.size === 0 ? spent : addDays(view, spent, ['"group"'], groupDays(view, shownPeriod(view, asked)))
}

/** @param spent by name; the first column contains the name */
function addDays(view: View, spent: Map<string, DaySpend[]>, columns: readonly [string, ...string[]], { sql, values }: Sql) {
  const [name] = columns
  const found = view.all({
    sql: `SELECT ${columns.join(', ')}, ${view.dialect.greater(`at / ${DAY}`, '?')} AS day,
        sum(cost_high) AS cost_high, sum(cost_low) AS cost_low
      FROM (${sql}) AS counted WHERE ${name} IN (${view.dialect.listed})
      GROUP BY ${columns.join(', ')}, day ORDER BY day`,
    values: [dayBeforeHistory(view.now), ...values, JSON.stringify([...spent.keys()])],
  })
  for (const stored of found) {
    const model = nameOf(stored['model'])
    spent.get(String(stored[name.replaceAll('"', '')]))?.push({ day: Number(stored['day']) * DAY, model, cost: totals(stored).cost })
  }
  return spent
}

/** The period from the earliest start of a budget; from 1970 if a budget has no period. */
function shownPeriod(view: View, asked: readonly ConfiguredBudget[]): Period {
  return { from: Math.min(...asked.map(({ per }) => periodOf(per, view.now).from ?? 0)), to: ceil(view.now, DAY) }
}

/** The last day before the shown days of all budgets, as a number of days since 1970. */
function dayBeforeHistory(now: number): number {
  const month = periodOf('month', now).from ?? 0
  return Math.min(month, floor(now, DAY) - (RECENT_DAYS - 1) * DAY) / DAY - 1
}

function toBudget({ asked: { key, group, model, per, limit_usd }, days, cost, used }: BudgetSpend, now: number): Budget {
  const { from, to } = periodOf(per, now)
  const today = floor(now, DAY)
  const first = from ?? today - (RECENT_DAYS - 1) * DAY
  const course: Budget['course'] = []
  let sum = 0n
  let at = 0
  for (let day = first; day <= today; day += DAY) {
    for (let next = days[at]; next !== undefined && next.day <= day; next = days[at += 1]) sum += next.cost
    course.push({ day: new Date(day).toISOString().slice(0, 10), spent_usd: formatUsd(sum) })
  }
  return {
    key, group: group?.name ?? null, model, per, limit_usd, spent_usd: formatUsd(cost), used,
    period_from: from === null ? null : new Date(from).toISOString(),
    period_to: to === null ? null : new Date(to).toISOString(),
    course,
  }
}

/** The used share of a limit. Floats are exact enough, because the share is only displayed. */
function shareOf(pico: bigint, limit: string): number {
  const share = Number(pico) / 1e12 / Number(limit)
  return Number.isFinite(share) ? share : Number(pico > 0n)
}

function periodOf(per: ConfiguredBudget['per'], now: number): { from: number | null; to: number | null } {
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
