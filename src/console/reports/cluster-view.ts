import { clusterFailure, DETAILED_FROM, openClusterReader } from '../../cluster/ledger/cluster-reader.ts'
import type { LedgerReader } from '../../ledger/read/ledger-reader.ts'
import { withoutBigInts } from '../../ledger/stored-values.ts'
import { BlockingDatabase } from '../../cluster/postgres/blocking-database.ts'
import { DatabaseError } from '../../cluster/postgres/database-error.ts'
import { POSTGRES } from './dialect.ts'
import { DAY } from './period.ts'
import type { Sql, StoredRow, View } from './view.ts'

/** The database of all gateways. `instance` is the name of this gateway. */
export interface ClusterSource {
  /** URL of the form postgres://user:password@host/database. */
  readonly url: string
  readonly instance: string
}

/** Maximum ms of a query. */
const TIMEOUT_MS = 5_000
/** ms after a failure in which reports use only the file of this gateway, without trying PostgreSQL. */
const RETRY_MS = 5_000

/** Reads the ledger that all gateways share. */
export class ClusterView {
  readonly #database: BlockingDatabase
  #retryAt = 0
  #failure: string | null = null

  constructor({ url, instance }: ClusterSource) {
    this.#database = new BlockingDatabase({ url, name: `gateway reports ${instance}` })
  }

  /** Why the last report includes only this gateway; null = it includes all gateways. */
  get failure(): string | null {
    return this.#failure
  }

  /**
   * Runs `work` in one transaction, so that all its queries see the same state.
   *
   * @param now ms since 1970
   * @param local the file of this gateway; null = unreadable
   * @returns null = PostgreSQL is unreachable
   */
  read<T>(now: number, local: View | null, work: (view: View) => T): { readonly value: T } | null {
    if (performance.now() < this.#retryAt) return null
    try {
      const value = this.#read(now, local, work)
      this.#failure = null
      return { value }
    } catch (error) {
      this.#failure = clusterFailure(error)
      if (this.#failure === null) throw error
      this.#database.close()
      this.#retryAt = performance.now() + RETRY_MS
      return null
    }
  }

  close(): void {
    this.#database.close()
  }

  #read<T>(now: number, local: View | null, work: (view: View) => T): T {
    this.#query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL search_path = gateway, pg_catalog')
    let value: T
    try {
      value = work(this.#viewAt(now, local))
    } catch (error) {
      // If the connection is lost, the transaction has already ended.
      if (!(error instanceof DatabaseError)) this.#query('COMMIT')
      throw error
    }
    this.#query('COMMIT')
    return value
  }

  #viewAt(now: number, local: View | null): View {
    const [state] = this.#all({ sql: `SELECT coalesce(max(id), 0) AS last, ${DETAILED_FROM} AS detailed_from FROM requests`, values: [] })
    const database = this.#database
    let reader: LedgerReader | null = null
    return {
      now,
      summedTo: Number(state?.['last']),
      // No row is missing in the sums: triggers update them in the transaction that adds the rows.
      unsummed: 0,
      detailedFrom: Number(state?.['detailed_from']),
      get reader() {
        return reader ??= openClusterReader(database, local?.reader ?? null)
      },
      dialect: POSTGRES,
      positions: 'c',
      all: query => this.#all(query),
      rows: query => this.#all(query).map(withoutBigInts),
      // Rows of the last day may still arrive from other gateways.
      mayChange: (key, from, to) => to > now - DAY || local?.mayChange(key, from, to) === true,
    }
  }

  #all({ sql, values }: Sql): StoredRow[] {
    const texts: unknown[] = []
    let at = 0
    // Write numbers into the SQL. PostgreSQL would infer the type of a parameter from the column beside it, and refuse fractions.
    const text = sql.replaceAll('?', () => {
      const value = values[at++]
      if (typeof value === 'number' || typeof value === 'bigint') return String(value)
      texts.push(value)
      return `$${texts.length}`
    })
    return this.#query(text, texts)
  }

  #query(sql: string, values: readonly unknown[] = []): StoredRow[] {
    return this.#database.query(sql, values, TIMEOUT_MS) as StoredRow[]
  }
}
