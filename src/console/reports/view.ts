import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import { fileIdentity } from '../../base/files/file-exists.ts'
import { openReader } from '../../ledger/read/file-reader.ts'
import type { LedgerReader } from '../../ledger/read/ledger-reader.ts'
import { DETAILED_FROM } from '../../ledger/sums/rollups.ts'
import { allRows, type StoredRow } from '../../ledger/stored-values.ts'
import { SQLITE, type Dialect } from './dialect.ts'

export type { StoredRow }

/** A query. `values` replace the question marks, in order. */
export interface Sql {
  readonly sql: string
  readonly values: readonly SQLInputValue[]
}

/** The ledger in one state. */
export interface View {
  /** Time of the report, in ms since 1970. */
  readonly now: number
  /** The id of the last row that is included in the sums. */
  readonly summedTo: number
  /** The maximum number of rows that are not included in the sums. */
  readonly unsummed: number
  /** The first day (a number of days since 1970) with sums by group, protocol and status. */
  readonly detailedFrom: number
  readonly reader: LedgerReader
  readonly dialect: Dialect
  /** Prefix of cursors: a position in one ledger is invalid in another ledger. */
  readonly positions: 'c' | ''
  /** Runs a query. Whole numbers in the result are bigints. */
  all(query: Sql): StoredRow[]
  /** Runs a query. Whole numbers in the result are numbers, so the columns must not contain large numbers. */
  rows(query: Sql): StoredRow[]
  /** Tells whether a request of the key in this period may still run, or may be unsettled after a crash. */
  mayChange(key: string, from: number, to: number): boolean
}

/** The open ledger of one gateway, or of all gateways. */
export interface OpenView {
  /** Runs `work`. All its queries see the same state. */
  read<T>(now: number, work: (view: View) => T): T
  /** Tells whether the path still leads to this file. */
  isCurrent(): boolean
  close(): void
}

const SUMMED_STATE: Sql = {
  sql: `SELECT up_to AS summed, (SELECT coalesce(max(id), 0) FROM requests) AS last, ${DETAILED_FROM} AS detailed_from FROM summed`,
  values: [],
}
const BUSY_TIMEOUT = 2000
/** KiB of cache, enough for the sums of a day with many keys. */
const CACHE_KIB = 16_384

/** @param file path of the ledger @throws the errors of `openReader` */
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
          now, summedTo, unsummed: Number(state?.['last']) - summedTo,
          detailedFrom: Number(state?.['detailed_from'] ?? Infinity),
          reader, dialect: SQLITE, positions: '',
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
