import { firstHourKept } from '../../ledger/sums/rollups.ts'
import type { QueryOf } from '../api/api.ts'
import type { Panel, Slice } from '../api/panel.ts'
import type { FirstByte, Figures } from '../api/shapes.ts'
import { firstBytes, percentiles } from './first-bytes.ts'
import { alignedPeriod, canReadRows, DAY, hasEachRow, floor, HOUR, MINUTE, periodOf, type Period } from './period.ts'
import { ReportError } from './report-error.ts'
import { sortByCost, figures, knownCost, ZERO_TOTALS, sumOf, sumsBy, sumTotals, type Totals } from './sums.ts'
import type { View } from './view.ts'

export interface UpstreamFigures {
  readonly name: string
  readonly figures: Figures
  readonly first_byte: FirstByte
  /** The upstream's share of all requests that upstreams served. */
  readonly share: number
}

const TOP = 10
/** Maximum period with slices of hours, unless the query sets the slice. Longer periods have slices of days. */
const MAX_HOURLY_SPAN = 3 * DAY
/** Maximum period with slices of minutes. Longer periods, and periods with expired rows, have slices of hours. */
const MAX_MINUTELY_SPAN = 3 * HOUR
const SLICE_SIZES = { minute: MINUTE, hour: HOUR, day: DAY } as const
/** ms; the maximum period for each slice. */
const MAX_SPANS = { minute: DAY, hour: 31 * DAY, day: Infinity } as const

export function panel(view: View, query: QueryOf<'GET /panel'>, own: string | null): Panel {
  const now = alignedPeriod(view, periodOf(query, view.now))
  const before = alignedPeriod(view, { from: now.from - (now.to - now.from), to: now.from })
  const dimensions = own === null ? {} : { key: own }
  const slice = sliceOf(view, now, query.slice)
  const byName = (by: 'key' | 'model') => sumsBy(view, now, dimensions, by) as Map<string | null, Totals>
  const top = (by: 'key' | 'model') => sortByCost(byName(by)).slice(0, TOP).map(([name, sums]) => ({ name, figures: figures(sums) }))
  const size = SLICE_SIZES[slice]
  const sums = sumsBy(view, now, dimensions, { slice: size })
  return {
    // Slices of minutes lack requests whose rows have expired. The sums include these requests.
    now: toPanelPeriod(view, now, slice === 'minute' ? sumOf(view, now, dimensions) : sumTotals(sums.values()), own),
    before: toPanelPeriod(view, before, sumOf(view, before, dimensions), own),
    slice,
    slices: slices(now, sums, size),
    top_keys: top('key'),
    top_models: top('model'),
  }
}

/** Figures of the upstreams, the upstream with the most requests first. */
export function upstreamFigures(view: View, query: QueryOf<'GET /upstreams'>): UpstreamFigures[] {
  const period = alignedPeriod(view, periodOf(query, view.now))
  const sums = sumsBy(view, period, {}, 'upstream')
  const times = firstBytes(view, period, 'upstream', null)
  const served = [...sums].flatMap(([name, totals]) => (typeof name === 'string' ? [{ name, totals }] : []))
  const all = served.reduce((requests, { totals }) => requests + totals.requests, 0)
  return served.toSorted((a, b) => b.totals.requests - a.totals.requests).map(({ name, totals }) => ({
    name, figures: figures(totals), first_byte: percentiles(times.get(name)), share: totals.requests / all,
  }))
}

function sliceOf(view: View, { from, to }: Period, asked: Panel['slice'] | undefined): Panel['slice'] {
  if (asked === undefined) {
    if (to - from > MAX_HOURLY_SPAN) return 'day'
    return to - from <= MAX_MINUTELY_SPAN && hasEachRow(view, { from, to }) ? 'minute' : 'hour'
  }
  if (to - from > MAX_SPANS[asked]) {
    throw new ReportError('bad_request', `The time range is too long for slices of one ${asked}: ${MAX_SPANS[asked] / DAY} days at most.`, 'slice')
  }
  if (asked === 'minute' && !canReadRows(view, { from, to })) {
    throw new ReportError('bad_request', 'There are too many requests for slices of one minute. Choose a shorter time range.', 'slice')
  }
  // For old requests, only sums by day exist.
  return asked === 'hour' && from < firstHourKept(view.now) * HOUR ? 'day' : asked
}

function toPanelPeriod(view: View, period: Period, sums: Totals, own: string | null): Panel['now'] {
  const times = firstBytes(view, period, own === null ? 'all' : 'key', own)
  return {
    from: new Date(period.from).toISOString(), to: new Date(period.to).toISOString(),
    figures: figures(sums), first_byte: percentiles(times.get(own ?? '')),
  }
}

/** @param sums by the number of the slice since 1970 */
function slices(period: Period, sums: ReadonlyMap<unknown, Totals>, size: number): Slice[] {
  const first = floor(period.from, size)
  return Array.from({ length: Math.ceil((period.to - first) / size) }, (_, n) => {
    const at = first + n * size
    const slice = sums.get(at / size) ?? ZERO_TOTALS
    const { requests, errors, input, output, unpriced } = slice
    return {
      at: new Date(at).toISOString(), requests, errors, tokens: Number(input + output),
      cost_usd: knownCost(slice), unpriced_requests: unpriced,
    }
  })
}
