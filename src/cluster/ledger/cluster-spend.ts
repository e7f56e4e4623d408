import type { Database, Row } from '../postgres/database.ts'
import { DIMENSION, PART_SIZE } from '../../ledger/sums/contributions.ts'

/** Cost of the requests of one key for one model that began on one UTC day, at all gateways. */
export interface ClusterDaySpend {
  readonly name: string
  readonly model: string | null
  /** Midnight, ms since 1970. */
  readonly startedAt: number
  /** 1e-12 USD */
  readonly pico: bigint
}

const DAY_MS = 86_400_000
const TIMEOUT_MS = 2_000

/**
 * @param names of keys; an empty name is for requests without a key
 * @param since ms since 1970, at a UTC midnight
 * @throws {DatabaseError}
 */
export async function clusterSpend(database: Database, names: readonly string[], since: number): Promise<ClusterDaySpend[]> {
  const rows = await database.query(`SELECT coalesce(key, '') AS name, model, day, sum(cost_high)::text AS high, sum(cost_low)::text AS low
    FROM gateway.days WHERE (key = ANY($1) OR (key IS NULL AND '' = ANY($1))) AND day >= $2 GROUP BY 1, 2, 3`,
  [[...names], Math.floor(since / DAY_MS)], TIMEOUT_MS)
  return rows.map(toSpend)
}

/**
 * The cost by group instead of key: a request counts for the group that its key had at that time.
 * @param groups their names
 */
export async function clusterGroupSpend(database: Database, groups: readonly string[], since: number): Promise<ClusterDaySpend[]> {
  const rows = await database.query(`SELECT name, NULL AS model, day, sum(cost_high)::text AS high, sum(cost_low)::text AS low
    FROM gateway.dimension_days WHERE dimension = ${DIMENSION.group} AND name = ANY($1) AND day >= $2 GROUP BY name, day`,
  [[...groups], Math.floor(since / DAY_MS)], TIMEOUT_MS)
  return rows.map(toSpend)
}

function toSpend({ name, model, day, high, low }: Row): ClusterDaySpend {
  return {
    name: String(name),
    model: model === null ? null : String(model),
    startedAt: Number(day) * DAY_MS,
    pico: BigInt(String(high)) * BigInt(PART_SIZE) + BigInt(String(low)),
  }
}
