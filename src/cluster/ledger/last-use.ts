import type { Database } from '../postgres/database.ts'
import { DIMENSION } from '../../ledger/sums/contributions.ts'
import { openReadOnly } from '../../ledger/file/read-only.ts'

/**
 * @param file a ledger of this version @returns when each key was last used (ms since 1970), by name; keys that were never used are missing
 * @throws an error of node:sqlite
 */
export function lastUse(file: string): Map<string, number> {
  using db = openReadOnly(file)
  const rows = db.prepare(`SELECT key, max(at) AS last_at FROM (
      SELECT name AS key, last_at AS at FROM dimension_days
        WHERE dimension = ${DIMENSION.key} AND typeof(name) = 'text' AND requests > 0
      UNION ALL SELECT key, started_at FROM requests NOT INDEXED
        WHERE id > (SELECT up_to FROM summed) AND key IS NOT NULL)
    GROUP BY key`).all()
  return new Map(rows.map(({ key, last_at: at }) => [String(key), Number(at)]))
}

/** Like `lastUse`, for all gateways. @throws {DatabaseError} */
export async function clusterLastUse(database: Database): Promise<Map<string, number>> {
  const rows = await database.query(`SELECT name, max(last_at) AS last_at FROM gateway.dimension_days
    WHERE dimension = ${DIMENSION.key} AND name IS NOT NULL AND requests > 0 GROUP BY name`)
  return new Map(rows.map(({ name, last_at: at }) => [String(name), Number(at)]))
}
