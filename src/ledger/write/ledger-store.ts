import type { StatementSync } from 'node:sqlite'
import { fileIdentity } from '../../base/files/file-exists.ts'
import { transaction } from '../../base/files/sqlite-schema.ts'
import { COLUMN_LIST, COLUMNS, READ_LIST, type RowValues } from '../columns.ts'
import { isAlive, lockInstance, removeStaleLocks } from '../file/instance.ts'
import { StoreError } from '../../base/files/store-error.ts'
import { toLedgerFailure } from '../ledger-failure.ts'
import { openFile, quarantineFile, type LedgerFile } from '../file/ledger-file.ts'
import { Rollups } from '../sums/rollups.ts'
import type { StoredRow } from '../stored-values.ts'

/** The rows that are written in one transaction. */
export interface Batch {
  /** Number of the batch, ascending. */
  readonly seq: number
  /** Checkpoints of running requests: the rows to keep if the process dies now. */
  readonly drafts: readonly RowValues[]
  readonly closed: readonly RowValues[]
  /** For each row of `closed`: true = its request can have a checkpoint in the file. Absent = every request can. */
  readonly hadDraft?: readonly boolean[]
}

/** The rows of a batch that SQLite refuses because of their values. */
interface RejectedRows {
  readonly closed: number
  /** The error of the first row. */
  readonly error: unknown
}

const PLACEHOLDERS = COLUMNS.map(() => '?').join(', ')
/** https://www.sqlite.org/pragma.html#pragma_auto_vacuum */
const INCREMENTAL = 2
/** Maximum pages of 4 KiB that are returned to the system at a time. */
const VACUUM_PAGES = 500
/** Free pages that stay in the file: this share of the file, and at least `MIN_FREE_PAGES`. */
const FREE_SHARE = 1 / 8
const MIN_FREE_PAGES = 256
const RETENTION_BATCH = 500
/** SQL for the id of the last shipped row. That row is not deleted, because the ids of later rows must be larger than any shipped id. */
const LAST_SHIPPED = '(SELECT shipped_to FROM journal)'
const SHIPPED_ONLY = `AND id <= ${LAST_SHIPPED}`
/** Rows in one statement, which takes about 7 % less time for each row than single statements. */
const ROWS_PER_INSERT = 8
const GROUP_PLACEHOLDERS = Array.from({ length: ROWS_PER_INSERT }, () => `(${PLACEHOLDERS})`).join(', ')

/** All calls block. */
export class LedgerStore {
  readonly file: string
  /** The new path of a corrupt file; null = the file was not corrupt. */
  readonly quarantinedAs: string | null
  readonly #instance: string
  readonly #openFile: LedgerFile
  readonly #releaseInstanceLock: () => void
  readonly #insertDraft: StatementSync
  readonly #deleteDraft: StatementSync
  readonly #rollups: Rollups
  readonly #insertRow: StatementSync
  readonly #insertRows: StatementSync
  readonly #replaceRow: StatementSync
  readonly #instances: StatementSync
  readonly #insertInterrupted: StatementSync
  readonly #deleteInstanceDrafts: StatementSync
  readonly #deleteExpired: StatementSync
  readonly #deleteShipped: StatementSync

  /** @param instance unique name @param isShipped true = a row is deleted only after PostgreSQL has it @throws the errors of `openFile` */
  constructor(file: string, instance: string, isShipped = false) {
    this.file = file
    this.#instance = instance
    this.#openFile = openFile(file)
    this.quarantinedAs = this.#openFile.setAside
    const { db } = this.#openFile
    try {
      this.#insertDraft = db.prepare(`INSERT OR REPLACE INTO in_flight (instance, ${COLUMN_LIST}) VALUES (?, ${PLACEHOLDERS})`)
      this.#deleteDraft = db.prepare('DELETE FROM in_flight WHERE request_id = ? AND started_at = ?')
      this.#rollups = new Rollups(db)
      this.#insertRow = db.prepare(`INSERT INTO requests (${COLUMN_LIST}) VALUES (${PLACEHOLDERS})
        ON CONFLICT (request_id, started_at) DO NOTHING`)
      // Use FAIL, because ABORT copies each page for a rollback.
      this.#insertRows = db.prepare(`INSERT OR FAIL INTO requests (${COLUMN_LIST}) VALUES ${GROUP_PLACEHOLDERS}
        ON CONFLICT (request_id, started_at) DO NOTHING`)
      // The row gets a new id, so that readers who follow the ledger by id see it.
      this.#replaceRow = db.prepare(`INSERT OR REPLACE INTO requests (id, ${COLUMN_LIST})
        VALUES ((SELECT max(id) + 1 FROM requests), ${PLACEHOLDERS})`)
      this.#instances = db.prepare('SELECT DISTINCT instance FROM in_flight WHERE instance <> ?')
      this.#insertInterrupted = db.prepare(`INSERT OR IGNORE INTO requests (${COLUMN_LIST})
        SELECT ${COLUMN_LIST} FROM in_flight WHERE instance = ? RETURNING ${READ_LIST}`)
      this.#deleteInstanceDrafts = db.prepare('DELETE FROM in_flight WHERE instance = ?')
      this.#deleteExpired = db.prepare(`DELETE FROM requests WHERE id IN
        (SELECT id FROM requests WHERE started_at < ? ORDER BY started_at LIMIT ${RETENTION_BATCH})
        AND id <= (SELECT up_to FROM summed) AND id <> ${LAST_SHIPPED} ${isShipped ? SHIPPED_ONLY : ''}`)
      this.#deleteShipped = db.prepare(`DELETE FROM requests WHERE id IN
        (SELECT id FROM requests WHERE started_at < ? AND id NOT IN (SELECT id FROM refused) ORDER BY started_at LIMIT ${RETENTION_BATCH})
        AND id <= (SELECT up_to FROM summed) AND id < ${LAST_SHIPPED}`)
      this.#releaseInstanceLock = lockInstance(file, instance)
    } catch (error) {
      db.close()
      throw error
    }
  }

  /** Copies the log into the database as far as readers allow. Waits for the disk. @returns true = everything was copied */
  checkpoint(): boolean {
    const { busy, log, checkpointed } = this.#openFile.db.prepare('PRAGMA wal_checkpoint(PASSIVE)').get() ?? {}
    return busy === 0 && log === checkpointed
  }

  /** Writes all rows except refused rows, or none. @returns refused rows; null = none @throws {StoreError} `moved`; node:sqlite's errors */
  write(batch: Batch): RejectedRows | null {
    if (fileIdentity(this.file) !== this.#openFile.identity) {
      // Copy the log into the moved file first, because its log was not moved with it.
      this.#openFile.db.exec('PRAGMA wal_checkpoint(FULL)')
      throw new StoreError('moved', 'the file was moved or deleted')
    }
    let closed = 0
    let first: unknown = null
    /** Id of the last row; null = a row existed already. */
    let last: number | null = 0
    this.#transaction(() => {
      for (const values of batch.drafts) {
        try {
          this.#insertDraft.run(this.#instance, ...values)
        } catch (error) {
          first ??= rowError(error)
        }
      }
      let group: number | null = null
      for (const [at, values] of batch.closed.entries()) {
        try {
          if (at % ROWS_PER_INSERT === 0) group = this.#insertGroup(batch.closed.slice(at, at + ROWS_PER_INSERT))
          const id = group ?? this.#insertOrReplace(values)
          last = last === null ? null : id
          if (batch.hadDraft?.[at] !== false) this.#deleteDraft.run(values[0] ?? null, values[1] ?? null)
        } catch (error) {
          first ??= rowError(error)
          closed += 1
        }
      }
    })
    if (first === null && last !== null) this.#rollups.rowsWritten(batch.closed, last)
    return first === null ? null : { closed, error: first }
  }

  /** Writes the checkpoints of dead processes as rows of interrupted requests, unless a request has its row already. @returns the rows */
  recover(): StoredRow[] {
    const interrupted: StoredRow[] = []
    for (const { instance } of this.#instances.all(this.#instance)) {
      if (typeof instance !== 'string' || isAlive(this.file, instance)) continue
      for (const row of this.#settleInstance(instance)) interrupted.push(row)
    }
    removeStaleLocks(this.file)
    return interrupted
  }

  /** Adds some rows to the sums. @returns true = there may be more */
  sum(): boolean {
    return this.#rollups.isBehind && this.#transaction(() => this.#rollups.sum())
  }

  /** Deletes some summed rows and some old sums by hour. @param before ms since 1970; null = delete no rows @returns true = maybe more */
  expire(before: number | null, now: number): boolean {
    return this.#transaction(() => {
      const rows = before === null ? 0 : this.#deleteExpired.run(before).changes
      if (rows > 0) this.#rollups.rowsDeleted()
      return this.#rollups.expire(now) || rows === RETENTION_BATCH
    })
  }

  /** Deletes some rows that are summed and that PostgreSQL has. @param before ms since 1970 @returns true = there may be more */
  trim(before: number): boolean {
    return this.#transaction(() => {
      const rows = this.#deleteShipped.run(before).changes
      if (rows > 0) this.#rollups.rowsDeleted()
      return rows === RETENTION_BATCH
    })
  }

  /** Returns some free pages to the system, and keeps the rest for new rows. @returns true = there may be more */
  vacuum(): boolean {
    const { db } = this.#openFile
    const read = (name: 'auto_vacuum' | 'freelist_count' | 'page_count') => Number(Object.values(db.prepare(`PRAGMA ${name}`).get() ?? {})[0])
    if (read('auto_vacuum') !== INCREMENTAL) return false
    if (read('freelist_count') <= Math.max(MIN_FREE_PAGES, read('page_count') * FREE_SHARE)) return false
    db.exec(`PRAGMA incremental_vacuum(${VACUUM_PAGES})`)
    return true
  }

  /** Closes the file without settling running requests, for example after an error. */
  abandon(): void {
    this.#releaseInstanceLock()
    this.#openFile.db.close()
  }

  /** Closes and renames a corrupt file. @returns the new path; null = another process has renamed the file already */
  quarantine(): string | null {
    try {
      // Rename the file before closing it, because SQLite does not clean up a file that was moved.
      return quarantineFile(this.file, this.#openFile.identity)
    } finally {
      this.abandon()
    }
  }

  /** Closes the file. Requests that are still running get rows as interrupted. */
  close(): void {
    this.#settleInstance(this.#instance)
    this.abandon()
  }

  /** Replaces a row that exists because a batch is sent again or a process was considered dead. @returns the id; null = replaced */
  #insertOrReplace(values: RowValues): number | null {
    const { changes, lastInsertRowid } = this.#insertRow.run(...values)
    if (changes !== 0) return Number(lastInsertRowid)
    this.#rollups.subtractRow(values[0] ?? null, values[1] ?? null)
    this.#replaceRow.run(...values)
    return null
  }

  /** @returns the id of the last row; null = insert each row alone, because some rows may be stored already */
  #insertGroup(rows: readonly RowValues[]): number | null {
    if (rows.length < ROWS_PER_INSERT) return null
    try {
      const { changes, lastInsertRowid } = this.#insertRows.run(...([] as RowValues).concat(...rows))
      return changes === ROWS_PER_INSERT ? Number(lastInsertRowid) : null
    } catch (error) {
      rowError(error)
      return null
    }
  }

  #settleInstance(instance: string): StoredRow[] {
    return this.#transaction(() => {
      const interrupted = this.#insertInterrupted.all(instance)
      this.#deleteInstanceDrafts.run(instance)
      return interrupted
    })
  }

  #transaction<T>(work: () => T): T {
    return transaction(this.#openFile.db, work)
  }
}

/** @returns the error if the values of the row cause it @throws any other error */
function rowError(error: unknown): unknown {
  if (toLedgerFailure(error).code === 'row') return error
  throw error
}
