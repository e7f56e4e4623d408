import { existsSync, unlinkSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { createPrivateFile } from '../../base/files/private-file.ts'

/**
 * Takes a lock that the operating system releases when the process ends, however
 * it ends. It is SQLite's lock on an empty file, because Node has none of its own.
 * @param path of the lock file, which exists while the lock is held, or after its
 *   holder was killed
 * @param patience ms to wait for another holder
 * @returns releases the lock
 * @throws node:sqlite's error `database is locked` when another holds it, or what
 *   the file system says
 */
export function acquireLock(path: string, patience: number): () => void {
  for (;;) {
    createPrivateFile(path)
    const db = new DatabaseSync(path, { timeout: patience })
    try {
      // In memory: otherwise the lock would leave a journal beside it.
      db.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
    } catch (error) {
      db.close()
      throw error
    }
    // The last holder removed the file while this one waited: a deleted file shows others
    // no lock.
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
    // Gone, or in a directory that takes no changes now. What stays is free, as after a kill.
  }
}
