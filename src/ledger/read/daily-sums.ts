import { PART_SIZE } from '../sums/contributions.ts'
import type { Filter } from './ledger-reader.ts'
import { tagValue } from '../tags.ts'
import { tagOf, type RowGroup, type UsageSum } from './usage-sum.ts'

/* For the readers of the ledgers in SQLite and PostgreSQL, which read the sums of whole days and the rows before and after those days. */

export const DAY_MS = 86_400_000

/** The summed columns. Each sum has two parts, because it can exceed the integers of SQLite and PostgreSQL. */
const SUMMED = {
  input: 'input_tokens',
  cached: 'cached_input_tokens',
  cache_write: 'coalesce(cache_write_5m_tokens, 0) + coalesce(cache_write_1h_tokens, 0)',
  output: 'output_tokens',
  reasoning: 'reasoning_tokens',
  cost: 'cost_pico_usd',
} as const

/** The figures of a sum, each with an SQL expression for its value in one row. */
const ROW_FIGURES: readonly (readonly [name: string, ofRow: string])[] = [
  ['requests', '1'],
  ['unpriced', 'CASE WHEN cost_pico_usd IS NULL THEN 1 ELSE 0 END'],
  ...Object.entries(SUMMED).flatMap(([name, value]) => [
    [`${name}_high`, `coalesce((${value}) / ${PART_SIZE}, 0)`], [`${name}_low`, `coalesce((${value}) % ${PART_SIZE}, 0)`],
  ] as const),
]

/** For SELECT: the names of the figures. */
export const FIGURE_LIST = ROW_FIGURES.map(([name]) => name).join(', ')
/** For SELECT: the figures of one row. */
export const ROW_FIGURE_LIST = ROW_FIGURES.map(([name, ofRow]) => `${ofRow} AS ${name}`).join(', ')
/** For SELECT: the sum of each figure over several rows. */
export const FIGURE_SUMS = ROW_FIGURES.map(([name]) => `sum(${name}) AS ${name}`).join(', ')

const DETAILS: ReadonlySet<RowGroup> = new Set(['group', 'protocol', 'status'])

/** The table of sums by day that has all of these groups and names; null = only rows have them. */
export function dailyTable({ user, tags }: Filter, by: readonly RowGroup[]): 'days' | 'detailed_days' | null {
  if (user !== undefined || tags !== undefined) return null
  if (by.some(each => each === 'hour' || each === 'minute' || each === 'user' || tagOf(each) !== null)) return null
  return by.some(each => DETAILS.has(each)) ? 'detailed_days' : 'days'
}

/** The time before or after the whole days, ms since 1970. */
type Edge = Required<Pick<Filter, 'since' | 'until'>>

/**
 * @param firstDay first day in the table, in days since 1970; Infinity = the table is empty
 * @returns the whole days (in days since 1970, `until` exclusive; may be none), and the times before and after the whole days
 */
export function splitByDay(
  { since = 0, until = Infinity }: Filter, firstDay: number,
): { readonly days: { readonly from: number, readonly until: number }, readonly edges: readonly Edge[] } {
  const from = Math.max(Math.ceil(since / DAY_MS), firstDay)
  const end = Math.max(from, Math.floor(until / DAY_MS))
  const edges = [{ since, until: Math.min(until, from * DAY_MS) }, { since: Math.max(since, end * DAY_MS), until }]
  return { days: { from, until: end }, edges: edges.filter(edge => edge.since < edge.until) }
}

/** @param stored the figures, and `group0` and following; only text is a name */
export function toUsageSum(stored: Readonly<Record<string, unknown>>, by: readonly RowGroup[]): UsageSum {
  const whole = (name: string) => BigInt(String(stored[name] ?? 0))
  const exact = (name: keyof typeof SUMMED) => whole(`${name}_high`) * BigInt(PART_SIZE) + whole(`${name}_low`)
  return {
    groups: by.map((each, n) => {
      const group = stored[`group${n}`]
      if (tagOf(each) !== null) return tagValue(group)
      return typeof group === 'string' ? group : null
    }),
    requests: Number(whole('requests')),
    inputTokens: exact('input'),
    cachedInputTokens: exact('cached'),
    cacheWriteTokens: exact('cache_write'),
    outputTokens: exact('output'),
    reasoningTokens: exact('reasoning'),
    costPico: whole('requests') === whole('unpriced') ? null : exact('cost'),
    unpriced: Number(whole('unpriced')),
  }
}
