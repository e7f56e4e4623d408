import type { BlockingDatabase } from '../postgres/blocking-database.ts'
import { DatabaseError } from '../postgres/database-error.ts'
import { decode, READ_LIST } from '../../ledger/columns.ts'
import { DAY_MS, dailyTable, FIGURE_LIST, FIGURE_SUMS, ROW_FIGURE_LIST, splitByDay, toUsageSum } from '../../ledger/read/daily-sums.ts'
import type { Filter, FoundRequest, LedgerReader } from '../../ledger/read/ledger-reader.ts'
import type { LedgerRow } from '../../ledger/row.ts'
import { withoutBigInts, type StoredRow } from '../../ledger/stored-values.ts'
import { postgresTag, storedTag } from '../../ledger/tags.ts'
import { byGroups, tagOf, type RowGroup, type TagGroup, type UsageSum } from '../../ledger/read/usage-sum.ts'

const PAGE = 1000
/** Milliseconds for a query. Long, because `gateway usage` can read all rows. */
const TIMEOUT_MS = 30_000
/** Milliseconds for the first query, which checks whether PostgreSQL responds. */
const CONNECT_TIMEOUT_MS = 3_000
const NAME_COLUMNS = ['key', 'model', 'upstream', 'user'] as const

/** SQL expression for the start time of a request, as text in UTC. */
const timeText = (format: string) => `CASE WHEN started_at >= 0 THEN to_char(to_timestamp(started_at / 1000) AT TIME ZONE 'UTC', '${format}') END`

/** SQL query for the first day for which gateway.detailed_days is complete. */
export const DETAILED_FROM = '(SELECT day FROM gateway.detailed_from)'

/** SQL expressions for groups in the sums by day: of gateway.days and of gateway.detailed_days. */
const DAILY_GROUPS: Readonly<Partial<Record<RowGroup, string>>> = {
  key: 'key', model: 'model', upstream: 'upstream', group: '"group"', protocol: 'protocol', status: 'status',
  day: `to_char(to_timestamp(day * 86400::bigint) AT TIME ZONE 'UTC', 'YYYY-MM-DD')`,
}

const ROW_GROUPS: Readonly<Record<Exclude<RowGroup, TagGroup>, string>> = {
  key: 'key', model: 'model', upstream: 'upstream', group: '"group"', protocol: 'protocol', status: 'status::text',
  user: '"user"', day: timeText('YYYY-MM-DD'), hour: timeText('YYYY-MM-DD"T"HH24:00"Z"'), minute: timeText('YYYY-MM-DD"T"HH24:MI"Z"'),
}

function rowGroup(by: RowGroup): string {
  const tag = tagOf(by)
  return tag === null ? ROW_GROUPS[by as Exclude<RowGroup, TagGroup>] : postgresTag(tag)
}

type Condition = { readonly sql: string; readonly values: readonly string[] }

/**
 * Opens the ledger of all gateways in PostgreSQL for reading.
 * @param local reader of this gateway's file, for running requests and rows that were not sent to PostgreSQL yet; null = none
 * @throws {DatabaseError} if PostgreSQL does not respond, or if no gateway has created the schema yet
 */
export function openClusterReader(database: BlockingDatabase, local: LedgerReader | null): LedgerReader {
  database.query('SELECT FROM gateway.requests LIMIT 0', [], CONNECT_TIMEOUT_MS)
  return new ClusterReader(database, local)
}

class ClusterReader implements LedgerReader {
  readonly #database: BlockingDatabase
  readonly #local: LedgerReader | null

  constructor(database: BlockingDatabase, local: LedgerReader | null) {
    this.#database = database
    this.#local = local
  }

  *rows(filter: Filter): Generator<LedgerRow, void, undefined> {
    const { sql, values } = rowCondition(filter)
    let last: [at: number, id: number] | null = [filter.since ?? 0, -1]
    while (last !== null) {
      const found = this.#query(`SELECT id, ${READ_LIST} FROM gateway.requests
        WHERE (started_at, id) > (${last.join(', ')}) AND ${sql} ORDER BY started_at, id LIMIT ${PAGE}`, values)
      const end = found.at(-1)
      last = found.length < PAGE || end === undefined ? null : [Number(end['started_at']), Number(end['id'])]
      yield* found.map(toRow)
    }
  }

  latest(filter: Filter, count: number): LedgerRow[] {
    const { sql, values } = rowCondition(filter)
    return this.#query(`SELECT ${READ_LIST} FROM gateway.requests WHERE ${sql}
      ORDER BY started_at DESC, id DESC LIMIT ${count}`, values).map(toRow).toReversed()
  }

  /** Reads whole days from the sums by day if these have the requested columns, because the sums are kept longer than the rows. */
  sums(filter: Filter, by: readonly RowGroup[]): UsageSum[] {
    const table = dailyTable(filter, by)
    const names = nameCondition(filter)
    const groups = by.map((each, n) => `${table === null ? rowGroup(each) : DAILY_GROUPS[each]} AS group${n}, `).join('')
    const grouping = by.length === 0 ? '()' : by.map((_, n) => n + 1).join(', ')
    const found = this.#query(`SELECT ${groups} ${FIGURE_SUMS}
      FROM (${table === null ? rowSource(filter) : this.#dailySource(filter, table)}) AS counted
      WHERE ${names.sql} GROUP BY ${grouping} HAVING sum(requests) > 0`, names.values)
    return found.map(stored => toUsageSum(stored, by)).sort(byGroups)
  }

  find(requestId: string): FoundRequest[] {
    const found = this.#query(`SELECT ${READ_LIST} FROM gateway.requests WHERE request_id = $1`, [requestId]).map(toRow)
    const known = new Set(found.map(({ startedAt }) => startedAt))
    const onlyHere = this.#local?.find(requestId).filter(({ row }) => !known.has(row.startedAt)) ?? []
    return [...found.map(row => ({ row, running: false })), ...onlyHere].sort((a, b) => a.row.startedAt - b.row.startedAt)
  }

  [Symbol.dispose](): void {
    this.#local?.[Symbol.dispose]()
    this.#database.close()
  }

  #dailySource(filter: Filter, table: 'days' | 'detailed_days'): string {
    if (table === 'days') return dailySource(filter, table, 0)
    const [state] = this.#query(`SELECT ${DETAILED_FROM} AS day`, [])
    return dailySource(filter, table, Number(state?.['day']))
  }

  #query(sql: string, values: readonly string[]): Readonly<Record<string, unknown>>[] {
    return this.#database.query(sql, values, TIMEOUT_MS)
  }
}

/** SQL for the sums of whole days, plus the rows before and after those days. @param first the first day in the table */
function dailySource(filter: Filter, table: 'days' | 'detailed_days', first: number): string {
  const { days, edges } = splitByDay(filter, first)
  const names = table === 'days' ? 'key, model, upstream' : 'key, model, upstream, "group", protocol, status'
  const ofEdges = edges.map(({ since, until }) => `
    UNION ALL SELECT ${names.replace('status', 'status::text')}, started_at / ${DAY_MS} AS day, ${ROW_FIGURE_LIST}
      FROM gateway.requests WHERE started_at >= ${since} ${until === Infinity ? '' : `AND started_at < ${until}`}`)
  return `SELECT ${names}, day, ${FIGURE_LIST} FROM gateway.${table}
    WHERE day >= ${days.from} ${days.until === Infinity ? '' : `AND day < ${days.until}`} ${ofEdges.join('')}`
}

function rowSource({ since = 0, until }: Filter): string {
  return `SELECT key, model, upstream, "group", protocol, status, "user", tags, started_at, ${ROW_FIGURE_LIST}
    FROM gateway.requests WHERE started_at >= ${since} ${until === undefined ? '' : `AND started_at < ${until}`}`
}

function rowCondition(filter: Filter): Condition {
  const { since, until } = filter
  const { sql, values } = nameCondition(filter)
  const bounds = [...since === undefined ? [] : [`started_at >= ${since}`], ...until === undefined ? [] : [`started_at < ${until}`]]
  return { sql: [...bounds, sql].join(' AND '), values }
}

function nameCondition(filter: Filter): Condition {
  const values: string[] = []
  const sql = ['TRUE']
  for (const column of NAME_COLUMNS) {
    const name = filter[column]
    if (name === undefined) continue
    values.push(name.includes('*') ? likePattern(name) : name)
    sql.push(`"${column}" ${name.includes('*') ? 'LIKE' : '='} $${values.length}`)
  }
  for (const [name, value] of Object.entries(filter.tags ?? {})) {
    values.push(value.includes('*') ? likePattern(JSON.stringify(value)) : storedTag(name, value))
    sql.push(value.includes('*') ? `${postgresTag(name)} LIKE $${values.length}` : `strpos(tags, $${values.length}) > 0`)
  }
  return { sql: sql.join(' AND '), values }
}

function likePattern(glob: string): string {
  return glob.replace(/[\\%_]/g, String.raw`\$&`).replaceAll('*', '%')
}

/** @param stored row in which whole numbers are bigint */
function toRow(stored: Readonly<Record<string, unknown>>): LedgerRow {
  return decode(withoutBigInts(stored as StoredRow))
}

/** @returns why the ledger in PostgreSQL cannot be read; null = the error has another cause */
export function clusterFailure(error: unknown): string | null {
  if (!(error instanceof DatabaseError)) return null
  /** undefined_table, invalid_schema_name */
  return error.sqlState === '42P01' || error.sqlState === '3F000' ? 'no gateway has made the schema yet' : error.message
}
