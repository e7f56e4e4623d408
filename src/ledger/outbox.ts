import { DatabaseSync } from 'node:sqlite'
import type { StatementSync } from 'node:sqlite'
import { fileIdentity } from '../base/file-exists.ts'
import { READ_LIST } from './columns.ts'
import { ledgerSchema } from './ledger-schema.ts'
import type { StoredRow } from './stored-values.ts'

/** A row of the journal that is on its way to the cluster's ledger. */
export interface OutboxRow {
  readonly id: number
  readonly row: StoredRow
}

const BUSY_TIMEOUT_MS = 2000
const MAX_BATCH_ROWS = 1000
/** Characters of JSON, so that a batch of unusually long rows is not held in memory as a whole. */
const MAX_BATCH_LENGTH = 4_000_000

/** The rows of a SQLite ledger that are still to be sent to PostgreSQL. All calls block. */
export class Outbox {
  /** Names the journal for ever, also when its file is moved. */
  readonly journalId: string
  readonly #file: string
  readonly #identity: string | null
  readonly #db: DatabaseSync
  readonly #rows: StatementSync
  readonly #counts: StatementSync
  readonly #mark: StatementSync
  readonly #markRefused: StatementSync

  private constructor(file: string, db: DatabaseSync) {
    this.#file = file
    this.#identity = fileIdentity(file)
    this.#db = db
    this.journalId = String(db.prepare('SELECT id FROM journal').get()?.['id'])
    this.#rows = db.prepare(`SELECT id, ${READ_LIST} FROM requests
      WHERE id > ? ORDER BY id LIMIT ${MAX_BATCH_ROWS}`)
    this.#counts = db.prepare(
      'SELECT coalesce(max(id), 0) AS last, (SELECT shipped_to FROM journal) AS shipped FROM requests')
    this.#mark = db.prepare('UPDATE journal SET shipped_to = ?')
    this.#markRefused = db.prepare('INSERT OR IGNORE INTO refused VALUES (?)')
  }

  /**
   * @returns null where the gateway has not made the file yet, or not brought it up to date
   * @throws node:sqlite's error
   */
  static open(file: string): Outbox | null {
    if (fileIdentity(file) === null) return null
    const db = new DatabaseSync(file, { timeout: BUSY_TIMEOUT_MS })
    try {
      const schema = ledgerSchema()
      if (schema.versionOf(db) === schema.latest) return new Outbox(file, db)
      db.close()
      return null
    } catch (error) {
      if (db.isOpen) db.close()
      throw error
    }
  }

  /** Whether the path still leads to the open file. */
  isCurrent(): boolean {
    return fileIdentity(this.#file) === this.#identity
  }

  /** How many rows wait. */
  get size(): number {
    const { last, shipped } = this.#counts.get() ?? {}
    return Math.max(0, Number(last) - Number(shipped))
  }

  /** The rows that wait longest, in their order. */
  next(): OutboxRow[] {
    return this.after(Number(this.#counts.get()?.['shipped']))
  }

  /** The first rows after that one, in their order, wherever they have been sent. */
  after(position: number): OutboxRow[] {
    const batch: OutboxRow[] = []
    let length = 0
    for (const { id, ...row } of this.#rows.iterate(position)) {
      batch.push({ id: Number(id), row })
      length += String(row['attempts']).length + String(row['price']).length
      if (length > MAX_BATCH_LENGTH) break
    }
    return batch
  }

  /** Everything up to this row is in PostgreSQL. */
  markShipped(id: number): void {
    this.#mark.run(id)
  }

  /** This row is not in PostgreSQL, and never will be. To be called before it is marked as shipped. */
  markRefused(id: number): void {
    this.#markRefused.run(id)
  }

  close(): void {
    this.#db.close()
  }
}
