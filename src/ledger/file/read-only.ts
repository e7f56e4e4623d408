import { statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { StoreError } from '../../base/files/store-error.ts'

const BUSY_TIMEOUT_MS = 5000
/** SQLITE_READONLY or SQLITE_CANTOPEN, depending on whether there is a log. */
const NOT_WRITABLE = new Set([8, 14])

/**
 * SQLite may write an index of the log beside the file. A user without that right opens the file as immutable: no gateway has it open then.
 * @throws {StoreError} `unwritable`; else node:sqlite's error
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
