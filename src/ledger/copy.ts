import { DatabaseSync } from 'node:sqlite'
import { fileExists } from '../base/file-exists.ts'
import { Database } from '../postgres/database.ts'
import { migrate } from '../postgres/migrate.ts'
import { MIGRATIONS } from '../postgres/migrations.ts'
import { ClusterLedger } from './cluster-ledger.ts'
import { LedgerError } from './ledger-failure.ts'
import { ledgerSchema } from './ledger-schema.ts'
import { Outbox } from './outbox.ts'

export interface CopyOptions {
  /** Path of a SQLite ledger. A gateway may be writing to it. */
  readonly file: string
  /** postgres://user:password@host/database */
  readonly url: string
  /** The name under which the gateway that wrote the file is shown. */
  readonly instance: string
  /** Called after each batch. @param rows copied by this call so far */
  readonly onProgress: (rows: number) => void
}

export interface CopyResult {
  /** Rows that were sent; those that were there already are among them. */
  readonly rows: number
  /** Ids of requests whose rows PostgreSQL does not take. */
  readonly refused: readonly string[]
  /** Days of which the file has sums only, because the rows are older than `keep`: they are not copied. */
  readonly daysWithoutRows: number
}

/**
 * Copies the rows of a ledger to the ledger of all gateways. A row that is there changes nothing, so that a copy can be
 * interrupted and run again: it continues where it was.
 *
 * @throws {LedgerError} where the file is no ledger; {DatabaseError}; else what node:sqlite throws
 */
export async function copyLedger({ file, url, instance, onProgress }: CopyOptions): Promise<CopyResult> {
  const daysWithoutRows = prepareFile(file)
  const outbox = Outbox.open(file)
  if (outbox === null) throw new LedgerError('missing', 'there is no such file')
  const database = new Database({ url, name: 'gateway ledger copy' })
  try {
    await migrate(database, MIGRATIONS)
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

/** Brings a file of an older version up to date. @returns of how many days there are sums, and no rows */
function prepareFile(file: string): number {
  if (!fileExists(file)) throw new LedgerError('missing', 'there is no such file')
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
