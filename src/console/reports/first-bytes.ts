import type { FirstByte } from '../api/shapes.ts'
import { SCOPE } from '../../ledger/contributions.ts'
import { addStored, bucketOf, countIn, quantiles } from '../../ledger/first-byte.ts'
import type { Histogram } from '../../ledger/first-byte.ts'
import { DAY, HOUR, piecesOf, within } from './period.ts'
import type { Period, Piece } from './period.ts'
import type { Sql, View } from './view.ts'

type Scope = keyof typeof SCOPE

/**
 * Times to the first byte, by name of the upstream or key; of all under ''.
 * @param period as `told` gives it
 * @param only the one name that matters; null for each
 */
export function firstBytes(
  view: View, period: Period, scope: Scope, only: string | null,
): Map<string, Histogram> {
  const histograms = new Map<string, Histogram>()
  const histogram = (name: unknown): Histogram => {
    const known = histograms.get(String(name)) ?? new Map<number, number>()
    histograms.set(String(name), known)
    return known
  }
  for (const piece of piecesOf(view, period)) {
    if (piece.table === 'requests') {
      for (const { name, ms } of view.all(rows(piece, scope, only))) {
        countIn(histogram(name), bucketOf(Number(ms)), 1)
      }
      continue
    }
    for (const query of storedIn(piece, scope, only)) {
      for (const { name, counts } of view.all(query)) addStored(histogram(name), String(counts))
    }
  }
  return histograms
}

/** @param histogram absent where there is none */
export function percentiles(histogram: Histogram | undefined): FirstByte {
  const [p50 = null, p95 = null] = quantiles(histogram ?? new Map(), [0.5, 0.95])
  return { p50_ms: p50, p95_ms: p95 }
}

function rows(piece: Piece, scope: Scope, only: string | null): Sql {
  const name = scope === 'all' ? `''` : scope
  const { sql, values } = within(piece)
  return {
    sql: `SELECT ${name} AS name, first_byte_ms AS ms FROM requests WHERE ${sql}
      AND first_byte_ms IS NOT NULL AND ${name} IS NOT NULL ${only === null ? '' : `AND ${name} = ?`}`,
    values: [...values, ...only === null ? [] : [only]],
  }
}

/** Days are told by their hours as long as these are kept. */
function storedIn({ table, from, to }: Piece, scope: Scope, only: string | null): Sql[] {
  const query = (stored: string, slot: string, unit: number): Sql => ({
    sql: `SELECT name, counts FROM ${stored} WHERE scope = ? AND ${slot} >= ? AND ${slot} < ?
      ${only === null ? '' : 'AND name = ?'}`,
    values: [SCOPE[scope], from / unit, to / unit, ...only === null ? [] : [only]],
  })
  const hours = query('first_byte_hours', 'hour', HOUR)
  return table === 'days' ? [query('first_byte_days', 'day', DAY), hours] : [hours]
}
