import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { fileIdentity } from '../../base/files/file-exists.ts'
import { READ_LIST } from '../../ledger/columns.ts'
import { ledgerSchema } from '../../ledger/file/ledger-schema.ts'
import type { StoredRow } from '../../ledger/stored-values.ts'

export type OutboxRow = { readonly id: number; readonly row: StoredRow }

const BUSY_TIMEOUT_MS = 2000
const MAX_BATCH_ROWS = 1000
/** Maximum characters of JSON in a batch. Limits the memory if rows are unusually long. */
const MAX_BATCH_LENGTH = 4_000_000

/** The rows of a SQLite ledger that were not sent to PostgreSQL yet. All calls block. */
export class Outbox {
  /** The journal's id. It does not change when the file is moved. */
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
    this.#rows = db.prepare(`SELECT id, ${READ_LIST} FROM requests WHERE id > ? ORDER BY id LIMIT ${MAX_BATCH_ROWS}`)
    this.#counts = db.prepare('SELECT coalesce(max(id), 0) AS last, (SELECT shipped_to FROM journal) AS shipped FROM requests')
    this.#mark = db.prepare('UPDATE journal SET shipped_to = ?')
    this.#markRefused = db.prepare('INSERT OR IGNORE INTO refused VALUES (?)')
  }

  /** @returns null = the gateway has not created or migrated the file yet @throws an error of node:sqlite */
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

  /** @returns true = the open file is still at its path */
  isCurrent(): boolean {
    return fileIdentity(this.#file) === this.#identity
  }

  get size(): number {
    const { last, shipped } = this.#counts.get() ?? {}
    return Math.max(0, Number(last) - Number(shipped))
  }

  /** @returns the oldest unsent rows, in order */
  next(): OutboxRow[] {
    return this.after(Number(this.#counts.get()?.['shipped']))
  }

  /** @returns the first rows after a position, in order, including sent rows */
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

  /** Call this when PostgreSQL has all rows up to this id. */
  markShipped(id: number): void {
    this.#mark.run(id)
  }

  /** Call this for a row that PostgreSQL has refused, before `markShipped`. */
  markRefused(id: number): void {
    this.#markRefused.run(id)
  }

  close(): void {
    this.#db.close()
  }
}
