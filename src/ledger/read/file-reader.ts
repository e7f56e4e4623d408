import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import { fileExists } from '../../base/files/file-exists.ts'
import { decode, READ_LIST } from '../columns.ts'
import { dailyTable, DAY_MS, FIGURE_LIST, FIGURE_SUMS, ROW_FIGURE_LIST, splitByDay, toUsageSum } from './daily-sums.ts'
import { isAlive } from '../file/instance.ts'
import { StoreError } from '../../base/files/store-error.ts'
import type { Filter, FoundRequest, LedgerReader } from './ledger-reader.ts'
import { ledgerSchema } from '../file/ledger-schema.ts'
import { openReadOnly } from '../file/read-only.ts'
import { DETAILED_FROM } from '../sums/rollups.ts'
import type { LedgerRow } from '../row.ts'
import { allRows } from '../stored-values.ts'
import { sqliteTag, storedTag } from '../tags.ts'
import { add, byGroups, tagOf, type RowGroup, type UsageSum } from './usage-sum.ts'

function isReachable(file: string): boolean {
  try {
    return fileExists(file)
  } catch (error) {
    throw new StoreError('unwritable', (error as Error).message)
  }
}

/** @throws {StoreError} `missing`, `foreign`, `newer`, `unwritable`; otherwise an error of node:sqlite */
export function openReader(file: string): LedgerReader {
  if (!isReachable(file)) throw new StoreError('missing', 'there is no such file; the gateway makes it when it starts')
  const db = openReadOnly(file)
  try {
    const schema = ledgerSchema()
    if (schema.versionOf(db) < schema.latest) {
      throw new StoreError('missing', 'the file is empty or of an older version: ' +
        'the gateway brings it up to date when it starts')
    }
    return new FileLedgerReader(file, db)
  } catch (error) {
    db.close()
    throw error
  }
}

const PAGE = 1000
const NAME_COLUMNS = ['key', 'model', 'upstream', 'user'] as const
const TIME_FORMATS = { day: '%Y-%m-%d', hour: '%Y-%m-%dT%H:00Z', minute: '%Y-%m-%dT%H:%MZ' } as const

/** @returns a group as an SQL expression for rows */
function groupExpression(by: RowGroup): string {
  const tag = tagOf(by)
  if (tag !== null) return sqliteTag(tag)
  switch (by) {
    case 'day': case 'hour': case 'minute':
      return `strftime('${TIME_FORMATS[by]}', started_at / 1000, 'unixepoch')`
    case 'status':
      return 'CAST(status AS TEXT)'
    default:
      return `"${by}"`
  }
}

/** @returns a group as an SQL expression for sums by day */
function dailyGroupExpression(by: RowGroup): string {
  return by === 'day' ? `strftime('${TIME_FORMATS.day}', day * 86400, 'unixepoch')` : `"${by}"`
}

interface Condition {
  readonly sql: string
  readonly values: readonly SQLInputValue[]
}

class FileLedgerReader implements LedgerReader {
  readonly #file: string
  readonly #db: DatabaseSync

  constructor(file: string, db: DatabaseSync) {
    this.#file = file
    this.#db = db
  }

  *rows(filter: Filter): Generator<LedgerRow, void, undefined> {
    const orphans = this.#orphans(filter)
    const { sql, values } = condition(filter)
    const page = this.#db.prepare(`SELECT id, ${READ_LIST} FROM requests
      WHERE (started_at, id) > (?, ?) AND ${sql} ORDER BY started_at, id LIMIT ${PAGE}`)
    let last: [number, number] | null = [filter.since ?? 0, -1]
    while (last !== null) {
      const stored = allRows(page, ...last, ...values)
      const end = stored.at(-1)
      last = stored.length < PAGE || end === undefined ? null : [Number(end['started_at']), Number(end['id'])]
      const found = stored.map(decode)
      // Do not return an orphan twice: a starting gateway may have written its row meanwhile.
      for (const row of found) orphans.delete(identity(row))
      const upTo = last?.[0] ?? Infinity
      const due = [...orphans.values()].filter(row => row.startedAt < upTo)
      for (const row of due) orphans.delete(identity(row))
      yield* due.length === 0 ? found : [...found, ...due].sort(byStart)
    }
  }

  latest(filter: Filter, count: number): LedgerRow[] {
    return this.#snapshot(() => {
      const { sql, values } = condition(filter)
      const ended = allRows(this.#db.prepare(`SELECT ${READ_LIST} FROM requests
        WHERE ${sql} ORDER BY started_at DESC, id DESC LIMIT ?`), ...values, count).map(decode)
      return [...ended.toReversed(), ...this.#orphans(filter).values()].sort(byStart).slice(-count)
    })
  }

  /** Reads whole days from the sums by day if these have the requested columns, because the sums are kept longer than the rows. */
  sums(filter: Filter, by: readonly RowGroup[]): UsageSum[] {
    const groupList = (expression: (by: RowGroup) => string) => by.map((each, n) => `${expression(each)} AS group${n}, `).join('')
    const grouping = by.length === 0 ? '' : `GROUP BY ${by.map((_, n) => n + 1).join(', ')}`
    const read = (columns: string, table: string, { sql, values }: Condition): UsageSum[] => {
      const statement = this.#db.prepare(`SELECT ${by.map((_, n) => `group${n}, `).join('')}${FIGURE_SUMS}
        FROM (SELECT ${columns} FROM ${table} WHERE ${sql}) ${grouping} HAVING sum(requests) > 0`)
      statement.setReadBigInts(true)
      return statement.all(...values).map(stored => toUsageSum(stored, by))
    }
    const ofRows = groupList(groupExpression) + ROW_FIGURE_LIST
    const found = this.#snapshot(() => {
      const { table, days, edges, unsummed } = this.#split(filter, by)
      return [
        ...table === null ? [] : [read(groupList(dailyGroupExpression) + FIGURE_LIST, table, days), read(ofRows, 'requests', unsummed)],
        ...edges.map(edge => read(ofRows, 'requests', condition({ ...filter, ...edge }))),
        read(ofRows, 'in_flight', this.#orphaned(filter)),
      ].flat()
    })
    const sums = new Map<string, UsageSum>()
    for (const sum of found) {
      const id = JSON.stringify(sum.groups)
      const known = sums.get(id)
      sums.set(id, known === undefined ? sum : add(known, sum))
    }
    return [...sums.values()].sort(byGroups)
  }

  find(requestId: string): FoundRequest[] {
    return this.#snapshot(() => {
      const ended = allRows(this.#db.prepare(`SELECT ${READ_LIST} FROM requests WHERE request_id = ?`), requestId)
      const drafts = allRows(this.#db.prepare(`SELECT instance, ${READ_LIST} FROM in_flight WHERE request_id = ?`), requestId)
      return [
        ...ended.map(stored => ({ row: decode(stored), running: false })),
        ...drafts.map(stored => ({ row: decode(stored), running: !this.#isDead(stored['instance']) })),
      ].sort((a, b) => byStart(a.row, b.row))
    })
  }

  [Symbol.dispose](): void {
    this.#db.close()
  }

  /** Splits a filter into whole days, the times before and after, and the rows of the whole days that are not summed yet. */
  #split(filter: Filter, by: readonly RowGroup[]) {
    const table = dailyTable(filter, by)
    const state = this.#db.prepare(`SELECT up_to, ${DETAILED_FROM} AS detailed_from FROM summed`).get()
    const firstDays = { days: 0, detailed_days: Number(state?.['detailed_from'] ?? Infinity) }
    const { days, edges } = splitByDay(filter, table === null ? Infinity : firstDays[table])
    const names = nameCondition(filter)
    return {
      table: days.from < days.until ? table : null,
      days: allOf(names, 'day >= ? AND day < ?', [days.from, days.until]),
      edges,
      // With a plus, SQLite does not use the index on time: unsummed rows are faster to find by id, because they are the last rows.
      unsummed: allOf(names, 'id > ? AND +started_at >= ? AND +started_at < ?', [state?.['up_to'] ?? 0, days.from * DAY_MS, days.until * DAY_MS]),
    }
  }

  /** The last checkpoints of dead processes' requests that no gateway has written as rows yet. */
  #orphans(filter: Filter): Map<string, LedgerRow> {
    const { sql, values } = this.#orphaned(filter)
    const drafts = allRows(this.#db.prepare(`SELECT ${READ_LIST} FROM in_flight WHERE ${sql}`), ...values)
    return new Map(drafts.map(stored => {
      const row = decode(stored)
      return [identity(row), row]
    }))
  }

  /** SQL condition for the checkpoints of dead processes. */
  #orphaned(filter: Filter): Condition {
    const dead = this.#db.prepare('SELECT DISTINCT instance FROM in_flight').all()
      .map(({ instance }) => String(instance))
      .filter(instance => this.#isDead(instance))
    return allOf(condition(filter), `instance IN (${dead.map(() => '?').join(', ')})`, dead)
  }

  #isDead(instance: unknown): boolean {
    return !isAlive(this.#file, String(instance))
  }

  /** Runs all reads in one transaction, so that they see the same state. */
  #snapshot<T>(read: () => T): T {
    this.#db.exec('BEGIN')
    try {
      return read()
    } finally {
      this.#db.exec('COMMIT')
    }
  }
}

function condition(filter: Filter): Condition {
  const { since = 0, until = Infinity } = filter
  const names = nameCondition(filter)
  // The index on time has these names too, so only matching rows are read.
  const isIndexed = [filter.key, filter.model, filter.upstream].some(name => name !== undefined)
  const from = since > 0 || isIndexed ? allOf(names, 'started_at >= ?', [since]) : names
  return until === Infinity ? from : allOf(from, 'started_at < ?', [until])
}

/** SQL condition for rows and sums. It checks the type, because a missing name is NULL in rows and 0 in sums. */
function nameCondition(filter: Filter): Condition {
  const wanted = NAME_COLUMNS.filter(column => filter[column] !== undefined)
  const tags = Object.entries(filter.tags ?? {})
  const isGlob = (text: string) => operator(text) === 'GLOB'
  return {
    sql: [
      'TRUE',
      ...wanted.map(column => `typeof(${column}) = 'text' AND ${column} ${operator(filter[column] as string)} ?`),
      ...tags.map(([name, value]) => (isGlob(value) ? `${sqliteTag(name)} GLOB ?` : 'instr(tags, ?) > 0')),
    ].join(' AND '),
    values: [
      ...wanted.map(column => pattern(filter[column] as string)),
      ...tags.map(([name, value]) => (isGlob(value) ? pattern(JSON.stringify(value)) : storedTag(name, value))),
    ],
  }
}

function allOf({ sql, values }: Condition, more: string, moreValues: readonly SQLInputValue[]): Condition {
  return { sql: `${sql} AND ${more}`, values: [...values, ...moreValues] }
}

function operator(glob: string): string {
  return glob.includes('*') ? 'GLOB' : '='
}

/** Escapes `?` and `[`, which are special in SQLite's globs. */
function pattern(glob: string): string {
  return glob.includes('*') ? glob.replace(/[?[]/g, '[$&]') : glob
}

function identity(row: LedgerRow): string {
  return `${row.startedAt} ${row.requestId}`
}

function byStart(a: LedgerRow, b: LedgerRow): number {
  return a.startedAt - b.startedAt
}
