import { formatUsd } from '../../base/decimal.ts'
import { decode, READ_LIST } from '../../ledger/columns.ts'
import { cacheWrites } from '../../ledger/read/export-fields.ts'
import type { LedgerRow } from '../../ledger/row.ts'
import type { QueryOf } from '../api/api.ts'
import type { Logs, Row } from '../api/logs.ts'
import { periodOf } from './period.ts'
import { permittedDimensions } from './permitted-dimensions.ts'
import { parseQuery } from './query-language.ts'
import { ReportError } from './report-error.ts'
import { conditionsIn, search, searchSorted, type RequestFilter, type RowPosition, type Sort, type SortedPosition } from './search.ts'
import type { View } from './view.ts'

type LogConditions = QueryOf<'GET /logs.csv'>

const DEFAULT_PAGE_SIZE = 50
const NEWEST_FIRST = '-started'
/** Maximum number of rows that one query for ended requests scans. The next query continues after them. */
const MAX_ROWS_PER_POLL = 100_000

/** A page of requests. With `after`, the requests that ended since that position. */
export function logs(view: View, query: QueryOf<'GET /logs'>, own: string | null): Logs {
  const { before, after, sort, limit = DEFAULT_PAGE_SIZE } = query
  if (after !== undefined && sort !== undefined && sort !== NEWEST_FIRST) {
    throw new ReportError('bad_request', 'Requests that ended since a time can be sorted by their start only.', 'sort')
  }
  if (after !== undefined) return rowsSince(view, requestFilterOf(view, query, own), after, limit, own)
  const { rows, next } = logPage(view, query, own, before ?? null, limit)
  return { rows: rows.map(row => toRow(row, own)), next, last: `${view.positions}${lastId(view)}` }
}

/** A page of rows of the ledger. */
export interface LogPage {
  readonly rows: LedgerRow[]
  /** Position of the next page; null = this is the last page. */
  readonly next: string | null
}

/** @param before `next` of the previous page; null = the first page */
export function logPage(
  view: View, query: LogConditions & Pick<QueryOf<'GET /logs'>, 'sort'>, own: string | null, before: string | null, limit: number,
): LogPage {
  const sort = sortOf(query.sort)
  if (sort !== null) return sortedPage(view, requestFilterOf(view, query, own), sort, before, limit)
  const places = search(view, requestFilterOf(view, query, own), before === null ? null : parsePosition(before), limit)
  const last = places.at(-1)
  return {
    rows: rowsOf(view, places.map(({ id }) => id)),
    next: last === undefined || places.length < limit ? null : `${last.at}-${last.id}`,
  }
}

/** @returns null = the newest first, which is the order of `search` */
function sortOf(text: QueryOf<'GET /logs'>['sort']): Sort | null {
  if (text === undefined || text === NEWEST_FIRST) return null
  return { by: text.replace('-', '') as Sort['by'], isDescending: text.startsWith('-') }
}

function sortedPage(view: View, wanted: RequestFilter, sort: Sort, before: string | null, limit: number): LogPage {
  const places = searchSorted(view, wanted, sort, before === null ? null : parseSortedPosition(before), limit)
  const last = places.at(-1)
  return {
    rows: rowsOf(view, places.map(({ id }) => id)),
    next: last === undefined || places.length < limit ? null : `${last.value ?? ''}~${last.id}`,
  }
}

export function toRow(row: LedgerRow, own: string | null): Row {
  const { usage } = row
  return {
    request_id: row.requestId,
    started_at: new Date(row.startedAt).toISOString(),
    first_byte_ms: row.firstByteMs, duration_ms: row.durationMs,
    key: row.key, group: row.group, owner: row.owner,
    protocol: row.protocol, endpoint: row.endpoint, model: row.model,
    upstream: own === null ? row.upstream : null,
    upstream_model: own === null ? row.upstreamModel : null,
    upstream_protocol: row.upstreamProtocol,
    user: row.user, tags: row.tags, billed: row.billed,
    queued_ms: row.queuedMs ?? null, policy: own === null ? row.policy?.map(action => ({ ...action })) ?? null : null,
    status: row.status, end: row.end, error: row.error, source: row.source,
    input_tokens: usage.inputTokens, cached_input_tokens: usage.cachedInputTokens, cache_write_tokens: cacheWrites(usage),
    output_tokens: usage.outputTokens, reasoning_tokens: usage.reasoningTokens,
    cost_usd: row.costPico === null ? null : formatUsd(row.costPico),
    attempts: row.attempts.length,
    unreadable: [...row.unreadable ?? []],
  }
}

function requestFilterOf(view: View, query: LogConditions, own: string | null): RequestFilter {
  const { from, to } = periodOf(query, view.now)
  return {
    // Set no end, to include requests whose start is slightly later than this clock.
    period: { from, to: query.to === undefined ? Infinity : to },
    dimensions: permittedDimensions(query, own),
    status: query.status, end: query.end,
    query: query.q === undefined ? null : parseQuery(query.q, view.dialect, own),
  }
}

/** The requests that ended since a position. Searches by id, to include requests that started early and ended late. */
function rowsSince(view: View, wanted: RequestFilter, after: string, limit: number, own: string | null): Logs {
  const last = lastId(view)
  const from = startAfter(view, after, last)
  const upTo = Math.min(last, from + MAX_ROWS_PER_POLL)
  const { sql, values } = conditionsIn(view.dialect, wanted.period, wanted)
  const ids = view.all({
    sql: `SELECT id FROM requests ${view.dialect.byPosition} WHERE id > ? AND id <= ? AND ${sql} ORDER BY id LIMIT ?`,
    values: [from, upTo, ...values, limit],
  }).map(({ id }) => Number(id))
  return {
    rows: rowsOf(view, ids.toReversed()).toSorted((a, b) => b.startedAt - a.startedAt).map(row => toRow(row, own)),
    next: null,
    last: `${view.positions}${ids.length < limit ? upTo : ids.at(-1)}`,
  }
}

/** The rows with these ids, in the order of `ids`. */
function rowsOf(view: View, ids: readonly number[]): LedgerRow[] {
  const stored = view.rows({
    sql: `SELECT id, ${READ_LIST} FROM requests WHERE id IN (${ids.length === 0 ? 'NULL' : ids.join(', ')})`, values: [],
  })
  const rows = new Map(stored.map(each => [Number(each['id']), decode(each)]))
  return ids.flatMap(id => rows.get(id) ?? [])
}

function lastId(view: View): number {
  return Number(view.all({ sql: 'SELECT max(id) AS id FROM requests', values: [] })[0]?.['id'] ?? 0)
}

function parsePosition(text: string): RowPosition {
  const [, at, id] = /^(\d{1,16})-(\d{1,16})$/.exec(text) ?? []
  if (at === undefined || id === undefined) throw new ReportError('bad_request', 'Unknown page.', 'before')
  return { at: Number(at), id: Number(id) }
}

function parseSortedPosition(text: string): SortedPosition {
  const [, value, id] = /^(|-?\d{1,20}|-?\d{1,20}\.\d{1,20})~(\d{1,16})$/.exec(text) ?? []
  if (value === undefined || id === undefined) throw new ReportError('bad_request', 'Unknown page.', 'before')
  return { value: value === '' ? null : value.includes('.') ? Number(value) : BigInt(value), id: Number(id) }
}

/** @returns the id after which the search starts */
function startAfter(view: View, text: string, last: number): number {
  const [, positions, digits] = /^(c?)(\d{1,16})$/.exec(text) ?? []
  if (digits === undefined) throw new ReportError('bad_request', 'Unknown position.', 'after')
  // PostgreSQL became readable or unreadable since that page, so the position is of another ledger: continue from now.
  if (positions !== view.positions) return last
  // Ids start again in a new ledger, and in a ledger of which all rows have expired.
  return Number(digits) > last ? 0 : Number(digits)
}
