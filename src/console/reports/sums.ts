import { formatUsd } from '../../base/decimal.ts'
import { DIMENSION, SUM_COLUMNS, PART_SIZE, type Dimension as LedgerDimension } from '../../ledger/sums/contributions.ts'
import { storedTag, tagValue } from '../../ledger/tags.ts'
import type { Figures } from '../api/shapes.ts'
import type { Dialect } from './dialect.ts'
import { DAY, detailedSegmentsOf, HOUR, segmentsOf, segmentCondition, type Period, type PeriodSegment } from './period.ts'
import { ReportError } from './report-error.ts'
import type { Sql, StoredRow, View } from './view.ts'

/** Conditions on the names of requests; null = requests without such a name. */
export interface Dimensions {
  readonly key?: string | null
  readonly model?: string | null
  readonly upstream?: string | null
  /** The end user; null = requests without one. */
  readonly user?: string | null
  /** A tag with this value. */
  readonly tag?: { readonly name: string, readonly value: string }
}

/** The exact values from which `Figures` are made. */
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
  /** Picodollars. `estimatedCost` is in picodollars too. */
  readonly cost: bigint
  readonly estimatedCost: bigint
}

/** Names for which sums by hour and by day exist, for each combination of them. */
type Dimension = Exclude<LedgerDimension, 'group'>

/** Names that only rows and detailed days have. */
export type DetailDimension = 'group' | 'protocol' | 'status'
/** Names that only rows have. */
type RowDimension = 'user' | `tag:${string}`
export type NamedDimension = Dimension | DetailDimension | RowDimension

/** What to group by: a name, or slices of this many ms. */
export type Grouping = NamedDimension | { readonly slice: number }

/** The sum of one group. `names` has the order of the groupings. The value of a slice is its number since 1970. */
export interface GroupSum {
  readonly names: readonly (string | number | null)[]
  readonly totals: Totals
}

/** Clients choose the names of users and models, and each group takes memory. 10,000 users on each day of a month are fewer. */
const MAX_GROUPS = 500_000

type SumColumn = (typeof SUM_COLUMNS)[number]
/** Columns for the cost of many groups. To read all columns would take longer. */
export const COST_COLUMNS: readonly SumColumn[] = ['requests', 'unpriced', 'cost_high', 'cost_low']

const TOKENS = {
  input: 'input_tokens',
  cached: 'cached_input_tokens',
  cache_write: 'coalesce(cache_write_5m_tokens, 0) + coalesce(cache_write_1h_tokens, 0)',
  output: 'output_tokens',
  reasoning: 'reasoning_tokens',
} as const
const IS_ESTIMATED = `source IN ('estimated', 'mixed')`

/** Expressions on a row of `requests`, by the column of the sums. */
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
 * @param period from `alignedPeriod` or `wholeDays`
 * @param by null = a single sum of all requests
 * @returns sums by name (null = requests without a name), or by the number of the slice since 1970. Groups without requests are left out
 */
export function sumsBy(view: View, period: Period, dimensions: Dimensions, by: Grouping | null): Map<string | number | null, Totals> {
  const sums = groupSums(view, period, dimensions, by === null ? [] : [by])
  return new Map(sums.map(({ names: [name = 0], totals }) => [name, totals]))
}

/** The sums of each combination of names that occurs. @param columns the columns to read; all others are 0 in the result */
export function groupSums(
  view: View, period: Period, dimensions: Dimensions, by: readonly Grouping[], columns: readonly SumColumn[] = SUM_COLUMNS,
): GroupSum[] {
  const names = by.filter(each => typeof each === 'string')
  const groups = by.map((each, n) => `${typeof each === 'string' ? `"${each}"` : `at / ${each.slice}`} AS group_${n}`)
  const isFine = by.some(each => typeof each !== 'string' && each.slice < HOUR)
  const { sql, values } = isFine
    ? segmentSource(view.dialect, { table: 'requests', ...period }, dimensions, names)
    : source(view, period, dimensions, names)
  const found = view.all({
    sql: `SELECT ${[...groups, ...columns.map(name => `sum(${name}) AS ${name}`)].join(', ')} FROM (${sql}) AS counted
      ${by.length === 0 ? '' : `GROUP BY ${by.map((_, n) => n + 1).join(', ')}`} LIMIT ${MAX_GROUPS + 1}`,
    values,
  })
  if (found.length > MAX_GROUPS) throw new ReportError('bad_request', 'There are too many groups. Choose a shorter time range, or a filter.', 'by')
  return found.map(stored => ({
    names: by.map((each, n) => (typeof each === 'string' ? groupName(each, stored[`group_${n}`]) : Number(stored[`group_${n}`]))),
    totals: totals(stored),
  })).filter(({ totals: { requests } }) => requests > 0)
}

function groupName(by: NamedDimension, stored: unknown): string | null {
  return by.startsWith('tag:') ? tagValue(stored) : nameOf(stored)
}

export function sumOf(view: View, period: Period, dimensions: Dimensions): Totals {
  return sumTotals(sumsBy(view, period, dimensions, null).values())
}

export function sumTotals(sums: Iterable<Totals>): Totals {
  const names = Object.keys(ZERO_TOTALS) as (keyof Totals)[]
  const total = { ...ZERO_TOTALS } as Record<keyof Totals, number | bigint>
  for (const sum of sums) {
    // Both operands are numbers, or both are bigints.
    for (const name of names) total[name] = (total[name] as number) + (sum[name] as number)
  }
  return total as Totals
}

/**
 * A table of rows and sums. Its columns are `at` (ms since 1970 in the hour or day), the names (0 or null = no name), and `SUM_COLUMNS`.
 */
export function source(view: View, period: Period, dimensions: Dimensions, names: readonly NamedDimension[]): Sql {
  const segments = needsRows(dimensions, names) ? [{ table: 'requests' as const, ...period }]
    : names.some(isDetail) ? detailedSegmentsOf(view, period) : segmentsOf(view, period)
  return unionAll(segments.map(piece => segmentSource(view.dialect, piece, dimensions, names)))
}

/**
 * Like `source`, by the group that the key was in at the time. Uses sums that only have the group, because they are stored longer.
 * @param days whole UTC days
 */
export function groupDays(view: View, days: Period): Sql {
  return unionAll(segmentsOf(view, days).map(piece => (piece.table === 'days'
    ? dimensionSource(view.dialect, piece, 'group', undefined, ['group'])
    : segmentSource(view.dialect, piece, {}, ['group']))))
}

function unionAll(pieces: readonly Sql[]): Sql {
  return { sql: pieces.map(({ sql }) => sql).join(' UNION ALL '), values: pieces.flatMap(({ values }) => values) }
}

function segmentSource(dialect: Dialect, piece: PeriodSegment, dimensions: Dimensions, names: readonly NamedDimension[]): Sql {
  const { table, from, to } = piece
  const { sql, values } = conditionsOf(dialect, dimensions)
  const involved = new Set([...Object.keys(dimensions), ...names.filter(name => !isDetail(name))] as Dimension[])
  const [dimension = 'upstream'] = involved
  if (table === 'days' && involved.size <= 1) {
    return dimensionSource(dialect, piece, dimension, dimensions[dimension], names)
  }
  if (table === 'requests') {
    const figures = SUM_COLUMNS.map(name => `${ROW_FIGURES[name]} AS ${name}`).join(', ')
    const rows = segmentCondition(piece)
    return {
      sql: `SELECT started_at AS at, ${names.map(name => `${rowName(dialect, name)} AS "${name}", `).join('')}${figures}
        FROM requests WHERE ${rows.sql} AND ${sql}`,
      values: [...rows.values, ...values],
    }
  }
  const [slot, unit] = table === 'hours' ? ['hour', HOUR] as const : ['day', DAY] as const
  return {
    sql: `SELECT CAST(${slot} AS bigint) * ${unit} AS at, ${[...names.map(name => `"${name}"`), ...SUM_COLUMNS].join(', ')}
      FROM ${table} WHERE ${slot} >= ? AND ${slot} < ? AND ${sql}`,
    values: [from / unit, to / unit, ...values],
  }
}

/** The expression for each name in rows. */
const ROW_NAMES: Readonly<Record<Exclude<NamedDimension, `tag:${string}`>, string>> = {
  key: 'key', model: 'model', upstream: 'upstream', group: '"group"', protocol: 'protocol', status: 'CAST(status AS text)', user: '"user"',
}

function rowName(dialect: Dialect, name: NamedDimension): string {
  return isTag(name) ? dialect.tag(name.slice('tag:'.length)) : dialect.rowName(ROW_NAMES[name])
}

function isTag(name: NamedDimension): name is `tag:${string}` {
  return name.startsWith('tag:')
}

/** Only rows have users and tags. */
export function needsRows(dimensions: Dimensions, names: readonly NamedDimension[]): boolean {
  return dimensions.user !== undefined || dimensions.tag !== undefined || names.some(name => name === 'user' || isTag(name))
}

function isDetail(name: NamedDimension): name is DetailDimension {
  return name === 'group' || name === 'protocol' || name === 'status'
}

/** A table of the sums of days by a single dimension. */
function dimensionSource(
  dialect: Dialect, { from, to }: Period, dimension: LedgerDimension, only: string | null | undefined, names: readonly NamedDimension[],
): Sql {
  const isAsked = only === null ? dialect.isUnnamed('name') : 'name = ?'
  return {
    sql: `SELECT CAST(day AS bigint) * ${DAY} AS at, ${names.map(name => `name AS "${name}", `).join('')}${SUM_COLUMNS.join(', ')}
      FROM dimension_days WHERE dimension = ${DIMENSION[dimension]} AND day >= ? AND day < ?
      ${only === undefined ? '' : `AND ${isAsked}`}`,
    values: [from / DAY, to / DAY, ...typeof only === 'string' ? [only] : []],
  }
}

/** The conditions, for rows and for sums. */
export function conditionsOf(dialect: Dialect, dimensions: Dimensions): Sql {
  const sql = ['TRUE']
  const values: string[] = []
  for (const name of ['key', 'model', 'upstream'] as const) {
    const wanted = dimensions[name]
    if (wanted === undefined) continue
    sql.push(wanted === null ? dialect.isUnnamed(name) : `${name} = ?`)
    if (wanted !== null) values.push(wanted)
  }
  const { user, tag } = dimensions
  if (user !== undefined) sql.push(user === null ? '"user" IS NULL' : '"user" = ?')
  if (typeof user === 'string') values.push(user)
  if (tag !== undefined) {
    // The first condition is fast, the second is exact.
    sql.push(dialect.contains('tags'), `${dialect.tag(tag.name)} = ?`)
    values.push(storedTag(tag.name, tag.value), JSON.stringify(tag.value))
  }
  return { sql: sql.join(' AND '), values }
}

/** @param stored value in a table of sums: 0 or null = no name */
export function nameOf(stored: unknown): string | null {
  return typeof stored === 'string' ? stored : null
}

/** @param stored row with `SUM_COLUMNS`; absent columns count as 0 */
export function totals(stored: StoredRow): Totals {
  const whole = (name: string) => (typeof stored[name] === 'bigint' ? stored[name] : 0n)
  const exact = (name: string) => whole(`${name}_high`) * BigInt(PART_SIZE) + whole(`${name}_low`)
  return {
    requests: Number(whole('requests')), errors: Number(whole('errors')),
    unpriced: Number(whole('unpriced')), estimated: Number(whole('estimated')),
    input: exact('input'), cached: exact('cached'), cacheWrite: exact('cache_write'),
    output: exact('output'), reasoning: exact('reasoning'),
    cost: exact('cost'), estimatedCost: exact('estimated_cost'),
  }
}

export const ZERO_TOTALS: Totals = totals({})
export const NO_FIGURES: Figures = Object.freeze(figures(ZERO_TOTALS))

export function figures(sums: Totals): Figures {
  return {
    requests: sums.requests, errors: sums.errors,
    input_tokens: Number(sums.input),
    cached_input_tokens: Number(sums.cached),
    cache_write_tokens: Number(sums.cacheWrite),
    output_tokens: Number(sums.output),
    reasoning_tokens: Number(sums.reasoning),
    cost_usd: knownCost(sums),
    estimated_requests: sums.estimated, estimated_cost_usd: formatUsd(sums.estimatedCost),
    unpriced_requests: sums.unpriced,
  }
}

/** @returns USD; null = no part of the cost is known */
export function knownCost({ cost, unpriced }: Pick<Totals, 'cost' | 'unpriced'>): string | null {
  return cost === 0n && unpriced > 0 ? null : formatUsd(cost)
}

/** Sorts by cost, highest first; then by number of requests, highest first; then by name. */
export function sortByCost<N extends string | number | null>(sums: ReadonlyMap<N, Totals>): [N, Totals][] {
  return [...sums].map(([name, totals]) => ({ names: [name], totals })).sort(compareByCost)
    .map(({ names: [name], totals }) => [name as N, totals])
}

export function compareByCost(a: GroupSum, b: GroupSum): number {
  if (a.totals.cost !== b.totals.cost) return a.totals.cost < b.totals.cost ? 1 : -1
  return b.totals.requests - a.totals.requests || (String(a.names) < String(b.names) ? -1 : 1)
}
