import { firstHourKept } from '../../ledger/sums/rollups.ts'
import type { QueryOf } from '../api/api.ts'
import type { Dialect } from './dialect.ts'
import { DAY, floor, HOUR, isFarBehind, type Period } from './period.ts'
import type { ParsedQuery } from './query-language.ts'
import { conditionsOf, type Dimensions } from './sums.ts'
import type { Sql, View } from './view.ts'

type LogConditions = QueryOf<'GET /logs.csv'>

export interface RequestFilter {
  readonly period: Period
  readonly dimensions: Dimensions
  readonly status: LogConditions['status']
  readonly end: LogConditions['end']
  /** Conditions from a text query; null = none. */
  readonly query: ParsedQuery | null
}

/** A position in the order of the ledger: by start, and then by id. */
export interface RowPosition {
  readonly at: number
  readonly id: number
}

/**
 * Searches requests. It is fast even with millions of rows, for three reasons: the indices contain all columns that conditions use; one
 * index contains only requests that are not plain successes; and the sums show the days and hours in which a key, a model and an upstream
 * occur together.
 *
 * @param before only requests before this position; null = from the newest request
 * @returns the newest first, at most `limit`
 */
export function search(view: View, wanted: RequestFilter, before: RowPosition | null, limit: number): RowPosition[] {
  const { period, dimensions, query } = wanted
  const bounded = before === null ? period : { from: period.from, to: Math.min(period.to, before.at + 1) }
  const stretches = excludesSuccesses(wanted) ? [bounded] : periodsWithRequests(view, bounded, { ...query?.names, ...dimensions })
  const found: RowPosition[] = []
  for (const stretch of stretches) {
    found.push(...positionsIn(view, stretch, wanted, before, limit - found.length))
    if (found.length >= limit) break
  }
  return found
}

const SORT_COLUMNS = {
  started: 'started_at', duration: 'duration_ms', ttft: 'first_byte_ms', cost: 'cost_pico_usd', input: 'input_tokens', output: 'output_tokens', status: 'status',
} as const

export interface Sort {
  readonly by: keyof typeof SORT_COLUMNS
  readonly isDescending: boolean
}

/** A position in another order: by value, and then by id. */
export interface SortedPosition {
  /** The value of the column; null = the request has no value, and comes after all requests that have one. */
  readonly value: number | bigint | null
  readonly id: number
}

/**
 * Searches in an order other than the newest first. Reads all matching rows.
 * @param after only requests after this position; null = from the first
 */
export function searchSorted(
  view: View, wanted: RequestFilter, { by, isDescending }: Sort, after: SortedPosition | null, limit: number,
): SortedPosition[] {
  const { dialect } = view
  const column = SORT_COLUMNS[by]
  const conditions = conditionsIn(dialect, wanted.period, wanted)
  const isUnusual = excludesSuccesses(wanted)
  const [order, beyond] = isDescending ? ['DESC', '<'] : ['ASC', '>']
  const behind: Sql = after === null ? { sql: 'TRUE', values: [] }
    : after.value === null ? { sql: `${column} IS NULL AND id ${beyond} ?`, values: [after.id] }
    : { sql: `(${column} ${beyond} ? OR (${column} = ? AND id ${beyond} ?) OR ${column} IS NULL)`, values: [after.value, after.value, after.id] }
  const found = view.all({
    sql: `SELECT id, ${column} AS value
      FROM requests ${dialect.byIndex(isUnusual ? 'requests_unusual' : 'requests_by_time')}
      WHERE ${isUnusual ? dialect.unusual : 'TRUE'} AND ${conditions.sql} AND ${behind.sql}
      ORDER BY ${column} ${order} NULLS LAST, id ${order} LIMIT ?`,
    values: [...conditions.values, ...behind.values, limit],
  })
  return found.map(({ id, value }) => ({ id: Number(id), value: value as SortedPosition['value'] }))
}

export function conditionsIn(dialect: Dialect, period: Period, { dimensions, status, end, query }: Omit<RequestFilter, 'period'>): Sql {
  const { sql: asked, values } = query?.condition ?? { sql: 'TRUE', values: [] }
  const names = conditionsOf(dialect, dimensions)
  // Without an end, use a time that no row can have as the upper bound of the index.
  const to = Math.min(period.to, Number.MAX_SAFE_INTEGER)
  return {
    sql: ['started_at >= ? AND started_at < ?', names.sql, statusSql(status), endSql(end), asked].join(' AND '),
    values: [period.from, to, ...names.values, ...values],
  }
}

function positionsIn(view: View, stretch: Period, wanted: RequestFilter, before: RowPosition | null, limit: number): RowPosition[] {
  const { dialect } = view
  const isUnusual = excludesSuccesses(wanted)
  const conditions = conditionsIn(dialect, stretch, wanted)
  const found = view.all({
    sql: `SELECT id, started_at
      FROM requests ${dialect.byIndex(isUnusual ? 'requests_unusual' : 'requests_by_time')}
      WHERE ${isUnusual ? dialect.unusual : 'TRUE'} AND ${conditions.sql}
      ${before === null ? '' : 'AND (started_at < ? OR id < ?)'}
      ORDER BY started_at DESC, id DESC LIMIT ?`,
    values: [...conditions.values, ...before === null ? [] : [before.at, before.id], limit],
  })
  return found.map(({ id, started_at: at }) => ({ id: Number(id), at: Number(at) }))
}

/** Tells whether the filter excludes plain successes. */
function excludesSuccesses({ status, end, query }: RequestFilter): boolean {
  if (query?.excludesSuccesses) return true
  if (end !== undefined && end !== 'complete') return true
  return status !== undefined && status !== '200' && status !== '2xx'
}

/** Hours or days in which requests with these names started, the newest first. */
function* periodsWithRequests(view: View, period: Period, dimensions: Dimensions): Generator<Period, void, undefined> {
  const names = conditionsOf(view.dialect, dimensions)
  if (Object.keys(dimensions).length === 0 || isFarBehind(view)) return yield period
  const unitOf = { day: DAY, hour: HOUR }
  const slots = (table: 'day' | 'hour', from: number, to: number): number[] => view.all({
    sql: `SELECT ${table} AS slot FROM ${table}s
        WHERE ${table} >= ? AND ${table} < ? AND ${names.sql} AND requests > 0
      UNION SELECT started_at / ${unitOf[table]} AS slot FROM requests ${view.dialect.byPosition}
        WHERE id > ? AND started_at >= ? AND started_at < ? AND ${names.sql}
      ORDER BY slot DESC`,
    values: [from, to, ...names.values, view.summedTo, from * unitOf[table], to * unitOf[table], ...names.values],
  }).map(({ slot }) => Number(slot))
  const firstHour = firstHourKept(view.now)
  const lastDay = Math.min(period.to, Number.MAX_SAFE_INTEGER) / DAY
  for (const day of slots('day', floor(period.from, DAY) / DAY, lastDay)) {
    if (day * 24 < firstHour) {
      yield intersection(period, day * DAY, DAY)
      continue
    }
    for (const hour of slots('hour', day * 24, (day + 1) * 24)) {
      const stretch = intersection(period, hour * HOUR, HOUR)
      if (stretch.from < stretch.to) yield stretch
    }
  }
}

function intersection(period: Period, at: number, length: number): Period {
  return { from: Math.max(period.from, at), to: Math.min(period.to, at + length) }
}

/** A condition on the status. The API allows only fixed words, so the SQL can contain the status. */
function statusSql(status: string | undefined): string {
  if (status === undefined) return 'TRUE'
  if (status === 'none') return 'status IS NULL'
  const first = Number(status[0])
  if (!status.endsWith('xx')) return `status = ${Number(status)}`
  return `status >= ${first * 100} AND status < ${(first + 1) * 100}`
}

function endSql(end: LogConditions['end']): string {
  if (end === undefined) return 'TRUE'
  return end === 'failed' ? `"end" NOT IN ('complete', 'client_gone')` : `"end" = '${end}'`
}
