import { existsSync, unlinkSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { createPrivateFile } from '../../base/files/private-file.ts'

/**
 * Takes a lock that the system releases when the process ends: SQLite's lock on an empty file, because Node has no file locks. The file
 * exists while the lock is held, or after its holder was killed. @param patience ms to wait for another holder @returns releases the lock
 * @throws node:sqlite's error `database is locked` if another process holds it, or the error of the file system
 */
export function acquireLock(path: string, patience: number): () => void {
  for (;;) {
    createPrivateFile(path)
    const db = new DatabaseSync(path, { timeout: patience })
    try {
      // Otherwise the journal would be a file beside the lock.
      db.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
    } catch (error) {
      db.close()
      throw error
    }
    // The last holder removed the file meanwhile: others do not see a lock on a deleted file.
    if (existsSync(path)) {
      return () => {
        remove(path)
        db.close()
      }
    }
    db.close()
  }
}

/** Is the lock held? Also true if that is unknown. Needs no write permission. */
export function isLocked(path: string): boolean {
  if (!existsSync(path)) return false
  let db
  try {
    db = new DatabaseSync(path, { readOnly: true, timeout: 0 })
    db.prepare('SELECT count(*) FROM sqlite_schema').get()
    return false
  } catch {
    // Locked, or just released and removed, or cannot be opened.
    return existsSync(path)
  } finally {
    db?.close()
  }
}

function remove(path: string): void {
  try {
    unlinkSync(path)
  } catch {
    // The file no longer exists, or the directory cannot be changed now. A remaining file is not locked, as after a kill.
  }
}
