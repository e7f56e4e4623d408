import { FIRST_BYTE_SCOPE } from '../../ledger/sums/contributions.ts'
import { addHistogramJson, bucketOf, addToBucket, quantiles, type Histogram } from '../../ledger/sums/first-byte.ts'
import type { FirstByte } from '../api/shapes.ts'
import type { Dialect } from './dialect.ts'
import { DAY, HOUR, segmentsOf, segmentCondition, type Period, type PeriodSegment } from './period.ts'
import type { Sql, View } from './view.ts'

type Scope = keyof typeof FIRST_BYTE_SCOPE

/**
 * Histograms by upstream or key; '' = all requests.
 * @param period from `alignedPeriod` or `wholeDays`
 * @param only the name to include; null = all names
 */
export function firstBytes(view: View, period: Period, scope: Scope, only: string | null): Map<string, Histogram> {
  const histograms = new Map<string, Histogram>()
  const histogram = (name: unknown): Histogram => {
    const known = histograms.get(String(name)) ?? new Map<number, number>()
    histograms.set(String(name), known)
    return known
  }
  for (const piece of segmentsOf(view, period)) {
    if (piece.table === 'requests') {
      for (const { name, ms } of view.all(requestsQuery(piece, scope, only))) {
        addToBucket(histogram(name), bucketOf(Number(ms)), 1)
      }
      continue
    }
    for (const query of histogramQueries(view.dialect, piece, scope, only)) {
      for (const { name, counts } of view.all(query)) addHistogramJson(histogram(name), String(counts))
    }
  }
  return histograms
}

export function percentiles(histogram: Histogram | undefined): FirstByte {
  const [p50 = null, p95 = null] = quantiles(histogram ?? new Map(), [0.5, 0.95])
  return { p50_ms: p50, p95_ms: p95 }
}

function requestsQuery(piece: PeriodSegment, scope: Scope, only: string | null): Sql {
  const name = scope === 'all' ? `''` : scope
  const { sql, values } = segmentCondition(piece)
  return {
    sql: `SELECT ${name} AS name, first_byte_ms AS ms FROM requests WHERE ${sql}
      AND first_byte_ms IS NOT NULL AND ${name} IS NOT NULL ${only === null ? '' : `AND ${name} = ?`}`,
    values: [...values, ...only === null ? [] : [only]],
  }
}

/** Queries for one segment. A day is summed from its hours if the hours are still stored. */
function histogramQueries(dialect: Dialect, { table, from, to }: PeriodSegment, scope: Scope, only: string | null): Sql[] {
  const query = (slot: 'hour' | 'day', unit: number): Sql => ({
    sql: `SELECT name, counts FROM ${dialect.firstBytes(slot)} WHERE scope = ? AND ${slot} >= ? AND ${slot} < ?
      ${only === null ? '' : 'AND name = ?'}`,
    values: [FIRST_BYTE_SCOPE[scope], from / unit, to / unit, ...only === null ? [] : [only]],
  })
  const hours = query('hour', HOUR)
  return table === 'days' ? [query('day', DAY), hours] : [hours]
}
