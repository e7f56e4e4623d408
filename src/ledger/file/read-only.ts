import { statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { StoreError } from '../../base/files/store-error.ts'

const BUSY_TIMEOUT_MS = 5000
/** SQLITE_READONLY (if there is a log) and SQLITE_CANTOPEN (if there is none). */
const NOT_WRITABLE = new Set([8, 14])

/**
 * Opens a ledger for reading. SQLite may need to create an index of the log in the same directory. If the user may not write there, opens
 * the file as immutable, which is possible only if no gateway has the file open.
 * @throws {StoreError} `unwritable`; otherwise an error of node:sqlite
 */
export function openReadOnly(file: string): DatabaseSync {
  const db = new DatabaseSync(file, { readOnly: true, timeout: BUSY_TIMEOUT_MS })
  try {
    db.exec('PRAGMA schema_version')
    return db
  } catch (error) {
    db.close()
    if (!NOT_WRITABLE.has(((error as { errcode?: number }).errcode ?? 0) & 0xff)) throw error
  }
  if ((statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0) {
    throw new StoreError('unwritable', 'a gateway that was killed left rows beside it, and to read them takes ' +
      'the right to write in its directory: do this as the user that the gateway runs as')
  }
  const url = pathToFileURL(file)
  url.searchParams.set('immutable', '1')
  return new DatabaseSync(url, { readOnly: true })
}
