import { existsSync, unlinkSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { createPrivateFile } from '../../base/files/private-file.ts'

/**
 * Takes a lock that the system releases when the process ends. Uses SQLite's lock on an empty file, because Node has no file locks. The
 * file exists while the lock is held, and remains if its holder is killed. @param patience ms to wait for another holder
 * @returns releases the lock @throws node:sqlite's error `database is locked` if another process holds the lock, or a file system error
 */
export function acquireLock(path: string, patience: number): () => void {
  for (;;) {
    createPrivateFile(path)
    const db = new DatabaseSync(path, { timeout: patience })
    try {
      // Keep SQLite's journal in memory, so that no further file is created.
      db.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
    } catch (error) {
      db.close()
      throw error
    }
    // If the file no longer exists, its last holder has removed it, and the lock on it has no effect: try again.
    if (existsSync(path)) {
      return () => {
        remove(path)
        db.close()
      }
    }
    db.close()
  }
}

/** @returns true = the lock is held, or it is unknown whether the lock is held. Needs no write permission */
export function isLocked(path: string): boolean {
  if (!existsSync(path)) return false
  let db
  try {
    db = new DatabaseSync(path, { readOnly: true, timeout: 0 })
    db.prepare('SELECT count(*) FROM sqlite_schema').get()
    return false
  } catch {
    // The file is locked, was just removed by its holder, or cannot be opened.
    return existsSync(path)
  } finally {
    db?.close()
  }
}

function remove(path: string): void {
  try {
    unlinkSync(path)
  } catch {
    // The file no longer exists, or the directory cannot be changed now. A file that remains does no harm, because it is not locked.
  }
}
