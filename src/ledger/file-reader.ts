import type { DatabaseSync, SQLInputValue, SQLOutputValue } from 'node:sqlite'
import { fileExists } from '../base/file-exists.ts'
import { decode, READ_LIST } from './columns.ts'
import { isAlive } from './instance.ts'
import { LedgerError } from './ledger-failure.ts'
import type { Filter, FoundRequest, LedgerReader } from './ledger-reader.ts'
import { ledgerSchema } from './ledger-schema.ts'
import { openReadOnly } from './read-only.ts'
import type { LedgerRow } from './row.ts'
import { add, byGroups } from './usage-sum.ts'
import type { RowGroup, UsageSum } from './usage-sum.ts'

function isReachable(file: string): boolean {
  try {
    return fileExists(file)
  } catch (error) {
    throw new LedgerError('unwritable', (error as Error).message)
  }
}

/**
 * Opens a ledger for reading.
 * @param file path
 * @throws {LedgerError} `missing`, `foreign`, `newer`, `unwritable`; else node:sqlite's error
 */
export function openReader(file: string): LedgerReader {
  if (!isReachable(file)) {
    throw new LedgerError('missing', 'there is no such file; the gateway makes it when it starts')
  }
  const db = openReadOnly(file)
  try {
    const schema = ledgerSchema()
    if (schema.versionOf(db) < schema.latest) {
      throw new LedgerError('missing', 'the file is empty or of an older version: ' +
        'the gateway brings it up to date when it starts')
    }
    return new FileLedgerReader(file, db)
  } catch (error) {
    db.close()
    throw error
  }
}

const PAGE = 1000
/** What rows can be filtered by. */
const NAME_COLUMNS = ['key', 'model', 'upstream'] as const
const TIME_FORMATS = { day: '%Y-%m-%d', hour: '%Y-%m-%dT%H:00Z', minute: '%Y-%m-%dT%H:%MZ' } as const

function groupExpression(by: RowGroup): string {
  switch (by) {
    case 'day': case 'hour': case 'minute':
      return `strftime('${TIME_FORMATS[by]}', started_at / 1000, 'unixepoch')`
    case 'status':
      return 'CAST(status AS TEXT)'
    default:
      return `"${by}"`
  }
}

const SUMMED = {
  inputTokens: 'input_tokens',
  cachedInputTokens: 'cached_input_tokens',
  cacheWriteTokens: 'coalesce(cache_write_5m_tokens, 0) + coalesce(cache_write_1h_tokens, 0)',
  outputTokens: 'output_tokens',
  reasoningTokens: 'reasoning_tokens',
  costPico: 'cost_pico_usd',
} as const
/** In two parts: a sum of 64-bit integers can overflow. */
const SUMS = Object.entries(SUMMED).map(([name, column]) =>
  `sum((${column}) / 1000000) AS ${name}High, sum((${column}) % 1000000) AS ${name}Low`).join(', ')

type StoredRow = Readonly<Record<string, SQLOutputValue>>

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
      const stored: StoredRow[] = page.all(...last, ...values)
      const end = stored.at(-1)
      last = stored.length < PAGE || end === undefined ? null : [Number(end['started_at']), Number(end['id'])]
      const found = stored.map(decode)
      // A starting gateway may have entered some meanwhile.
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
      const ended = this.#db.prepare(`SELECT ${READ_LIST} FROM requests
        WHERE ${sql} ORDER BY started_at DESC, id DESC LIMIT ?`).all(...values, count).map(decode)
      return [...ended.toReversed(), ...this.#orphans(filter).values()].sort(byStart).slice(-count)
    })
  }

  sums(filter: Filter, by: readonly RowGroup[]): UsageSum[] {
    const { sql, values } = condition(filter)
    const groups = by.map((each, n) => `${groupExpression(each)} AS group${n}, `).join('')
    const grouping = by.length === 0 ? '' : `GROUP BY ${by.map((_, n) => n + 1).join(', ')}`
    const select = (table: string, where: string) => this.#db.prepare(`
      SELECT ${groups}count(*) AS requests, count(*) - count(cost_pico_usd) AS unpriced, ${SUMS}
      FROM ${table} WHERE ${where} ${grouping} HAVING count(*) > 0`)
    const found = this.#snapshot(() => {
      const dead = this.#deadInstances()
      const ended = select('requests', sql)
      const orphans = select('in_flight', `${sql} AND instance IN (${dead.map(() => '?').join(', ')})`)
      for (const statement of [ended, orphans]) statement.setReadBigInts(true)
      return [...ended.all(...values), ...orphans.all(...values, ...dead)].map(stored => toSum(stored, by.length))
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
      const ended = this.#db.prepare(`SELECT ${READ_LIST} FROM requests WHERE request_id = ?`).all(requestId)
      const drafts = this.#db.prepare(`SELECT instance, ${READ_LIST} FROM in_flight WHERE request_id = ?`)
        .all(requestId)
      return [
        ...ended.map(stored => ({ row: decode(stored), running: false })),
        ...drafts.map(stored => ({ row: decode(stored), running: !this.#isDead(stored['instance']) })),
      ].sort((a, b) => byStart(a.row, b.row))
    })
  }

  [Symbol.dispose](): void {
    this.#db.close()
  }

  /** What processes that died had in flight, and no gateway has entered yet. */
  #orphans(filter: Filter): Map<string, LedgerRow> {
    const dead = this.#deadInstances()
    if (dead.length === 0) return new Map()
    const { sql, values } = condition(filter)
    const drafts = this.#db.prepare(`SELECT ${READ_LIST} FROM in_flight
      WHERE ${sql} AND instance IN (${dead.map(() => '?').join(', ')})`).all(...values, ...dead)
    return new Map(drafts.map(stored => {
      const row = decode(stored)
      return [identity(row), row]
    }))
  }

  #deadInstances(): string[] {
    return this.#db.prepare('SELECT DISTINCT instance FROM in_flight').all()
      .map(({ instance }) => String(instance))
      .filter(instance => this.#isDead(instance))
  }

  #isDead(instance: unknown): boolean {
    return !isAlive(this.#file, String(instance))
  }

  /** All that is read inside is of one moment. */
  #snapshot<T>(read: () => T): T {
    this.#db.exec('BEGIN')
    try {
      return read()
    } finally {
      this.#db.exec('COMMIT')
    }
  }
}

function condition({ since, until, ...names }: Filter): Condition {
  const sql = ['TRUE']
  const values: SQLInputValue[] = []
  const add = (text: string, value: SQLInputValue) => {
    sql.push(text)
    values.push(value)
  }
  // The index on time has the names too: by it, only the rows that are wanted are read.
  const wanted = NAME_COLUMNS.filter(column => names[column] !== undefined)
  if (since !== undefined || wanted.length > 0) add('started_at >= ?', since ?? 0)
  if (until !== undefined) add('started_at < ?', until)
  for (const column of wanted) {
    const name = names[column] as string
    add(`${column} ${operator(name)} ?`, pattern(name))
  }
  return { sql: sql.join(' AND '), values }
}

function operator(glob: string): string {
  return glob.includes('*') ? 'GLOB' : '='
}

/** SQLite's globs know more than `*`. */
function pattern(glob: string): string {
  return glob.includes('*') ? glob.replace(/[?[]/g, '[$&]') : glob
}

function identity(row: LedgerRow): string {
  return `${row.startedAt} ${row.requestId}`
}

function byStart(a: LedgerRow, b: LedgerRow): number {
  return a.startedAt - b.startedAt
}

function bigintFromParts(stored: StoredRow, name: string): bigint {
  return bigintOf(stored, `${name}High`) * 1_000_000n + bigintOf(stored, `${name}Low`)
}

function bigintOf(stored: StoredRow, name: string): bigint {
  const value = stored[name]
  return typeof value === 'bigint' ? value : 0n
}

function toSum(stored: StoredRow, groups: number): UsageSum {
  return {
    groups: Array.from({ length: groups }, (_, n) => {
      const group = stored[`group${n}`]
      return typeof group === 'string' ? group : null
    }),
    requests: Number(bigintOf(stored, 'requests')),
    inputTokens: bigintFromParts(stored, 'inputTokens'),
    cachedInputTokens: bigintFromParts(stored, 'cachedInputTokens'),
    cacheWriteTokens: bigintFromParts(stored, 'cacheWriteTokens'),
    outputTokens: bigintFromParts(stored, 'outputTokens'),
    reasoningTokens: bigintFromParts(stored, 'reasoningTokens'),
    costPico: stored['costPicoHigh'] === null ? null : bigintFromParts(stored, 'costPico'),
    unpriced: Number(bigintOf(stored, 'unpriced')),
  }
}
