import { StoreError } from '../base/files/store-error.ts'
import { statSync } from 'node:fs'
import { messageOf } from '../base/message-of.ts'

/** Why rows are not written, or why the ledger cannot be read. */
export type LedgerFailureCode =
  /** The directory or file cannot be created, opened or written. */
  | 'unwritable'
  | 'full'
  /** Another process holds the lock of the file. */
  | 'locked'
  /** The file is corrupt, and was renamed. */
  | 'corrupt'
  /** The file was moved or deleted while it was open. A new file is created. */
  | 'moved'
  /** The file is the database of another program. */
  | 'foreign'
  /** The file is a ledger of a newer version. */
  | 'newer'
  /** SQLite refuses a row because of its values. */
  | 'row'
  /** The memory for waiting rows is full, and rows are lost. */
  | 'overflow'
  /** The writing thread has died, and is restarted. */
  | 'crash'
  /** The ledger was closed before all rows were written. */
  | 'shutdown'
  /** Rows cannot be sent to PostgreSQL, and wait in the file. */
  | 'unshipped'
  /** For a reader: the ledger does not exist yet. */
  | 'missing'

export interface LedgerFailure {
  readonly code: LedgerFailureCode
  readonly message: string
}

// SQLite's primary result codes: https://www.sqlite.org/rescode.html
const SQLITE: Readonly<Record<number, LedgerFailureCode>> = {
  5: 'locked', 6: 'locked', 11: 'corrupt', 13: 'full', 18: 'row', 19: 'row', 20: 'row', 25: 'row', 26: 'corrupt',
}

/** Codes for missing permission, after which the message names the owner of the file: SQLITE_READONLY, SQLITE_CANTOPEN, node's codes. */
const NOT_PERMITTED = new Set<unknown>([8, 14, 'EACCES', 'EPERM'])

/** Converts an error of node:sqlite or node:fs. @param file whose owner the message names if permission is missing; null = unknown */
export function toLedgerFailure(error: unknown, file: string | null = null): LedgerFailure {
  const message = messageOf(error)
  // The ledger throws only `StoreError`s with these codes.
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
  // Node refuses a value for which SQLite has no type.
  return typeof code === 'string' && code.startsWith('ERR_INVALID_ARG') ? 'row' : undefined
}

/** @returns a hint about the owner; empty = this user owns the file, or the owner is unknown */
function otherOwner(file: string): string {
  const user = process.geteuid?.()
  try {
    const owner = statSync(file).uid
    if (user === undefined || owner === user) return ''
    return `: the file belongs to another user (uid ${owner}); the gateway runs as uid ${user}`
  } catch {
    // Ignore this error, because the error to report says more.
    return ''
  }
}
