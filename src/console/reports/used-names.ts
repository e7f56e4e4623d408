import { DIMENSION } from '../../ledger/sums/contributions.ts'
import type { ResponseOf } from '../api/api.ts'
import type { Figures } from '../api/shapes.ts'
import { DAY, floor } from './period.ts'
import { figures, ZERO_TOTALS, source, sumsBy, type Dimensions } from './sums.ts'
import type { View } from './view.ts'

export interface KeyUse {
  /** Figures of the last 30 days. */
  readonly figures: Figures
  /** Start of the key's last request, in ISO 8601. It may be older than 30 days. */
  readonly last_used_at: string
}

const RECENT_MS = 30 * DAY
/** Maximum number of names, because clients choose the names of models. */
const MAX_NAMES = 1000

/** The names in requests of the last 30 days, sorted. If there are too many names, those with the most requests. */
export function filters(view: View, own: string | null): Pick<ResponseOf<'GET /filters'>, 'keys' | 'models' | 'upstreams'> {
  const dimensions = own === null ? {} : { key: own }
  return {
    keys: own === null ? names(view, 'key', dimensions) : [own],
    models: names(view, 'model', dimensions),
    upstreams: own === null ? names(view, 'upstream', dimensions) : [],
  }
}

function names(view: View, by: 'key' | 'model' | 'upstream', dimensions: Dimensions): string[] {
  const today = floor(view.now, DAY)
  const { sql, values } = source(view, { from: today - RECENT_MS, to: today + DAY }, dimensions, [by])
  const found = view.all({
    sql: `SELECT ${by} AS name, sum(requests) AS requests FROM (${sql}) AS counted
      WHERE ${view.dialect.isNamed(by)} GROUP BY 1 HAVING sum(requests) > 0
      ORDER BY requests DESC LIMIT ${MAX_NAMES}`,
    values,
  })
  return found.map(({ name }) => String(name)).sort()
}

/** The use of each key by name. Keys without requests are not included. */
export function keyUse(view: View): Map<string, KeyUse> {
  const now = floor(view.now, DAY) + DAY
  const lately = sumsBy(view, { from: now - RECENT_MS, to: now }, {}, 'key')
  const last = view.all({
    sql: `SELECT key, max(at) AS last_at FROM (
        SELECT name AS key, last_at AS at FROM dimension_days
          WHERE dimension = ${DIMENSION.key} AND ${view.dialect.isNamed('name')} AND requests > 0
        UNION ALL SELECT key, started_at FROM requests ${view.dialect.byPosition}
          WHERE id > ? AND key IS NOT NULL) AS used
      GROUP BY key`,
    values: [view.summedTo],
  })
  return new Map(last.map(({ key, last_at: at }) => [String(key), {
    figures: figures(lately.get(String(key)) ?? ZERO_TOTALS),
    last_used_at: new Date(Number(at)).toISOString(),
  }]))
}
