import { existsSync, renameSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { makeDirectory } from '../../base/files/directory.ts'
import { fileIdentity, nonFileKind } from '../../base/files/file-exists.ts'
import { createPrivateFile } from '../../base/files/private-file.ts'
import { StoreError } from '../../base/files/store-error.ts'
import { toLedgerFailure } from '../ledger-failure.ts'
import { ledgerSchema } from './ledger-schema.ts'
import { acquireLock } from './lock.ts'

/** Milliseconds that a statement waits for the transaction of another process. */
const BUSY_TIMEOUT_MS = 2000
/** Pages. A log of this size is copied by the writer itself, which happens only if the checkpoint thread cannot keep the log smaller. */
const WRITER_CHECKPOINT_PAGES = 16_384
const LOG_LIMIT = 32 * 1024 * 1024

export interface LedgerFile {
  readonly db: DatabaseSync
  /** Identifies the open file, to detect that another file is at its path. */
  readonly identity: string
  /** The new path of a corrupt file; null = there was none. */
  readonly setAside: string | null
}

/**
 * Opens a ledger for writing. Creates directory, file and schema if they are missing. Renames a corrupt file and creates a new one.
 * @throws {StoreError} `foreign`, `newer`, `unwritable`; otherwise an error of node:fs or node:sqlite
 */
export function openFile(file: string): LedgerFile {
  makeDirectory(dirname(file))
  // Only one process at a time may check and change the file.
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
  // Check first: SQLite would wait for a writer to a pipe, and would not report that the path is a directory.
  if (other !== null) throw new StoreError('unwritable', `this is ${other}, not a file`)
  createPrivateFile(file)
  const schema = ledgerSchema()
  const db = new DatabaseSync(file, { timeout: BUSY_TIMEOUT_MS })
  try {
    // Check first, because the PRAGMAs would change the file of another program.
    schema.versionOf(db)
    // synchronous = NORMAL uses fsync only to keep the file consistent. A killed process loses no committed rows.
    // auto_vacuum has an effect only on a new file, before its first table. `gateway ledger compact` sets it in an older file.
    db.exec(`PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
      PRAGMA wal_autocheckpoint = ${WRITER_CHECKPOINT_PAGES}; PRAGMA journal_size_limit = ${LOG_LIMIT}`)
    schema.migrate(db)
    const identity = fileIdentity(file)
    if (identity === null) throw new StoreError('moved', 'the file was deleted while it was opened')
    return { db, identity }
  } catch (error) {
    db.close()
    throw error
  }
}

/** Renames a corrupt open file. @param identity of the open file @returns the new path; null = another file is at the path */
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
  // Rename the log first, because SQLite deletes a log that belongs to no file.
  for (const part of ['-wal', '-shm', '']) {
    if (existsSync(file + part)) renameSync(file + part, kept + part)
  }
  return kept
}
