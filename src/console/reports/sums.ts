import { formatUsd } from '../../base/decimal.ts'
import { DIMENSION, SUM_COLUMNS, PART_SIZE } from '../../ledger/contributions.ts'
import type { Dimension as LedgerDimension } from '../../ledger/contributions.ts'
import type { Figures } from '../api/shapes.ts'
import type { Dialect } from './dialect.ts'
import { DAY, HOUR, segmentsOf, segmentCondition } from './period.ts'
import type { Period, PeriodSegment } from './period.ts'
import type { Sql, StoredRow, View } from './view.ts'

/** Which requests, by what they are summed by. null: those that have none. */
export interface Dimensions {
  readonly key?: string | null
  readonly model?: string | null
  readonly upstream?: string | null
}

/** What `Figures` are made of, exact. */
export interface Totals {
  readonly requests: number
  readonly errors: number
  readonly unpriced: number
  readonly estimated: number
  readonly input: bigint
  readonly cached: bigint
  readonly cacheWrite: bigint
  readonly output: bigint
  readonly reasoning: bigint
  /** Picodollars. */
  readonly cost: bigint
  readonly estimatedCost: bigint
}

/** What hours and days are summed by together. */
type Dimension = Exclude<LedgerDimension, 'group'>

/** What of the sources is grouped by: a name, or the number of the slice that the time lies in. */
export type Grouping = Dimension | { readonly slice: number }

const SUM_EXPRESSIONS = SUM_COLUMNS.map(name => `sum(${name}) AS ${name}`).join(', ')

const TOKENS = {
  input: 'input_tokens',
  cached: 'cached_input_tokens',
  cache_write: 'coalesce(cache_write_5m_tokens, 0) + coalesce(cache_write_1h_tokens, 0)',
  output: 'output_tokens',
  reasoning: 'reasoning_tokens',
} as const
const IS_ESTIMATED = `source IN ('estimated', 'mixed')`

/** One row of `requests` as its own sum. */
const ROW_FIGURES: Readonly<Record<(typeof SUM_COLUMNS)[number], string>> = {
  requests: '1',
  errors: `CASE WHEN "end" IN ('complete', 'client_gone') THEN 0 ELSE 1 END`,
  unpriced: 'CASE WHEN cost_pico_usd IS NULL THEN 1 ELSE 0 END',
  estimated: `CASE WHEN ${IS_ESTIMATED} THEN 1 ELSE 0 END`,
  ...highLowColumns('input', TOKENS.input),
  ...highLowColumns('cached', TOKENS.cached),
  ...highLowColumns('cache_write', TOKENS.cache_write),
  ...highLowColumns('output', TOKENS.output),
  ...highLowColumns('reasoning', TOKENS.reasoning),
  ...highLowColumns('cost', 'cost_pico_usd'),
  ...highLowColumns('estimated_cost', `CASE WHEN ${IS_ESTIMATED} THEN cost_pico_usd ELSE 0 END`),
}

function highLowColumns<N extends string>(name: N, column: string) {
  return {
    [`${name}_high`]: `coalesce((${column}) / ${PART_SIZE}, 0)`,
    [`${name}_low`]: `coalesce((${column}) % ${PART_SIZE}, 0)`,
  } as Record<`${N}_high` | `${N}_low`, string>
}

/**
 * @param period as `told` gives it
 * @param by what to sum by; null for one sum of all
 * @returns by name (null for requests without one) or number of the slice since 1970;
 *   what nothing belongs to is not there
 */
export function sumsBy(
  view: View, period: Period, dimensions: Dimensions, by: Grouping | null,
): Map<string | number | null, Totals> {
  const group = by === null ? '0' : typeof by === 'string' ? by : `at / ${by.slice}`
  const { sql, values } = source(view, period, dimensions, typeof by === 'string' ? [by] : [])
  const found = view.all({ sql: `SELECT ${group} AS "group", ${SUM_EXPRESSIONS} FROM (${sql}) AS counted GROUP BY 1`, values })
  const isName = typeof by === 'string'
  const sums = found.map(stored => {
    const { group: found } = stored
    return [isName ? nameOf(found) : Number(found), totals(stored)] as const
  })
  return new Map(sums.filter(([, { requests }]) => requests > 0))
}

/** The sum of all. */
export function sumOf(view: View, period: Period, dimensions: Dimensions): Totals {
  return sumTotals(sumsBy(view, period, dimensions, null).values())
}

/** The sum of sums. */
export function sumTotals(sums: Iterable<Totals>): Totals {
  const names = Object.keys(ZERO_TOTALS) as (keyof Totals)[]
  const total = { ...ZERO_TOTALS } as Record<keyof Totals, number | bigint>
  for (const sum of sums) {
    // Each is a number in both, or a bigint in both.
    for (const name of names) total[name] = (total[name] as number) + (sum[name] as number)
  }
  return total as Totals
}

/**
 * Rows and sums of a time, whose columns are `at` (ms since 1970, somewhere in the
 * hour or day), the names that are asked for (0 or null = none) and FIGURES.
 */
export function source(
  view: View, period: Period, dimensions: Dimensions, names: readonly Dimension[],
): Sql {
  const pieces = segmentsOf(view, period).map(piece => segmentSource(view.dialect, piece, dimensions, names))
  return {
    sql: pieces.map(({ sql }) => sql).join(' UNION ALL '),
    values: pieces.flatMap(({ values }) => values),
  }
}

function segmentSource(
  dialect: Dialect, piece: PeriodSegment, dimensions: Dimensions, names: readonly Dimension[],
): Sql {
  const { table, from, to } = piece
  const { sql, values } = conditionsOf(dialect, dimensions)
  const involved = new Set([...Object.keys(dimensions) as Dimension[], ...names])
  const [dimension = 'upstream'] = involved
  if (table === 'days' && involved.size <= 1) {
    return dimensionSource(dialect, piece, dimension, dimensions[dimension], names)
  }
  if (table === 'requests') {
    const figures = SUM_COLUMNS.map(name => `${ROW_FIGURES[name]} AS ${name}`).join(', ')
    const rows = segmentCondition(piece)
    return {
      sql: `SELECT started_at AS at, ${names.map(name => `${dialect.rowName(name)} AS ${name}, `).join('')}${figures}
        FROM requests WHERE ${rows.sql} AND ${sql}`,
      values: [...rows.values, ...values],
    }
  }
  const [slot, unit] = table === 'days' ? ['day', DAY] as const : ['hour', HOUR] as const
  return {
    sql: `SELECT CAST(${slot} AS bigint) * ${unit} AS at, ${[...names, ...SUM_COLUMNS].join(', ')}
      FROM ${table} WHERE ${slot} >= ? AND ${slot} < ? AND ${sql}`,
    values: [from / unit, to / unit, ...values],
  }
}

/** Days as far as one dimension alone matters. */
function dimensionSource(
  dialect: Dialect, { from, to }: Period, dimension: Dimension, only: string | null | undefined, names: readonly Dimension[],
): Sql {
  const isAsked = only === null ? dialect.isUnnamed('name') : 'name = ?'
  return {
    sql: `SELECT CAST(day AS bigint) * ${DAY} AS at, ${names.map(name => `name AS ${name}, `).join('')}${SUM_COLUMNS.join(', ')}
      FROM dimension_days WHERE dimension = ${DIMENSION[dimension]} AND day >= ? AND day < ?
      ${only === undefined ? '' : `AND ${isAsked}`}`,
    values: [from / DAY, to / DAY, ...typeof only === 'string' ? [only] : []],
  }
}

/** For rows and sums alike. */
export function conditionsOf(dialect: Dialect, dimensions: Dimensions): Sql {
  const sql = ['TRUE']
  const values: string[] = []
  for (const name of ['key', 'model', 'upstream'] as const) {
    const wanted = dimensions[name]
    if (wanted === undefined) continue
    sql.push(wanted === null ? dialect.isUnnamed(name) : `${name} = ?`)
    if (wanted !== null) values.push(wanted)
  }
  return { sql: sql.join(' AND '), values }
}

/** @param stored a name as the tables of sums have it: 0 or null = none */
export function nameOf(stored: unknown): string | null {
  return typeof stored === 'string' ? stored : null
}

/** @param stored one record with all of FIGURES; what is absent is 0 */
export function totals(stored: StoredRow): Totals {
  const whole = (name: string) => (typeof stored[name] === 'bigint' ? stored[name] : 0n)
  const exact = (name: string) => whole(`${name}_high`) * BigInt(PART_SIZE) + whole(`${name}_low`)
  return {
    requests: Number(whole('requests')),
    errors: Number(whole('errors')),
    unpriced: Number(whole('unpriced')),
    estimated: Number(whole('estimated')),
    input: exact('input'),
    cached: exact('cached'),
    cacheWrite: exact('cache_write'),
    output: exact('output'),
    reasoning: exact('reasoning'),
    cost: exact('cost'),
    estimatedCost: exact('estimated_cost'),
  }
}

export const ZERO_TOTALS: Totals = totals({})

export function figures(sums: Totals): Figures {
  return {
    requests: sums.requests,
    errors: sums.errors,
    input_tokens: Number(sums.input),
    cached_input_tokens: Number(sums.cached),
    cache_write_tokens: Number(sums.cacheWrite),
    output_tokens: Number(sums.output),
    reasoning_tokens: Number(sums.reasoning),
    cost_usd: formatUsd(sums.cost),
    estimated_requests: sums.estimated,
    estimated_cost_usd: formatUsd(sums.estimatedCost),
    unpriced_requests: sums.unpriced,
  }
}

/** The dearest first, then the busiest, then by name. */
export function sortByCost<N extends string | number | null>(sums: ReadonlyMap<N, Totals>): [N, Totals][] {
  return [...sums].sort(([nameA, a], [nameB, b]) => {
    if (a.cost !== b.cost) return a.cost < b.cost ? 1 : -1
    return b.requests - a.requests || (String(nameA) < String(nameB) ? -1 : 1)
  })
}
