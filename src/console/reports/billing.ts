import { formatUsd } from '../../base/decimal.ts'
import type { Billing } from '../api/billing.ts'
import type { QueryOf } from '../api/table.ts'
import { DAY, periodOf, wholeDays } from './period.ts'
import type { Period } from './period.ts'
import { permittedDimensions } from './permitted-dimensions.ts'
import { sortByCost, figures, nameOf, source, sumsBy, sumTotals, totals } from './sums.ts'
import type { Dimensions, Totals } from './sums.ts'
import type { View } from './view.ts'

/** Groups that have a colour of their own in the chart. */
const MAX_CHARTED_GROUPS = 12

type Group = Billing['by']

export function billing(view: View, query: QueryOf<'GET /billing'>, own: string | null): Billing {
  const dimensions = permittedDimensions(query, own)
  const by = query.by ?? (own === null ? 'key' : 'model')
  const period = wholeDays(periodOf(query, view.now))
  const groups = sortByCost(sumsBy(view, period, dimensions, by) as Map<string | null, Totals>)
  const charted = groups.slice(0, MAX_CHARTED_GROUPS).map(([name]) => name)
  return {
    from: new Date(period.from).toISOString(),
    to: new Date(period.to).toISOString(),
    by,
    total: figures(sumTotals(groups.map(([, sums]) => sums))),
    groups: groups.map(([name, sums]) => ({ name, figures: figures(sums) })),
    days: daysOf(view, period, dimensions, by, charted),
  }
}

/** A model of which the cost of some requests is not known. */
export interface UnpricedModel {
  readonly name: string
  readonly requests: number
}

/** Of the last 24 hours, in whole days: those of most such requests, so many at most. */
export function unpricedModels(view: View, most: number): UnpricedModel[] {
  const sums = sumsBy(view, wholeDays(periodOf({}, view.now)), {}, 'model')
  return [...sums]
    .flatMap(([name, { unpriced: requests }]) => (
      typeof name === 'string' && requests > 0 ? [{ name, requests }] : []))
    .sort((a, b) => b.requests - a.requests)
    .slice(0, most)
}

function daysOf(
  view: View, period: Period, dimensions: Dimensions, by: Group, charted: readonly (string | null)[],
): Billing['days'] {
  const costs = costsByDay(view, period, dimensions, by)
  return Array.from({ length: (period.to - period.from) / DAY }, (_, n) => {
    const day = period.from + n * DAY
    const ofDay = costs.get(day) ?? new Map<string | null, bigint>()
    const all = [...ofDay.values()].reduce((sum, cost) => sum + cost, 0n)
    const parts = charted.flatMap(name => {
      const cost = ofDay.get(name) ?? 0n
      return cost === 0n ? [] : [{ name, cost }]
    })
    return {
      day: new Date(day).toISOString().slice(0, 10),
      cost_usd: formatUsd(all),
      parts: parts.map(({ name, cost }) => ({ name, cost_usd: formatUsd(cost) })),
      others_cost_usd: formatUsd(parts.reduce((rest, { cost }) => rest - cost, all)),
    }
  })
}

function costsByDay(
  view: View, period: Period, dimensions: Dimensions, by: Group,
): Map<number, Map<string | null, bigint>> {
  const { sql, values } = source(view, period, dimensions, [by])
  const found = view.all({
    sql: `SELECT at / ${DAY} AS day, ${by} AS name, sum(cost_high) AS cost_high, sum(cost_low) AS cost_low
      FROM (${sql}) AS counted GROUP BY 1, 2`,
    values,
  })
  const days = new Map<number, Map<string | null, bigint>>()
  for (const stored of found) {
    const day = Number(stored['day']) * DAY
    const costs = days.get(day) ?? new Map<string | null, bigint>()
    costs.set(nameOf(stored['name']), totals(stored).cost)
    days.set(day, costs)
  }
  return days
}
