import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import { fileIdentity } from '../../base/files/file-exists.ts'
import { openReader } from '../../ledger/read/file-reader.ts'
import type { LedgerReader } from '../../ledger/read/ledger-reader.ts'
import { DETAILED_FROM } from '../../ledger/sums/rollups.ts'
import { allRows, type StoredRow } from '../../ledger/stored-values.ts'
import { SQLITE, type Dialect } from './dialect.ts'

export type { StoredRow }

/** `values` are for the question marks. */
export interface Sql {
  readonly sql: string
  readonly values: readonly SQLInputValue[]
}

/** The ledger at one moment. */
export interface View {
  /** ms since 1970. */
  readonly now: number
  /** Id of the last row that is in the sums. */
  readonly summedTo: number
  /** Upper bound of the rows that are not in the sums. */
  readonly unsummed: number
  /** Days since 1970: from then on, there are sums by group, protocol and status. */
  readonly detailedFrom: number
  readonly reader: LedgerReader
  readonly dialect: Dialect
  /** Prefix of cursors: a position in one ledger means nothing in another. */
  readonly positions: 'c' | ''
  /** Returns whole numbers as bigint. */
  all(query: Sql): StoredRow[]
  /** Returns whole numbers as number, for columns without large ones. */
  rows(query: Sql): StoredRow[]
  /** Whether a request of the key and time may still run, or be unsettled after a crash. */
  mayChange(key: string, from: number, to: number): boolean
}

/** Of one gateway, or of all gateways. */
export interface OpenView {
  /** All queries of `work` see the same moment. */
  read<T>(now: number, work: (view: View) => T): T
  /** Whether the path still leads to this file. */
  isCurrent(): boolean
  close(): void
}

const SUMMED_STATE: Sql = {
  sql: `SELECT up_to AS summed, (SELECT coalesce(max(id), 0) FROM requests) AS last, ${DETAILED_FROM} AS detailed_from FROM summed`,
  values: [],
}
const BUSY_TIMEOUT = 2000
/** KiB for the sums of a day with many keys. */
const CACHE_KIB = 16_384

/** @param file path of the ledger @throws as openReader */
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
