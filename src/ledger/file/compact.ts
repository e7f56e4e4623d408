import { statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { fileExists } from '../../base/files/file-exists.ts'
import { StoreError } from '../../base/files/store-error.ts'
import { ledgerSchema } from './ledger-schema.ts'

const BUSY_TIMEOUT_MS = 10_000

/** Frees the space of deleted rows. A running gateway waits. @returns the sizes in bytes @throws {StoreError} if `file` is not a ledger */
export function compactLedger(file: string): { readonly before: number, readonly after: number } {
  if (!fileExists(file)) throw new StoreError('missing', 'there is no such file')
  const db = new DatabaseSync(file, { timeout: BUSY_TIMEOUT_MS })
  try {
    const schema = ledgerSchema()
    if (schema.versionOf(db) !== schema.latest) throw new StoreError('missing', 'the file is empty or of an older version: start a gateway with it first')
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    const before = statSync(file).size
    db.exec('PRAGMA auto_vacuum = INCREMENTAL; VACUUM; PRAGMA wal_checkpoint(TRUNCATE)')
    return { before, after: statSync(file).size }
  } finally {
    db.close()
  }
}
