import { existsSync, unlinkSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { createPrivateFile } from '../../base/files/private-file.ts'

/**
 * Takes a lock that the operating system releases when the process ends, for any
 * reason. It is SQLite's lock on an empty file, because Node has no file locks.
 * @param path of the lock file, which exists while the lock is held, or after its
 *   holder was killed
 * @param patience ms to wait for another holder
 * @returns releases the lock
 * @throws node:sqlite's error `database is locked` if another process holds it, or the
 *   error of the file system
 */
export function acquireLock(path: string, patience: number): () => void {
  for (;;) {
    createPrivateFile(path)
    const db = new DatabaseSync(path, { timeout: patience })
    try {
      // A journal in memory: otherwise the lock would leave a journal file beside its file.
      db.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
    } catch (error) {
      db.close()
      throw error
    }
    // The last holder removed the file while this process waited: a lock on a deleted file is
    // invisible to others.
    if (existsSync(path)) {
      return () => {
        remove(path)
        db.close()
      }
    }
    db.close()
  }
}

/** @returns whether the lock is held; true if that is unknown. Needs no write permission. */
export function isLocked(path: string): boolean {
  if (!existsSync(path)) return false
  let db
  try {
    db = new DatabaseSync(path, { readOnly: true, timeout: 0 })
    db.prepare('SELECT count(*) FROM sqlite_schema').get()
    return false
  } catch {
    // It is locked, or was just released and removed, or cannot be opened.
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
