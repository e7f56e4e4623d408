import { DatabaseSync } from 'node:sqlite'
import { fileExists } from '../../base/files/file-exists.ts'
import { Database } from '../postgres/database.ts'
import { migrate } from '../postgres/migrate.ts'
import { ClusterLedger } from './cluster-ledger.ts'
import { StoreError } from '../../base/files/store-error.ts'
import { ledgerSchema } from '../../ledger/file/ledger-schema.ts'
import { Outbox } from './outbox.ts'

export interface CopyOptions {
  /** A SQLite ledger, to which a gateway may be writing. */
  readonly file: string
  readonly url: string
  /** The gateway's name that the ledger shows for the rows of this file. */
  readonly instance: string
  /** Called after each batch with the number of rows so far. */
  readonly onProgress: (rows: number) => void
}

export interface CopyResult {
  /** Number of sent rows, including rows that PostgreSQL had already. */
  readonly rows: number
  /** Request ids of rows that PostgreSQL refused. */
  readonly refused: readonly string[]
  /** Number of days that are not copied, because only their sums are left and their rows are older than `keep`. */
  readonly daysWithoutRows: number
}

/**
 * Copies rows to the ledger of all gateways. An interrupted copy can run again: it continues, and existing rows have no effect.
 * @throws {StoreError} if the file is not a ledger; {DatabaseError}; an error of node:sqlite
 */
export async function copyLedger({ file, url, instance, onProgress }: CopyOptions): Promise<CopyResult> {
  const daysWithoutRows = prepareFile(file)
  const outbox = Outbox.open(file)
  if (outbox === null) throw new StoreError('missing', 'there is no such file')
  const database = new Database({ url, name: 'gateway ledger copy' })
  try {
    await migrate(database)
    const ledger = new ClusterLedger(database)
    const journal = await ledger.register(outbox.journalId, instance)
    const refused: string[] = []
    let rows = 0
    let position = await ledger.copiedTo(journal)
    for (let batch = outbox.after(position); batch.length > 0; batch = outbox.after(position)) {
      const rejected = await ledger.insert(journal, batch.map(({ row }) => row))
      refused.push(...rejected.map(({ request_id: id }) => String(id)))
      position = batch.at(-1)?.id ?? position
      await ledger.markCopied(journal, position)
      rows += batch.length - rejected.length
      onProgress(rows)
    }
    return { rows, refused, daysWithoutRows }
  } finally {
    outbox.close()
    database.close()
  }
}

/** Migrates a file of an older version. @returns the number of days without rows */
function prepareFile(file: string): number {
  if (!fileExists(file)) throw new StoreError('missing', 'there is no such file')
  const db = new DatabaseSync(file, { timeout: BUSY_TIMEOUT_MS })
  try {
    ledgerSchema().migrate(db)
    const found = db.prepare(`SELECT count(DISTINCT day) AS days FROM days
      WHERE day < (SELECT coalesce(min(started_at) / 86400000, 1000000000) FROM requests)
        AND (SELECT shipped_to FROM journal) = 0`).get()
    return Number(found?.['days'])
  } finally {
    db.close()
  }
}

const BUSY_TIMEOUT_MS = 5_000
