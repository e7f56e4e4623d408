import { DatabaseSync } from 'node:sqlite'
import type { SQLInputValue } from 'node:sqlite'
import { fileIdentity } from '../../base/files/file-exists.ts'
import { openReader } from '../../ledger/read/file-reader.ts'
import type { LedgerReader } from '../../ledger/read/ledger-reader.ts'
import { DETAILED_FROM } from '../../ledger/sums/rollups.ts'
import { allRows } from '../../ledger/stored-values.ts'
import type { StoredRow } from '../../ledger/stored-values.ts'
import { SQLITE } from './dialect.ts'
import type { Dialect } from './dialect.ts'

export type { StoredRow }

/** A piece of SQL with the values of its question marks. */
export interface Sql {
  readonly sql: string
  readonly values: readonly SQLInputValue[]
}

/** The ledger at one moment, as a report reads it. */
export interface View {
  /** ms since 1970. */
  readonly now: number
  /** The last row that is in the sums. */
  readonly summedTo: number
  /** How many rows, at most, are not. */
  readonly unsummed: number
  /** Days since 1970: from this one on there are sums by group, protocol and status. */
  readonly detailedFrom: number
  readonly reader: LedgerReader
  readonly dialect: Dialect
  /** Begins the cursors of a ledger: positions in one mean nothing in another. */
  readonly positions: 'c' | ''
  /** Whole numbers come as bigint. */
  all(query: Sql): StoredRow[]
  /** Whole numbers come as number, for columns that hold none too large. */
  rows(query: Sql): StoredRow[]
  /** Whether a request of that key and time may be still in progress, or not yet settled after a crash. */
  mayChange(key: string, from: number, to: number): boolean
}

/** The ledger of one gateway, or of all, that is open for reports. */
export interface OpenView {
  /** What is read inside is of one moment. */
  read<T>(now: number, work: (view: View) => T): T
  /** Whether its path still leads to it. */
  isCurrent(): boolean
  close(): void
}

const SUMMED_STATE: Sql = {
  sql: `SELECT up_to AS summed, (SELECT coalesce(max(id), 0) FROM requests) AS last, ${DETAILED_FROM} AS detailed_from FROM summed`,
  values: [],
}
const BUSY_TIMEOUT = 2000
/** KiB: the sums of a day of many keys. */
const CACHE_KIB = 16_384

/**
 * @param file path of the ledger
 * @throws as openReader
 */
export function openView(file: string): OpenView {
  const reader = openReader(file)
  const identity = fileIdentity(file)
  const db = new DatabaseSync(file, { readOnly: true, timeout: BUSY_TIMEOUT })
  db.exec(`PRAGMA cache_size = -${CACHE_KIB}`)
  return {
    read: (now, work) => {
      db.exec('BEGIN')
      try {
        const [state] = all(db, SUMMED_STATE, false)
        const summedTo = Number(state?.['summed'] ?? 0)
        return work({
          now,
          summedTo,
          unsummed: Number(state?.['last']) - summedTo,
          detailedFrom: Number(state?.['detailed_from'] ?? Infinity),
          reader,
          dialect: SQLITE,
          positions: '',
          all: query => all(db, query, true),
          rows: ({ sql, values }) => allRows(db.prepare(sql), ...values),
          mayChange: (key, from, to) => all(db, {
            sql: 'SELECT 1 FROM in_flight WHERE key = ? AND started_at >= ? AND started_at < ? LIMIT 1', values: [key, from, to],
          }, false).length > 0,
        })
      } finally {
        db.exec('COMMIT')
      }
    },
    isCurrent: () => fileIdentity(file) === identity,
    close: () => {
      reader[Symbol.dispose]()
      db.close()
    },
  }
}

function all(db: DatabaseSync, { sql, values }: Sql, asBigInts: boolean): StoredRow[] {
  const statement = db.prepare(sql)
  statement.setReadBigInts(asBigInts)
  return statement.all(...values)
}
