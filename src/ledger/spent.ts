import { existsSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'

/** What requests of one key for one model cost that began on one UTC day. */
export interface DaySpend {
  readonly key: string
  readonly model: string | null
  /** Midnight, milliseconds since 1970. */
  readonly startedAt: number
  /** Millionths of a millionth of a USD. */
  readonly pico: bigint
}

const DAY = 86_400_000

/**
 * The sums that budgets start from, drafts of requests in flight included: what a
 * process that died had under way is spent too.
 *
 * @param file path; a file that is not there yet has no sums
 * @param since milliseconds since 1970, at a UTC midnight
 * @param keys names to read by their index instead of all rows of the time; null for all
 * @throws node:sqlite's error for a file that cannot be read
 */
export function spentSince(file: string, since: number, keys: readonly string[] | null = null): DaySpend[] {
  if (!existsSync(file)) return []
  using db = new DatabaseSync(file, { readOnly: true, timeout: 1_000 })
  const known = db.prepare("SELECT count(*) AS tables FROM sqlite_master WHERE name IN ('requests', 'in_flight')").get()
  if (known?.['tables'] !== 2) return []
  const condition = `started_at >= :since${keys === null ? '' : ' AND key IN (SELECT value FROM json_each(:keys))'}`
  // In two parts: a sum of 64-bit integers overflows.
  const sums = db.prepare(`
    SELECT key, model, started_at / ${DAY} AS day,
      sum(cost_pico_usd / 1000000) AS high, sum(cost_pico_usd % 1000000) AS low
    FROM (
      SELECT key, model, started_at, cost_pico_usd FROM requests WHERE ${condition}
      UNION ALL SELECT key, model, started_at, cost_pico_usd FROM in_flight WHERE ${condition}
    )
    WHERE cost_pico_usd > 0 AND key IS NOT NULL GROUP BY 1, 2, 3`)
  sums.setReadBigInts(true)
  const values = keys === null ? { since } : { since, keys: JSON.stringify(keys) }
  return sums.all(values).map(({ key, model, day, high, low }) => ({
    key: String(key),
    model: model === null ? null : String(model),
    startedAt: Number(day) * DAY,
    pico: BigInt(high as bigint) * 1_000_000n + BigInt(low as bigint),
  }))
}
