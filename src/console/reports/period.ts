import { firstHourKept } from '../../ledger/sums/rollups.ts'
import { ReportError } from './report-error.ts'
import type { Sql, View } from './view.ts'

/** ms since 1970; up to and without `to`. */
export interface Period {
  readonly from: number
  readonly to: number
}

export const MINUTE = 60_000
export const HOUR = 60 * MINUTE
export const DAY = 24 * HOUR

const MAX_DAYS = 3700
/** Maximum number of rows that are read one by one at the bounds of a period, so that it need not begin at a full hour. */
const MAX_SCANNED_ROWS = 200_000

/**
 * The period of a query. Default: the last 24 hours; with only a start up to now, with only an end the 24 hours
 * before it.
 * @param now ms since 1970
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

/** The whole UTC days that contain the period. */
export function wholeDays({ from, to }: Period): Period {
  return { from: floor(from, DAY), to: ceil(to, DAY) }
}

/**
 * @param period of whole days
 * @param now ms since 1970
 * @returns `2026-11`, also for the current month until today; `2026-11-03`; `2026-11-03--2026-11-09` with the last day
 */
export function periodName({ from, to }: Period, now: number): string {
  const [first, last] = [from, to - 1].map(ms => new Date(ms).toISOString().slice(0, 10)) as [string, string]
  const month = first.slice(0, 7)
  const reachesEnd = to >= ceil(now, DAY) || new Date(to).getUTCDate() === 1
  if (first.endsWith('-01') && last.startsWith(month) && reachesEnd) return month
  return first === last ? first : `${first}--${last}`
}

/**
 * Extends a period to bounds for which sums exist. A bound moves outwards to the full hour if its hour has too many rows or
 * deleted ones, and to the full day if it is before the hours that are kept.
 */
export function alignedPeriod(view: View, { from, to }: Period): Period {
  return { from: alignedBound(view, from, floor), to: to >= view.now ? to : alignedBound(view, to, ceil) }
}

function alignedBound(view: View, at: number, outwards: typeof floor): number {
  if (at < firstHourKept(view.now) * HOUR) return outwards(at, DAY)
  return at % HOUR === 0 || hasAllRows(view, Math.floor(at / HOUR)) ? at : outwards(at, HOUR)
}

function hasAllRows(view: View, hour: number): boolean {
  const [sums] = view.all({
    sql: 'SELECT sum(requests) AS requests FROM hours WHERE hour = ?', values: [hour],
  })
  const requests = Number(sums?.['requests'] ?? 0)
  if (requests > MAX_SCANNED_ROWS) return false
  const [rows] = view.all({
    sql: 'SELECT count(*) AS rows FROM requests WHERE started_at >= ? AND started_at < ? AND id <= ?',
    values: [hour * HOUR, (hour + 1) * HOUR, view.summedTo],
  })
  return Number(rows?.['rows']) === requests
}

/** Does each request of the period have a row, and can these rows be read one by one? */
export function hasEachRow(view: View, period: Period): boolean {
  if (!canReadRows(view, period)) return false
  for (let hour = Math.floor(period.from / HOUR); hour * HOUR < period.to; hour++) {
    if (!hasAllRows(view, hour)) return false
  }
  return true
}

/** Does the period have few enough requests to read their rows one by one? */
export function canReadRows(view: View, { from, to }: Period): boolean {
  const [sums] = view.all({
    sql: 'SELECT sum(requests) AS requests FROM hours WHERE hour >= ? AND hour < ?', values: [Math.floor(from / HOUR), Math.ceil(to / HOUR)],
  })
  return from >= firstHourKept(view.now) * HOUR && Number(sums?.['requests'] ?? 0) <= MAX_SCANNED_ROWS
}

/** A period, and the table to read it from. */
export interface PeriodSegment extends Period {
  readonly table: 'days' | 'detailed_days' | 'hours' | 'requests'
  /** Read only rows with larger ids, which are not in the sums yet. */
  readonly after?: number
}

/**
 * @param period as `alignedPeriod` or `wholeDays` gives it
 * @returns days for whole days, hours beside them, rows at the bounds, and the rows that are in no sum yet
 * @throws ReportError `not_yet` while the ledger of an older version is being summed
 */
export function segmentsOf(view: View, { from, to }: Period): PeriodSegment[] {
  if (isFarBehind(view)) {
    throw new ReportError('not_yet', `The totals of ${view.unsummed} requests are not ready yet. ` +
      'After an upgrade this takes one or two minutes per ten million requests.')
  }
  // Nothing is later than now, so the last hour need not be cut.
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

/**
 * Like segmentsOf, for sums by group, protocol or status.
 * @returns days for whole days that have such sums; otherwise rows
 */
export function detailedSegmentsOf(view: View, { from, to }: Period): PeriodSegment[] {
  const first = Math.max(ceil(from, DAY), view.detailedFrom * DAY)
  const end = floor(to, DAY)
  if (isFarBehind(view) || first >= end) return [{ table: 'requests', from, to }]
  const pieces = ([
    { table: 'requests', from, to: first }, { table: 'detailed_days', from: first, to: end }, { table: 'requests', from: end, to },
  ] as const).filter(piece => piece.from < piece.to)
  return [...pieces, ...unsummedRows(view, pieces)]
}

/** The rows that are in no sum yet, for the part of the period that is read from sums. */
function unsummedRows(view: View, pieces: readonly PeriodSegment[]): PeriodSegment[] {
  const summed = pieces.filter(({ table }) => table !== 'requests')
  const [first, last] = [summed[0], summed.at(-1)]
  if (view.unsummed === 0 || first === undefined || last === undefined) return []
  return [{ table: 'requests', from: first.from, to: last.to, after: view.summedTo }]
}

/** Are too many rows outside the sums to read them one by one? */
export function isFarBehind(view: View): boolean {
  return view.unsummed > MAX_SCANNED_ROWS
}

/** The condition on the rows of a segment. */
export function segmentCondition({ from, to, after }: PeriodSegment): Sql {
  // The plus keeps SQLite from using the index on time: these are the last few rows by id.
  return after === undefined
    ? { sql: 'started_at >= ? AND started_at < ?', values: [from, to] }
    : { sql: 'id > ? AND +started_at >= ? AND +started_at < ?', values: [after, from, to] }
}

function tableAt(at: number, end: number): PeriodSegment['table'] {
  if (at % DAY === 0 && at + DAY <= end) return 'days'
  return at % HOUR === 0 && at + HOUR <= end ? 'hours' : 'requests'
}
