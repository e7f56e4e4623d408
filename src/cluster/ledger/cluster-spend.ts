import type { Database } from '../postgres/database.ts'
import { DIMENSION, PART_SIZE } from '../../ledger/sums/contributions.ts'

/** The cost at all gateways of one key's (or group's) requests for one model that began on one UTC day. */
export interface ClusterDaySpend {
  readonly name: string
  readonly model: string | null
  /** UTC midnight, ms since 1970. */
  readonly startedAt: number
  /** 1e-12 USD. */
  readonly pico: bigint
}

const DAY_MS = 86_400_000
const TIMEOUT_MS = 2_000

/** @param names of keys; '' = requests without a key @param since UTC midnight, ms since 1970 @throws {DatabaseError} */
export function clusterSpend(database: Database, names: readonly string[], since: number): Promise<ClusterDaySpend[]> {
  return spendOf(database, names, since, `SELECT coalesce(key, '') AS name, model, day,
      sum(cost_high)::text AS high, sum(cost_low)::text AS low
    FROM gateway.days WHERE (key = ANY($1) OR (key IS NULL AND '' = ANY($1))) AND day >= $2 GROUP BY 1, 2, 3`)
}

/** Like `clusterSpend`, by group. A request counts for the group that its key had when the request was made. */
export function clusterGroupSpend(database: Database, groups: readonly string[], since: number): Promise<ClusterDaySpend[]> {
  return spendOf(database, groups, since, `SELECT name, NULL AS model, day, sum(cost_high)::text AS high, sum(cost_low)::text AS low
    FROM gateway.dimension_days WHERE dimension = ${DIMENSION.group} AND name = ANY($1) AND day >= $2 GROUP BY name, day`)
}

async function spendOf(database: Database, names: readonly string[], since: number, sql: string): Promise<ClusterDaySpend[]> {
  const rows = await database.query(sql, [[...names], Math.floor(since / DAY_MS)], TIMEOUT_MS)
  return rows.map(({ name, model, day, high, low }) => ({
    name: String(name),
    model: model === null ? null : String(model),
    startedAt: Number(day) * DAY_MS,
    pico: BigInt(String(high)) * BigInt(PART_SIZE) + BigInt(String(low)),
  }))
}
