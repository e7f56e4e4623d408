import type { DatabaseSync, SQLInputValue, SQLOutputValue, StatementSync } from 'node:sqlite'
import type { RowValues } from '../columns.ts'
import {
  COUNTED_COLUMNS, Contributions, DETAILED_NAMES, DIMENSION, SUM_COLUMNS, SUM_NAMES, HOUR, PART_SIZE, toCountedRow,
} from './contributions.ts'
import type { CountedRow, FirstByteHistogram, Sums } from './contributions.ts'
import { addHistogramJson, toHistogramJson } from './first-byte.ts'
import { UnsummedRows } from './unsummed-rows.ts'

/*
 * Tables of sums, for charts: by hour and by day for each combination of key, model and upstream; by day for each dimension alone; by day
 * for each combination of all names, including group, protocol and status; histograms of the time to the first byte. Sums by day are kept
 * longer than the rows.
 *
 * Rows are summed in the order of their ids, many in one transaction. `summed` has the id of the last summed row, and a reader adds the
 * rows after it, so that sums are exact after any crash, and for rows that an older version writes. The rows to sum are usually still in
 * memory (unsummed-rows.ts).
 */

const SUMS = `${SUM_COLUMNS.map(name => `${name} INTEGER NOT NULL`).join(', ')}, last_at INTEGER NOT NULL`
const NAME_COLUMNS = 'key ANY NOT NULL, model ANY NOT NULL, upstream ANY NOT NULL'

/** A missing name is stored as 0, because a column of a primary key cannot be null. */
export const ROLLUP_SCHEMA = `
  CREATE TABLE summed (up_to INTEGER NOT NULL) STRICT;
  INSERT INTO summed VALUES (0);
  CREATE TABLE hours (hour INTEGER NOT NULL, ${NAME_COLUMNS}, ${SUMS},
    PRIMARY KEY (hour, key, model, upstream)) STRICT, WITHOUT ROWID;
  CREATE TABLE days (day INTEGER NOT NULL, ${NAME_COLUMNS}, ${SUMS},
    PRIMARY KEY (day, key, model, upstream)) STRICT, WITHOUT ROWID;
  CREATE INDEX days_by_key ON days (key, day);
  CREATE TABLE dimension_days (dimension INTEGER NOT NULL, day INTEGER NOT NULL, name ANY NOT NULL, ${SUMS},
    PRIMARY KEY (dimension, day, name)) STRICT, WITHOUT ROWID;
  CREATE TABLE first_byte_hours (scope INTEGER NOT NULL, name TEXT NOT NULL, hour INTEGER NOT NULL,
    counts TEXT NOT NULL, PRIMARY KEY (scope, name, hour)) STRICT, WITHOUT ROWID;
  CREATE INDEX first_byte_hours_by_hour ON first_byte_hours (hour);
  CREATE TABLE first_byte_days (scope INTEGER NOT NULL, name TEXT NOT NULL, day INTEGER NOT NULL,
    counts TEXT NOT NULL, PRIMARY KEY (scope, name, day)) STRICT, WITHOUT ROWID;`

/**
 * Sums by day for each combination of all names, from the day `detailed_from` on, because requests of earlier days were summed before this
 * table existed. If a process of an older version has summed rows without this table, `detailed_up_to` is less than `up_to`.
 */
export const DETAILED_SCHEMA = `
  CREATE TABLE detailed_days (day INTEGER NOT NULL, ${DETAILED_NAMES.map(name => `"${name}" ANY NOT NULL`).join(', ')}, ${SUMS},
    PRIMARY KEY (day, ${DETAILED_NAMES.map(name => `"${name}"`).join(', ')})) STRICT, WITHOUT ROWID;
  ALTER TABLE summed ADD COLUMN detailed_up_to INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE summed ADD COLUMN detailed_from INTEGER NOT NULL DEFAULT 0;
  UPDATE summed SET detailed_up_to = up_to, detailed_from = (SELECT coalesce(max(day) + 1, 0) FROM days);`

/** If a process of an older version subtracts a row without this table, the trigger makes `detailed_days` start again on the next day. */
export const TAKEN_BACK_SCHEMA = `
  CREATE TRIGGER day_taken_back AFTER UPDATE ON days WHEN NEW.requests < OLD.requests
    BEGIN UPDATE summed SET detailed_up_to = -1; END;`

/** SQL expression on `summed`: the day from which `detailed_days` is complete; null = an older process summed rows without the table. */
export const DETAILED_FROM = 'iif(detailed_up_to = up_to, detailed_from, NULL)'

/** Number of hours for which sums by hour are kept: 92 days, the longest quarter. */
export const HOURS_KEPT = 92 * 24

/** Rows that are summed in one transaction. It takes about 15 ms, in which rows of ended requests wait. */
const ROWS_PER_TRANSACTION = 2500

const COUNTED_LIST = `${COUNTED_COLUMNS.map(name => `"${name}"`).join(', ')},
  cost_pico_usd / ${PART_SIZE}, cost_pico_usd % ${PART_SIZE}`
/** The index of each column in a read row, whose first value is the id. */
const COLUMN_INDEX = Object.fromEntries(COUNTED_COLUMNS.map((name, at) => [name, at + 1])) as
  Readonly<Record<(typeof COUNTED_COLUMNS)[number], number>>

/** @param read the values of one row: its id, then COUNTED_LIST */
function readCountedRow(read: readonly SQLOutputValue[]): CountedRow {
  const [costHigh, costLow] = read.slice(COUNTED_COLUMNS.length + 1) as [number | null, number | null]
  return toCountedRow(read, COLUMN_INDEX, costHigh, costLow)
}

/** Writes the tables of sums. Calls block. Call the methods that write inside a transaction of the writer. */
export class Rollups {
  readonly #unsummed = new UnsummedRows()
  readonly #hasUnsummed: StatementSync
  readonly #newest: StatementSync
  readonly #unsummedRows: StatementSync
  readonly #summedRow: StatementSync
  readonly #advance: StatementSync
  readonly #rewind: StatementSync
  readonly #hour: StatementSync
  readonly #day: StatementSync
  readonly #detailedFrom: StatementSync
  readonly #skipUndetailed: StatementSync
  readonly #keepDetailed: StatementSync
  readonly #detailedDay: StatementSync
  readonly #dimension: StatementSync
  readonly #firstByte: StatementSync
  readonly #setFirstByte: StatementSync
  readonly #firstByteDay: StatementSync
  readonly #setFirstByteDay: StatementSync
  readonly #oldestHour: StatementSync
  readonly #oldestFirstByte: StatementSync
  readonly #dropHour: StatementSync
  readonly #firstBytesOfDay: StatementSync
  readonly #dropFirstBytes: StatementSync

  constructor(db: DatabaseSync) {
    this.#hasUnsummed = db.prepare('SELECT max(id) > (SELECT up_to FROM summed) AS rest FROM requests')
    this.#newest = db.prepare('SELECT up_to, id, request_id, started_at FROM summed, requests ORDER BY id DESC LIMIT 1')
    this.#unsummedRows = db.prepare(`SELECT id, ${COUNTED_LIST} FROM requests
      WHERE id > (SELECT up_to FROM summed) ORDER BY id LIMIT ${ROWS_PER_TRANSACTION}`)
    this.#summedRow = db.prepare(`SELECT id, ${COUNTED_LIST} FROM requests
      WHERE request_id = ? AND started_at = ? AND id <= (SELECT up_to FROM summed)`)
    for (const read of [this.#unsummedRows, this.#summedRow]) read.setReturnArrays(true)
    this.#advance = db.prepare('UPDATE summed SET up_to = ?1, detailed_up_to = ?1')
    this.#rewind = db.prepare(`UPDATE summed SET up_to = min(up_to, newest), detailed_up_to = min(up_to, newest)
      FROM (SELECT coalesce(max(id), 0) AS newest FROM requests)`)
    this.#detailedFrom = db.prepare('SELECT detailed_from FROM summed')
    this.#skipUndetailed = db.prepare(`UPDATE summed
      SET detailed_up_to = up_to, detailed_from = (SELECT coalesce(max(day) + 1, 0) FROM days) WHERE detailed_up_to <> up_to`)
    this.#keepDetailed = db.prepare('UPDATE summed SET detailed_up_to = up_to')
    this.#hour = db.prepare(upsert('hours', ['hour', ...SUM_NAMES]))
    this.#day = db.prepare(upsert('days', ['day', ...SUM_NAMES]))
    this.#detailedDay = db.prepare(upsert('detailed_days', ['day', ...DETAILED_NAMES]))
    this.#dimension = db.prepare(upsert('dimension_days', ['dimension', 'day', 'name']))
    this.#firstByte = db.prepare('SELECT counts FROM first_byte_hours WHERE scope = ? AND name = ? AND hour = ?')
    this.#setFirstByte = db.prepare('INSERT OR REPLACE INTO first_byte_hours VALUES (?, ?, ?, ?)')
    this.#firstByteDay = db.prepare('SELECT counts FROM first_byte_days WHERE scope = ? AND name = ? AND day = ?')
    this.#setFirstByteDay = db.prepare('INSERT OR REPLACE INTO first_byte_days VALUES (?, ?, ?, ?)')
    this.#oldestHour = db.prepare('SELECT min(hour) AS hour FROM hours')
    this.#oldestFirstByte = db.prepare('SELECT min(hour) AS hour FROM first_byte_hours')
    this.#dropHour = db.prepare('DELETE FROM hours WHERE hour = ?')
    this.#firstBytesOfDay = db.prepare('SELECT scope, name, counts FROM first_byte_hours WHERE hour >= ? AND hour < ? ORDER BY scope, name')
    this.#dropFirstBytes = db.prepare('DELETE FROM first_byte_hours WHERE hour >= ? AND hour < ?')
  }

  get isBehind(): boolean {
    return this.#hasUnsummed.get()?.['rest'] === 1
  }

  /** Sums some rows. @returns true = there may be more */
  sum(): boolean {
    this.#skipUndetailed.run()
    const { up_to: upTo, id, request_id: requestId, started_at: startedAt } = this.#newest.get() ?? {}
    const fresh = this.#unsummed.take(upTo, { id, requestId, startedAt })
    if (fresh !== null) {
      this.#write(fresh)
      this.#advance.run(id ?? null)
      return false
    }
    const rows = arrays(this.#unsummedRows.all())
    const last = rows.at(-1)?.[0]
    if (last === undefined) return false
    const contributions = new Contributions()
    for (const row of rows) contributions.add(readCountedRow(row), 1)
    this.#write(contributions)
    this.#advance.run(last)
    return rows.length === ROWS_PER_TRANSACTION
  }

  /** Call this after rows were committed, if no row replaced another. @param rows by ascending id, without gaps @param last highest id */
  rowsWritten(rows: readonly RowValues[], last: number): void {
    this.#unsummed.add(rows, last)
  }

  /** Subtracts a row from the sums if they contain it. Call this before replacing the row. */
  subtractRow(requestId: SQLInputValue, startedAt: SQLInputValue): void {
    this.#skipUndetailed.run()
    const contributions = new Contributions()
    for (const row of arrays(this.#summedRow.all(requestId, startedAt))) contributions.add(readCountedRow(row), -1)
    this.#write(contributions)
    // Undo the effect of the trigger `day_taken_back`, which is meant for processes of an older version.
    this.#keepDetailed.run()
  }

  /** Call this after deleting rows: new rows can get the ids of deleted rows, and must not count as summed. */
  rowsDeleted(): void {
    this.#skipUndetailed.run()
    this.#rewind.run()
  }

  /** Deletes old sums by hour, and merges old histograms of hours into days. @param now ms since 1970 @returns true = there may be more */
  expire(now: number): boolean {
    // Expire whole days, because old histograms are read by day.
    const first = firstHourKept(now)
    const oldest = this.#oldestHour.get()?.['hour']
    const isOld = typeof oldest === 'number' && oldest < first
    if (isOld) this.#dropHour.run(oldest)
    const oldestByte = this.#oldestFirstByte.get()?.['hour']
    const hasOldBytes = typeof oldestByte === 'number' && oldestByte < first
    if (hasOldBytes) this.#foldDay(Math.floor(oldestByte / 24))
    return isOld || hasOldBytes
  }

  #write(contributions: Contributions): void {
    for (const sums of contributions.hours()) this.#hour.run(...valuesOf(sums, SUM_NAMES))
    for (const sums of contributions.days()) this.#day.run(...valuesOf(sums, SUM_NAMES))
    const detailedFrom = Number(this.#detailedFrom.get()?.['detailed_from'])
    for (const sums of contributions.detailedDays()) {
      if (sums.slot >= detailedFrom) this.#detailedDay.run(...valuesOf(sums, DETAILED_NAMES))
    }
    for (const { dimension, slot, name, figures, lastAt } of contributions.dimensions()) {
      this.#dimension.run(DIMENSION[dimension], slot, name ?? 0, ...figures, lastAt)
    }
    for (const { scope, name, hour, counts } of contributions.firstBytes()) {
      this.#add(this.#firstByte, this.#setFirstByte, { scope, name, slot: hour, counts })
    }
  }

  #foldDay(day: number): void {
    const hours = [day * 24, (day + 1) * 24] as const
    const folded = new Map<string, SlotHistogram>()
    for (const { scope, name, counts } of this.#firstBytesOfDay.all(...hours)) {
      const id = `${String(scope)} ${String(name)}`
      let known = folded.get(id)
      if (known === undefined) {
        known = { scope: Number(scope), name: String(name), slot: day, counts: new Map() }
        folded.set(id, known)
      }
      addHistogramJson(known.counts, String(counts))
    }
    for (const each of folded.values()) this.#add(this.#firstByteDay, this.#setFirstByteDay, each)
    this.#dropFirstBytes.run(...hours)
  }

  #add(get: StatementSync, set: StatementSync, { scope, name, slot, counts }: SlotHistogram): void {
    const before = get.get(scope, name, slot)?.['counts']
    if (typeof before === 'string') addHistogramJson(counts, before)
    set.run(scope, name, slot, toHistogramJson(counts))
  }
}

/** The histogram of an hour or a day. */
interface SlotHistogram extends Omit<FirstByteHistogram, 'hour'> { readonly slot: number }

/** @returns the first hour (since 1970) for which sums by hour are kept; earlier requests are only in sums by day */
export function firstHourKept(now: number): number {
  return Math.floor((Math.floor(now / HOUR) - HOURS_KEPT) / 24) * 24
}

function arrays(rows: unknown): readonly (readonly SQLOutputValue[])[] {
  return rows as readonly (readonly SQLOutputValue[])[]
}

function upsert(table: string, identity: readonly string[]): string {
  const columns = [...identity.map(name => `"${name}"`), ...SUM_COLUMNS, 'last_at']
  return `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})
    ON CONFLICT DO UPDATE SET ${SUM_COLUMNS.map(name => `${name} = ${name} + excluded.${name}`).join(', ')},
      last_at = max(last_at, excluded.last_at)`
}

function valuesOf(sums: Sums, names: readonly (typeof DETAILED_NAMES)[number][]): (string | number)[] {
  return [sums.slot, ...names.map(name => sums[name] ?? 0), ...sums.figures, sums.lastAt]
}
