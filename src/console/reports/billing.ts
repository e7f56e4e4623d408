import type { KeyOwners } from '../../auth/key-owners.ts'
import { formatUsd } from '../../base/decimal.ts'
import type { QueryOf } from '../api/api.ts'
import type { Billing, BillingDimension } from '../api/billing.ts'
import { alignedPeriod, DAY, periodOf, wholeDays, type Period } from './period.ts'
import { permittedDimensions } from './permitted-dimensions.ts'
import { ReportError } from './report-error.ts'
import { COST_COLUMNS, compareByCost, figures, groupSums, knownCost, sumOf, sumsBy, sumTotals } from './sums.ts'
import type { Dimensions, NamedDimension, Totals } from './sums.ts'
import type { View } from './view.ts'

/** Number of groups that have their own colour in the chart. */
const MAX_CHARTED_GROUPS = 12

type Names = readonly (string | null)[]

interface Group {
  readonly names: Names
  readonly totals: Totals
}

/** Which requests to sum, and by which dimensions to group them. */
interface Grouped {
  readonly period: Period
  readonly dimensions: Dimensions
  readonly by: readonly BillingDimension[]
  readonly owner: string | null
  readonly owners: KeyOwners
}

/** @param owners owners of keys; may be empty unless the query names an owner or groups by owner */
export function billing(view: View, query: QueryOf<'GET /billing'>, own: string | null, owners: KeyOwners): Billing {
  const asked = {
    dimensions: permittedDimensions(query, own),
    by: (query.by ?? (own === null ? 'key' : 'model')).split(',') as BillingDimension[],
    period: wholeDays(periodOf(query, view.now)),
    owner: query.owner ?? null,
    owners,
  }
  const { by, period } = asked
  if (new Set(by).size < by.length) throw new ReportError('bad_request', 'A group is named twice.', 'by')
  const all = [...groupsOf(view, asked, null)].sort(compareByCost)
  const total = sumTotals(all.map(({ totals }) => totals))
  const charted = all.slice(0, MAX_CHARTED_GROUPS)
  const found = inOrder(all.filter(matches(query.search)), query)
  const { offset = 0, limit = Infinity } = query
  return {
    from: new Date(period.from).toISOString(), to: new Date(period.to).toISOString(),
    by: by.join(), total: figures(total),
    groups: found.slice(offset, offset + limit).map(({ names, totals }) => ({ ...namesOf(names), figures: figures(totals) })),
    groups_total: found.length,
    missing_requests: missingRequests(view, asked, total),
    charted: charted.map(({ names, totals }) => ({ ...namesOf(names), cost_usd: knownCost(totals) })),
    days: daysOf(view, asked, charted),
  }
}

/**
 * @param slice null = all figures of the whole period; otherwise the ms of a slice, for the cost in each slice
 * @yields the sums of a group in a slice
 */
function* groupsOf(
  view: View, { period, dimensions, by, owner, owners }: Grouped, slice: number | null,
): Generator<Group & { readonly slice: number }> {
  // Sums by owner are computed from sums by key.
  const needed = new Set<NamedDimension>(by.map(name => (name === 'owner' ? 'key' : name)))
  if (owner !== null) needed.add('key')
  const order = [...needed]
  const sums = slice === null ? groupSums(view, period, dimensions, order)
    : groupSums(view, period, dimensions, [...order, { slice }], COST_COLUMNS)
  const hasOwners = owner !== null || by.includes('owner')
  const merged = new Map<string, { names: Names, slice: number, totals: Totals[] }>()
  for (const { names, totals } of sums) {
    const nameOf = (dimension: BillingDimension): string | null => {
      const name = names[order.indexOf(dimension === 'owner' ? 'key' : dimension)] as string | null
      return dimension !== 'owner' || name === null ? name : owners.get(name) ?? null
    }
    if (owner !== null && nameOf('owner') !== owner) continue
    const own = by.map(nameOf)
    const at = slice === null ? 0 : Number(names.at(-1))
    if (!hasOwners) {
      yield { names: own, slice: at, totals }
      continue
    }
    const id = JSON.stringify([at, own])
    const known = merged.get(id)
    if (known === undefined) merged.set(id, { names: own, slice: at, totals: [totals] })
    else known.totals.push(totals)
  }
  for (const { names, slice, totals } of merged.values()) yield { names, slice, totals: sumTotals(totals) }
}

function namesOf(names: Names): { name: string | null, names: (string | null)[] } {
  return { name: names[0] ?? null, names: [...names] }
}

function matches(search: string | undefined): (group: Group) => boolean {
  if (search === undefined) return () => true
  const wanted = search.toLowerCase()
  return ({ names }) => names.some(name => name?.toLowerCase().includes(wanted) === true)
}

type SortedBy = Exclude<QueryOf<'GET /billing'>['sort'], 'name' | undefined>

const SORTED: Readonly<Record<SortedBy, (totals: Totals) => number | bigint>> = {
  cost: ({ cost }) => cost,
  requests: ({ requests }) => requests,
  errors: ({ errors }) => errors,
  input_tokens: ({ input }) => input,
  cached_input_tokens: ({ cached }) => cached,
  output_tokens: ({ output }) => output,
  estimated_cost: ({ estimatedCost }) => estimatedCost,
  unpriced_requests: ({ unpriced }) => unpriced,
}

/** @param groups sorted by cost, highest first: groups with equal values keep this order */
function inOrder(groups: readonly Group[], { sort = 'cost', order }: QueryOf<'GET /billing'>): readonly Group[] {
  const sign = (order ?? (sort === 'name' ? 'asc' : 'desc')) === 'asc' ? 1 : -1
  if (sort === 'name') return groups.toSorted((a, b) => sign * textOf(a.names).localeCompare(textOf(b.names)))
  const value = SORTED[sort]
  return groups.toSorted((a, b) => {
    const [one, other] = [value(a.totals), value(b.totals)]
    return one === other ? 0 : sign * (one < other ? -1 : 1)
  })
}

function textOf(names: Names): string {
  return names.map(name => name ?? '').join('\0')
}

/** Number of requests that the groups lack. Sums by group, protocol or status need rows, which are deleted before the sums. */
function missingRequests(view: View, { period, dimensions, by, owner }: Grouped, { requests }: Totals): number {
  // Rows with a user or a tag are missing from the sums by day too: nothing tells how many there were.
  if (dimensions.user !== undefined || dimensions.tag !== undefined) return 0
  const areRowsNeeded = by.some(name => name === 'group' || name === 'protocol' || name === 'status' || name === 'user' || name.startsWith('tag:'))
  return areRowsNeeded && owner === null ? Math.max(0, sumOf(view, period, dimensions).requests - requests) : 0
}

/** A model with requests whose cost is unknown. */
export interface UnpricedModel {
  readonly name: string
  readonly requests: number
}

/** The unpriced models of the last 24 hours, those with the most unpriced requests first. @param most maximum number of models */
export function unpricedModels(view: View, most: number): UnpricedModel[] {
  const sums = sumsBy(view, alignedPeriod(view, periodOf({}, view.now)), {}, 'model')
  return [...sums].flatMap(([name, { unpriced: requests }]) => (typeof name === 'string' && requests > 0 ? [{ name, requests }] : []))
    .sort((a, b) => b.requests - a.requests)
    .slice(0, most)
}

function daysOf(view: View, asked: Grouped, charted: readonly Group[]): Billing['days'] {
  const days = new Map<number, Map<string, Totals>>()
  for (const { names, slice, totals } of groupsOf(view, asked, DAY)) {
    const ofDay = days.get(slice) ?? new Map<string, Totals>()
    days.set(slice, ofDay.set(JSON.stringify(names), totals))
  }
  const { from, to } = asked.period
  return Array.from({ length: (to - from) / DAY }, (_, n) => {
    const ofDay = days.get(from / DAY + n) ?? new Map<string, Totals>()
    const all = sumTotals(ofDay.values())
    const parts = charted.flatMap(({ names }) => {
      const cost = ofDay.get(JSON.stringify(names))?.cost ?? 0n
      return cost === 0n ? [] : [{ names, cost }]
    })
    return {
      day: new Date(from + n * DAY).toISOString().slice(0, 10),
      cost_usd: knownCost(all),
      unpriced_requests: all.unpriced,
      parts: parts.map(({ names, cost }) => ({ ...namesOf(names), cost_usd: formatUsd(cost) })),
      others_cost_usd: formatUsd(parts.reduce((rest, { cost }) => rest - cost, all.cost)),
    }
  })
}
