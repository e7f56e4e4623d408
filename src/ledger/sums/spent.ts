import { existsSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { COLUMNS, type RowValues } from '../columns.ts'
import { DIMENSION, PART_SIZE as COST_PART } from './contributions.ts'

/** The cost of one key for one model on one UTC day. */
export interface DaySpend {
  /** null = requests without a key. */
  readonly key: string | null
  readonly model: string | null
  /** UTC midnight, ms since 1970. */
  readonly startedAt: number
  /** Picodollars (1e-12 USD). */
  readonly pico: bigint
}

const DAY = 86_400_000
const PART = BigInt(COST_PART)

/** The columns that are read from an unwritten row, with their index in the row's values. */
const UNWRITTEN = (['request_id', 'started_at', 'key', 'model', 'cost_pico_usd', 'group'] as const)
  .map(name => ({ name, at: COLUMNS.indexOf(name) }))
const REQUEST_ID = COLUMNS.indexOf('request_id')
const STARTED_AT = COLUMNS.indexOf('started_at')
/** Reads the columns from JSON in SQL. The cost is text in JSON, because it can exceed a number. */
const UNWRITTEN_LIST = UNWRITTEN.map(({ name }, at) => {
  const value = `value ->> ${at}`
  return `${name === 'cost_pico_usd' ? `CAST(${value} AS INTEGER)` : value} AS "${name}"`
}).join(', ')

/**
 * The past spend with which budgets start. Includes checkpoints of running requests and of dead processes, and deleted rows. Empty if there
 * is no file. @param since ms since 1970, at a UTC midnight
 * @param unwritten rows that may not be in the file; the last row of each request counts
 * @param keys names to read by index; null = all keys @throws an error of node:sqlite if the file cannot be read
 */
export function spentSince(
  file: string, since: number, unwritten: readonly RowValues[] = [], keys: readonly string[] | null = null,
): DaySpend[] {
  if (keys === null) return sumsOf(file, since, unwritten, { rows: 'key IS NOT NULL', days: 'key <> 0' })
  const isAsked = 'key IN (SELECT value FROM json_each(:keys))'
  return sumsOf(file, since, unwritten, { rows: isAsked, days: isAsked }, keys)
}

/** Like `spentSince`, for requests without a key. */
export function spentWithoutKey(file: string, since: number, unwritten: readonly RowValues[] = []): DaySpend[] {
  return sumsOf(file, since, unwritten, { rows: 'key IS NULL', days: 'key = 0' })
}

/** The cost of the keys of one group on one UTC day. */
interface GroupDaySpend extends Pick<DaySpend, 'startedAt' | 'pico'> { readonly group: string }

/** Like `spentSince`, by the group that the key had when the request was made. The spend is not added to the groups above. */
export function spentByGroup(file: string, since: number, unwritten: readonly RowValues[] = []): GroupDaySpend[] {
  const ended = `SELECT name, NULL AS model, day, cost_high AS high, cost_low AS low
    FROM dimension_days WHERE dimension = ${DIMENSION.group} AND day >= :since / ${DAY}`
  return readSums(file, since, unwritten, { names: '"group" AS name, NULL AS model', rows: '"group" IS NOT NULL', ended })
    .map(({ name, startedAt, pico }) => ({ group: String(name), startedAt, pico }))
}

/** @param isAsked SQL conditions that select keys; they differ for rows and days, because a null key is 0 in days */
function sumsOf(
  file: string, since: number, unwritten: readonly RowValues[],
  isAsked: { readonly rows: string; readonly days: string }, keys: readonly string[] | null = null,
): DaySpend[] {
  const ended = `SELECT nullif(key, 0) AS name, nullif(model, 0) AS model, day, cost_high AS high, cost_low AS low
    FROM days WHERE day >= :since / ${DAY} AND ${isAsked.days}`
  return readSums(file, since, unwritten, { names: 'key AS name, model', rows: isAsked.rows, ended }, keys)
    .map(({ name, ...spend }) => ({ key: name, ...spend }))
}

interface SumQuery {
  /** Name and model of the sum, as SQL expressions on rows. */
  readonly names: string
  readonly rows: string
  readonly ended: string
}

function readSums(
  file: string, since: number, unwritten: readonly RowValues[], { names, rows, ended: summed }: SumQuery,
  keys: readonly string[] | null = null,
): { name: string | null, model: string | null, startedAt: number, pico: bigint }[] {
  if (!existsSync(file)) return []
  using db = new DatabaseSync(file, { readOnly: true, timeout: 1_000 })
  const tables = new Set(db.prepare('SELECT name FROM sqlite_schema').all().map(({ name }) => name))
  if (!tables.has('requests') || !tables.has('in_flight')) return []
  // A ledger of an older version has no column for groups, and so no spend of groups.
  const isOlder = !db.prepare('PRAGMA table_info(requests)').all().some(({ name }) => name === 'group')
  if (isOlder && names.startsWith('"group"')) return []
  const cost = `cost_pico_usd / ${PART} AS high, cost_pico_usd % ${PART} AS low`
  const rowsOf = (table: string) => `SELECT ${names}, started_at / ${DAY} AS day, ${cost}
    FROM ${table} WHERE started_at >= :since AND ${rows}`
  // A ledger of an older version has no sums by day: read its rows.
  const ended = tables.has('days')
    ? `${summed}
      UNION ALL ${rowsOf('requests NOT INDEXED')} AND id > (SELECT up_to FROM summed)`
    : rowsOf('requests')
  const sums = db.prepare(`WITH unwritten AS (SELECT ${UNWRITTEN_LIST} FROM json_each(:unwritten))
    SELECT name, model, day, sum(high) AS high, sum(low) AS low
    FROM (${ended}
      UNION ALL ${rowsOf('in_flight')}
        AND (request_id, started_at) NOT IN (SELECT request_id, started_at FROM unwritten)
      UNION ALL ${rowsOf('unwritten')} AND NOT EXISTS (SELECT 1 FROM requests AS written
        WHERE written.request_id = unwritten.request_id AND written.started_at = unwritten.started_at))
    WHERE high > 0 OR low > 0 GROUP BY 1, 2, 3`)
  sums.setReadBigInts(true)
  const values = { since, unwritten: unwrittenText(unwritten), ...keys !== null && { keys: JSON.stringify(keys) } }
  return sums.all(values).map(({ name, model, day, high, low }) => ({
    name: name === null ? null : String(name),
    model: model === null ? null : String(model),
    startedAt: Number(day) * DAY,
    pico: BigInt(high as bigint) * PART + BigInt(low as bigint),
  }))
}

/** @returns JSON for UNWRITTEN_LIST, with the last row of each request */
function unwrittenText(rows: readonly RowValues[]): string {
  const latest = new Map(rows.map(values => [`${values[STARTED_AT]} ${values[REQUEST_ID]}`, values]))
  return JSON.stringify(Array.from(latest.values(), values => UNWRITTEN.map(({ at }) => {
    const value = values[at]
    return typeof value === 'bigint' ? String(value) : value
  })))
}
