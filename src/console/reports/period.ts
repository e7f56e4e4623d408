import { firstHourKept } from '../../ledger/sums/rollups.ts'
import { ReportError } from './report-error.ts'
import type { Sql, View } from './view.ts'

/** A period in ms since 1970. `to` is exclusive. */
export interface Period {
  readonly from: number
  readonly to: number
}

export const MINUTE = 60_000
export const HOUR = 60 * MINUTE
export const DAY = 24 * HOUR

const MAX_DAYS = 3700
/**
 * Maximum number of rows that are read one by one at the bounds of a period. Rows are read so that a period need not begin at a full hour.
 */
const MAX_SCANNED_ROWS = 200_000

/**
 * The period of a query. Default: the last 24 hours. Without an end, up to now; without a start, the 24 hours before the end.
 * @throws ReportError `bad_request`
 */
export function periodOf(query: { readonly from?: string; readonly to?: string }, now: number): Period {
  const to = query.to === undefined ? null : parseTimestamp(query.to, 'to')
  const from = query.from === undefined ? (to ?? now) - DAY : parseTimestamp(query.from, 'from')
  const period = { from, to: to ?? Math.max(now, from + 1) }
  if (period.from >= period.to) throw new ReportError('bad_request', 'The end of the time range must be after its start.', 'to')
  if (period.to - period.from > MAX_DAYS * DAY) {
    throw new ReportError('bad_request', `The time range is longer than ${MAX_DAYS} days.`, 'from')
  }
  return period
}

function parseTimestamp(text: string, field: string): number {
  const ms = Date.parse(text)
  if (!Number.isFinite(ms)) throw new ReportError('bad_request', 'Not a valid time.', field)
  return ms
}

export function floor(ms: number, unit: number): number {
  return Math.floor(ms / unit) * unit
}

export function ceil(ms: number, unit: number): number {
  return Math.ceil(ms / unit) * unit
}

export function wholeDays({ from, to }: Period): Period {
  return { from: floor(from, DAY), to: ceil(to, DAY) }
}

/**
 * @param period a period of whole days
 * @returns `2026-11` for a month, also if the current month ends today; `2026-11-03` for a day; otherwise first and last day:
 * `2026-11-03--2026-11-09`
 */
export function periodName({ from, to }: Period, now: number): string {
  const [first, last] = [from, to - 1].map(ms => new Date(ms).toISOString().slice(0, 10)) as [string, string]
  const month = first.slice(0, 7)
  const reachesEnd = to >= ceil(now, DAY) || new Date(to).getUTCDate() === 1
  if (first.endsWith('-01') && last.startsWith(month) && reachesEnd) return month
  return first === last ? first : `${first}--${last}`
}

/**
 * Extends a period to bounds for which sums exist. A bound moves outwards to the full hour if the rows of the hour are too many or partly
 * deleted. It moves to the full day if sums by hour are no longer stored.
 */
export function alignedPeriod(view: View, { from, to }: Period): Period {
  return { from: alignedBound(view, from, floor), to: to >= view.now ? to : alignedBound(view, to, ceil) }
}

function alignedBound(view: View, at: number, outwards: typeof floor): number {
  if (at < firstHourKept(view.now) * HOUR) return outwards(at, DAY)
  return at % HOUR === 0 || hasAllRows(view, Math.floor(at / HOUR)) ? at : outwards(at, HOUR)
}

function hasAllRows(view: View, hour: number): boolean {
  const [sums] = view.all({ sql: 'SELECT sum(requests) AS requests FROM hours WHERE hour = ?', values: [hour] })
  const requests = Number(sums?.['requests'] ?? 0)
  if (requests > MAX_SCANNED_ROWS) return false
  const [rows] = view.all({
    sql: 'SELECT count(*) AS rows FROM requests WHERE started_at >= ? AND started_at < ? AND id <= ?',
    values: [hour * HOUR, (hour + 1) * HOUR, view.summedTo],
  })
  return Number(rows?.['rows']) === requests
}

/** Tells whether each request of the period has a row, and the rows can be read one by one. */
export function hasEachRow(view: View, period: Period): boolean {
  if (!canReadRows(view, period)) return false
  for (let hour = Math.floor(period.from / HOUR); hour * HOUR < period.to; hour++) {
    if (!hasAllRows(view, hour)) return false
  }
  return true
}

/** Tells whether the period has few enough requests to read the rows one by one. */
export function canReadRows(view: View, { from, to }: Period): boolean {
  const [sums] = view.all({
    sql: 'SELECT sum(requests) AS requests FROM hours WHERE hour >= ? AND hour < ?', values: [Math.floor(from / HOUR), Math.ceil(to / HOUR)],
  })
  return from >= firstHourKept(view.now) * HOUR && Number(sums?.['requests'] ?? 0) <= MAX_SCANNED_ROWS
}

/** A part of a period, and the table from which it is read. */
export interface PeriodSegment extends Period {
  readonly table: 'days' | 'detailed_days' | 'hours' | 'requests'
  /** If set, only rows with larger ids are read: those are not in the sums yet. */
  readonly after?: number
}

/**
 * @param period a period from `alignedPeriod` or `wholeDays`
 * @returns `days` for whole days, `hours` for hours around them, `requests` for the rows at the bounds and for rows that are not in the
 * sums yet
 * @throws ReportError `not_yet` while the ledger of an older version is being summed
 */
export function segmentsOf(view: View, { from, to }: Period): PeriodSegment[] {
  if (isFarBehind(view)) {
    throw new ReportError('not_yet', `The totals of ${view.unsummed} requests are not ready yet. ` +
      'After an upgrade this takes one or two minutes per ten million requests.')
  }
  // No request is later than now, so the last hour can be read as a whole.
  const end = to >= view.now ? ceil(to, HOUR) : to
  const pieces: PeriodSegment[] = []
  for (let at = from; at < end;) {
    const table = tableAt(at, end)
    const next = table === 'days' ? floor(end, DAY)
      : table === 'hours' ? Math.min(floor(at, DAY) + DAY, floor(end, HOUR))
      : Math.min(floor(at, HOUR) + HOUR, end)
    pieces.push({ table, from: at, to: next })
    at = next
  }
  return [...pieces, ...unsummedRows(view, pieces)]
}

/** Segments for sums by group, protocol or status. @returns days for whole days that have such sums; otherwise rows */
export function detailedSegmentsOf(view: View, { from, to }: Period): PeriodSegment[] {
  const first = Math.max(ceil(from, DAY), view.detailedFrom * DAY)
  const end = floor(to, DAY)
  if (isFarBehind(view) || first >= end) return [{ table: 'requests', from, to }]
  const pieces = ([
    { table: 'requests', from, to: first }, { table: 'detailed_days', from: first, to: end }, { table: 'requests', from: end, to },
  ] as const).filter(piece => piece.from < piece.to)
  return [...pieces, ...unsummedRows(view, pieces)]
}

/** The rows that are not in the sums yet, in the part of the period that is read from sums. */
function unsummedRows(view: View, pieces: readonly PeriodSegment[]): PeriodSegment[] {
  const summed = pieces.filter(({ table }) => table !== 'requests')
  const [first, last] = [summed[0], summed.at(-1)]
  if (view.unsummed === 0 || first === undefined || last === undefined) return []
  return [{ table: 'requests', from: first.from, to: last.to, after: view.summedTo }]
}

/** Tells whether more rows are missing in the sums than can be read one by one. */
export function isFarBehind(view: View): boolean {
  return view.unsummed > MAX_SCANNED_ROWS
}

export function segmentCondition({ from, to, after }: PeriodSegment): Sql {
  // With `+`, SQLite does not use the index on time. The rows are the last few by id.
  return after === undefined
    ? { sql: 'started_at >= ? AND started_at < ?', values: [from, to] }
    : { sql: 'id > ? AND +started_at >= ? AND +started_at < ?', values: [after, from, to] }
}

function tableAt(at: number, end: number): PeriodSegment['table'] {
  if (at % DAY === 0 && at + DAY <= end) return 'days'
  return at % HOUR === 0 && at + HOUR <= end ? 'hours' : 'requests'
}
