import type { BlockingDatabase } from '../postgres/blocking-database.ts'
import { DatabaseError } from '../postgres/database-error.ts'
import { decode, READ_LIST } from './columns.ts'
import type { StoredRow } from './columns.ts'
import { PART_SIZE } from './contributions.ts'
import type { Filter, FoundRequest, LedgerReader } from './ledger-reader.ts'
import type { LedgerRow } from './row.ts'
import { byGroups } from './usage-sum.ts'
import type { RowGroup, UsageSum } from './usage-sum.ts'

const PAGE = 1000
const DAY_MS = 86_400_000
/** ms for a query of `gateway usage`: it may read every row. */
const TIMEOUT_MS = 30_000
/** ms to find out whether PostgreSQL is there. */
const CONNECT_TIMEOUT_MS = 3_000
const NAME_COLUMNS = ['key', 'model', 'upstream'] as const
const TOKENS = ['input', 'cached', 'cache_write', 'output', 'reasoning'] as const
const FIGURES = [...TOKENS, 'cost'].flatMap(name => [`${name}_high`, `${name}_low`])

/** One row of gateway.requests as its own sum, with the names of the tables of sums. */
const ROW_FIGURES = [
  '1 AS requests', 'CASE WHEN cost_pico_usd IS NULL THEN 1 ELSE 0 END AS unpriced',
  ...parts('input', 'input_tokens'), ...parts('cached', 'cached_input_tokens'),
  ...parts('cache_write', 'coalesce(cache_write_5m_tokens, 0) + coalesce(cache_write_1h_tokens, 0)'),
  ...parts('output', 'output_tokens'), ...parts('reasoning', 'reasoning_tokens'), ...parts('cost', 'cost_pico_usd'),
].join(', ')

/** ms since 1970 of a row, as text in UTC. */
const timeText = (format: string) => `to_char(to_timestamp(started_at / 1000) AT TIME ZONE 'UTC', '${format}')`

/** The day since which gateway.detailed_days is complete. */
export const DETAILED_FROM = '(SELECT day FROM gateway.detailed_from)'

/** What sums by day can be grouped by: those of all days, and detailed ones. */
const DAILY_GROUPS: Readonly<Partial<Record<RowGroup, string>>> = {
  key: 'key', model: 'model', upstream: 'upstream', group: '"group"', protocol: 'protocol', status: 'status',
  day: `to_char(to_timestamp(day * 86400::bigint) AT TIME ZONE 'UTC', 'YYYY-MM-DD')`,
}

const DETAILS = ['group', 'protocol', 'status'] as const

const ROW_GROUPS: Readonly<Record<RowGroup, string>> = {
  key: 'key', model: 'model', upstream: 'upstream', group: '"group"', protocol: 'protocol', status: 'status::text',
  day: timeText('YYYY-MM-DD'), hour: timeText('YYYY-MM-DD"T"HH24:00"Z"'), minute: timeText('YYYY-MM-DD"T"HH24:MI"Z"'),
}

interface Condition {
  readonly sql: string
  readonly values: readonly string[]
}

/**
 * Opens the ledger of all gateways in PostgreSQL for reading.
 *
 * @param local this gateway's own file, for requests that run or were not sent yet; null where there is none
 * @throws {DatabaseError} where PostgreSQL does not answer, or no gateway has made the schema yet
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

  /** Whole days are read from their sums, which stay when the rows are deleted, as far as these know what is asked for. */
  sums(filter: Filter, by: readonly RowGroup[]): UsageSum[] {
    const isDaily = by.every(each => each in DAILY_GROUPS)
    const names = nameCondition(filter)
    const groups = by.map((each, n) => `${(isDaily ? DAILY_GROUPS : ROW_GROUPS)[each]} AS group${n}, `).join('')
    const grouping = by.length === 0 ? '()' : by.map((_, n) => n + 1).join(', ')
    const found = this.#query(`SELECT ${groups}
        ${['requests', 'unpriced', ...FIGURES].map(name => `sum(${name}) AS ${name}`).join(', ')}
      FROM (${isDaily ? this.#dailySource(filter, by) : rowSource(filter)}) AS counted
      WHERE ${names.sql} GROUP BY ${grouping} HAVING sum(requests) > 0`, names.values)
    return found.map(stored => toSum(stored, by.length)).sort(byGroups)
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

  #dailySource(filter: Filter, by: readonly RowGroup[]): string {
    if (!DETAILS.some(name => by.includes(name))) return dailySource(filter, 'days', 0)
    const [state] = this.#query(`SELECT ${DETAILED_FROM} AS day`, [])
    return dailySource(filter, 'detailed_days', Number(state?.['day']))
  }

  #query(sql: string, values: readonly string[]): Readonly<Record<string, unknown>>[] {
    return this.#database.query(sql, values, TIMEOUT_MS)
  }
}

/**
 * Sums of whole days, and of the rows before and after them.
 * @param first the first day that the table has
 */
function dailySource({ since = 0, until = Infinity }: Filter, table: 'days' | 'detailed_days', first: number): string {
  const firstDay = Math.max(Math.ceil(since / DAY_MS), first)
  const endDay = Math.max(firstDay, Math.floor(until / DAY_MS))
  const names = table === 'days' ? 'key, model, upstream' : 'key, model, upstream, "group", protocol, status'
  const edges = [[since, Math.min(until, firstDay * DAY_MS)], [Math.max(since, endDay * DAY_MS), until]] as const
  const ofEdges = edges.filter(([from, to]) => from < to).map(([from, to]) => `
    UNION ALL SELECT ${names.replace('status', 'status::text')}, started_at / ${DAY_MS} AS day, ${ROW_FIGURES}
      FROM gateway.requests WHERE started_at >= ${from} AND started_at < ${to}`)
  return `SELECT ${names}, day, requests, unpriced, ${FIGURES.join(', ')} FROM gateway.${table}
    WHERE day >= ${firstDay} ${endDay === Infinity ? '' : `AND day < ${endDay}`} ${ofEdges.join('')}`
}

function rowSource({ since = 0, until }: Filter): string {
  return `SELECT key, model, upstream, "group", protocol, status, started_at, ${ROW_FIGURES}
    FROM gateway.requests WHERE started_at >= ${since} ${until === undefined ? '' : `AND started_at < ${until}`}`
}

function rowCondition(filter: Filter): Condition {
  const { since, until } = filter
  const { sql, values } = nameCondition(filter)
  const bounds = [
    ...since === undefined ? [] : [`started_at >= ${since}`],
    ...until === undefined ? [] : [`started_at < ${until}`],
  ]
  return { sql: [...bounds, sql].join(' AND '), values }
}

function nameCondition(filter: Filter): Condition {
  const values: string[] = []
  const sql = NAME_COLUMNS.flatMap(column => {
    const name = filter[column]
    if (name === undefined) return []
    values.push(name.includes('*') ? name.replace(/[\\%_]/g, String.raw`\$&`).replaceAll('*', '%') : name)
    return `${column} ${name.includes('*') ? 'LIKE' : '='} $${values.length}`
  })
  return { sql: ['TRUE', ...sql].join(' AND '), values }
}

function parts(name: string, value: string): string[] {
  return [`coalesce((${value}) / ${PART_SIZE}, 0) AS ${name}_high`, `coalesce((${value}) % ${PART_SIZE}, 0) AS ${name}_low`]
}

/** @param stored whole numbers are bigint */
function toRow(stored: Readonly<Record<string, unknown>>): LedgerRow {
  return decode(Object.fromEntries(Object.entries(stored).map(([name, value]) =>
    [name, typeof value === 'bigint' ? Number(value) : value])) as StoredRow)
}

function toSum(stored: Readonly<Record<string, unknown>>, groups: number): UsageSum {
  const whole = (name: string) => BigInt(String(stored[name] ?? 0))
  const exact = (name: string) => whole(`${name}_high`) * BigInt(PART_SIZE) + whole(`${name}_low`)
  return {
    groups: Array.from({ length: groups }, (_, n) => (stored[`group${n}`] ?? null) as string | null),
    requests: Number(whole('requests')),
    inputTokens: exact('input'),
    cachedInputTokens: exact('cached'),
    cacheWriteTokens: exact('cache_write'),
    outputTokens: exact('output'),
    reasoningTokens: exact('reasoning'),
    costPico: whole('requests') === whole('unpriced') ? null : exact('cost'),
    unpriced: Number(whole('unpriced')),
  }
}

/** Why the ledger in PostgreSQL cannot be read; null for an error that is not about that. */
export function clusterFailure(error: unknown): string | null {
  if (!(error instanceof DatabaseError)) return null
  /** undefined_table, invalid_schema_name */
  return error.sqlState === '42P01' || error.sqlState === '3F000' ? 'no gateway has made the schema yet' : error.message
}
