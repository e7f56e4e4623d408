import { existsSync, renameSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { makeDirectory } from '../base/directory.ts'
import { fileIdentity, nonFileKind } from '../base/file-exists.ts'
import { createPrivateFile } from '../base/private-file.ts'
import { LedgerError, toLedgerFailure } from './ledger-failure.ts'
import { ledgerSchema } from './ledger-schema.ts'
import { acquireLock } from './lock.ts'

/** How long a statement waits for another process's transaction, in ms. */
const BUSY_TIMEOUT_MS = 2000
/** The checkpoint thread keeps the log far below; this is for when it cannot. */
const WRITER_CHECKPOINT_PAGES = 16_384
const LOG_LIMIT = 32 * 1024 * 1024

/** An open ledger file. */
export interface LedgerFile {
  readonly db: DatabaseSync
  /** Tells whether the path still leads to the open file. */
  readonly identity: string
  /** Where an unreadable file was kept, when this opening found one. */
  readonly setAside: string | null
}

/**
 * Opens a ledger for writing; makes its directory, the file and the schema where
 * they are missing. A file that is no database, or a broken one, is kept beside
 * under a new name, every byte of it, and a new one takes its place.
 * @param file path
 * @throws {LedgerError} `foreign`, `newer`, `unwritable`; else what node:fs or node:sqlite throw
 */
export function openFile(file: string): LedgerFile {
  makeDirectory(dirname(file))
  // One process at a time: what follows decides by what it finds.
  const release = acquireLock(`${file}-opening`, BUSY_TIMEOUT_MS)
  try {
    try {
      return { ...connect(file), setAside: null }
    } catch (error) {
      if (toLedgerFailure(error).code !== 'corrupt') throw error
      const kept = moveAside(file)
      return { ...connect(file), setAside: kept }
    }
  } finally {
    release()
  }
}

function connect(file: string): Omit<LedgerFile, 'setAside'> {
  const other = nonFileKind(file)
  // SQLite would wait for who writes to a pipe, and say of a directory only that it cannot be opened.
  if (other !== null) throw new LedgerError('unwritable', `this is ${other}, not a file`)
  createPrivateFile(file)
  const schema = ledgerSchema()
  const db = new DatabaseSync(file, { timeout: BUSY_TIMEOUT_MS })
  try {
    // First, because the next line would change a file that is not ours.
    schema.versionOf(db)
    // A process that is killed loses nothing that was committed: the system has
    // it. NORMAL leaves only the file's integrity, not the last rows, to fsync.
    db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
      PRAGMA wal_autocheckpoint = ${WRITER_CHECKPOINT_PAGES}; PRAGMA journal_size_limit = ${LOG_LIMIT}`)
    schema.migrate(db)
    const identity = fileIdentity(file)
    if (identity === null) throw new LedgerError('moved', 'the file was deleted while it was opened')
    return { db, identity }
  } catch (error) {
    db.close()
    throw error
  }
}

/**
 * Puts a broken file that is open aside, unless another process already has.
 * @param file path
 * @param identity of the file as it was opened
 * @returns the new path; null when the path leads to another file by now
 */
export function quarantineFile(file: string, identity: string): string | null {
  const release = acquireLock(`${file}-opening`, BUSY_TIMEOUT_MS)
  try {
    return fileIdentity(file) === identity ? moveAside(file) : null
  } finally {
    release()
  }
}

function moveAside(file: string): string {
  const stamp = new Date().toISOString().replace(/[-:]|\.\d+/g, '')
  let kept = `${file}.corrupt-${stamp}`
  for (let n = 2; existsSync(kept); n += 1) kept = `${file}.corrupt-${stamp}-${n}`
  // The log first: SQLite deletes a log that it finds beside a new file.
  for (const part of ['-wal', '-shm', '']) {
    if (existsSync(file + part)) renameSync(file + part, kept + part)
  }
  return kept
}
