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

/** ms that a statement waits for the transaction of another process. */
const BUSY_TIMEOUT_MS = 2000
/** The checkpoint thread keeps the log much smaller; this applies when it cannot. */
const WRITER_CHECKPOINT_PAGES = 16_384
const LOG_LIMIT = 32 * 1024 * 1024

export interface LedgerFile {
  readonly db: DatabaseSync
  /** Shows whether the path still leads to the open file. */
  readonly identity: string
  /** The new path of a corrupt file; null = there was none. */
  readonly setAside: string | null
}

/**
 * Opens a ledger for writing; creates missing directory, file and schema. A corrupt file is renamed and replaced by a new one.
 * @throws {StoreError} `foreign`, `newer`, `unwritable`; else what node:fs or node:sqlite throw
 */
export function openFile(file: string): LedgerFile {
  makeDirectory(dirname(file))
  // One process at a time: the next steps depend on what they find.
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
  // SQLite would wait for a writer to a pipe, and report a directory only as impossible to open.
  if (other !== null) throw new StoreError('unwritable', `this is ${other}, not a file`)
  createPrivateFile(file)
  const schema = ledgerSchema()
  const db = new DatabaseSync(file, { timeout: BUSY_TIMEOUT_MS })
  try {
    // Check first: the PRAGMAs would change a foreign file.
    schema.versionOf(db)
    // NORMAL uses fsync only to keep the file consistent; a killed process loses no committed rows.
    // Only a new file gets auto_vacuum here, before its first table; `gateway ledger compact` gives it to an older one.
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

/** Renames a corrupt open file. @param identity of the open file @returns the new path; null = the path leads to another file */
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
