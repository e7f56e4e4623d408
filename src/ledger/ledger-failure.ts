import { StoreError } from '../base/files/store-error.ts'
import { statSync } from 'node:fs'
import { messageOf } from '../base/message-of.ts'

/** Why rows are not written. */
export type LedgerFailureCode =
  /** The directory or file cannot be created, opened or written. */
  | 'unwritable'
  | 'full'
  /** Another process holds the lock of the file. */
  | 'locked'
  /** The file is corrupt; it was renamed. */
  | 'corrupt'
  /** The file was moved or deleted while open; a new one is created. */
  | 'moved'
  /** The database of another program. */
  | 'foreign'
  /** A ledger of a newer version. */
  | 'newer'
  /** A row that can never be stored. */
  | 'row'
  /** The memory for waiting rows is full, and rows are lost. */
  | 'overflow'
  /** The writing thread died and is restarted. */
  | 'crash'
  /** The ledger was closed with unwritten rows. */
  | 'shutdown'
  /** Rows cannot be sent to PostgreSQL. They wait in the file. */
  | 'unshipped'
  /** For a reader: the ledger does not exist yet. */
  | 'missing'

export interface LedgerFailure {
  readonly code: LedgerFailureCode
  readonly message: string
}

// Primary result codes: https://www.sqlite.org/rescode.html
const SQLITE: Readonly<Record<number, LedgerFailureCode>> = {
  5: 'locked', 6: 'locked', 11: 'corrupt', 13: 'full', 18: 'row', 19: 'row', 20: 'row', 25: 'row', 26: 'corrupt',
}

/** SQLITE_READONLY and SQLITE_CANTOPEN, and node's codes: the owner of the file is checked. */
const NOT_PERMITTED = new Set<unknown>([8, 14, 'EACCES', 'EPERM'])

/** The code of an error of node:sqlite or node:fs, and a line for the log. @param file names its owner if it cannot be written */
export function toLedgerFailure(error: unknown, file: string | null = null): LedgerFailure {
  const message = messageOf(error)
  // The ledger throws only codes of its own.
  if (error instanceof StoreError) return { code: error.code as LedgerFailureCode, message }
  const { code, errcode } = (error ?? {}) as { code?: unknown; errcode?: unknown }
  const primary = typeof errcode === 'number' ? errcode & 0xff : null
  const known = primary === null ? knownCode(code) : SQLITE[primary]
  if (known !== undefined) return { code: known, message }
  const hint = file !== null && NOT_PERMITTED.has(primary ?? code) ? otherOwner(file) : ''
  return { code: 'unwritable', message: message + hint }
}

function knownCode(code: unknown): LedgerFailureCode | undefined {
  if (code === 'ENOSPC' || code === 'EDQUOT') return 'full'
  // Node itself refuses values that SQLite has no type for.
  return typeof code === 'string' && code.startsWith('ERR_INVALID_ARG') ? 'row' : undefined
}

/** Empty = this user owns the file, or the owner is unknown. */
function otherOwner(file: string): string {
  const user = process.geteuid?.()
  try {
    const owner = statSync(file).uid
    if (user === undefined || owner === user) return ''
    return `: the file belongs to another user (uid ${owner}); the gateway runs as uid ${user}`
  } catch {
    // The first error is more precise.
    return ''
  }
}
