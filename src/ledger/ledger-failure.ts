import { statSync } from 'node:fs'
import { messageOf } from '../base/message-of.ts'

/** Why rows are not being written. */
export type LedgerFailureCode =
  /** The directory or the file cannot be made, opened or written. */
  | 'unwritable'
  | 'full'
  /** Somebody else holds the file's lock. */
  | 'locked'
  /** The file is no database any more; it was renamed. */
  | 'corrupt'
  /** The file was moved or deleted while it was open; a new one is made. */
  | 'moved'
  /** The file is a database, but no ledger. */
  | 'foreign'
  /** The file is a ledger of a newer version. */
  | 'newer'
  /** A row that can never be written. */
  | 'row'
  /** The memory for waiting rows is full: rows are being lost. */
  | 'overflow'
  /** The writing thread died and is started again. */
  | 'crash'
  /** The ledger was closed, and rows were left. */
  | 'shutdown'
  /** Rows cannot be sent to PostgreSQL. They wait in the file. */
  | 'unshipped'
  /** For a reader: no ledger has been written there yet. */
  | 'missing'

/** The message for the operator. */
export interface LedgerFailure {
  readonly code: LedgerFailureCode
  readonly message: string
}

/** A failure of the ledger whose kind is known where it is raised. */
export class LedgerError extends Error {
  readonly code: LedgerFailureCode

  constructor(code: LedgerFailureCode, message: string) {
    super(message)
    this.name = 'LedgerError'
    this.code = code
  }
}

// Primary result codes: https://www.sqlite.org/rescode.html
const SQLITE: Readonly<Record<number, LedgerFailureCode>> = {
  5: 'locked',
  6: 'locked',
  11: 'corrupt',
  13: 'full',
  18: 'row',
  19: 'row',
  20: 'row',
  25: 'row',
  26: 'corrupt',
}

/** SQLITE_READONLY and SQLITE_CANTOPEN, and node's codes: who may write is asked. */
const NOT_PERMITTED = new Set<unknown>([8, 14, 'EACCES', 'EPERM'])

/**
 * Sorts what node:sqlite or node:fs threw.
 * @param file of the ledger, to say whose it is if it cannot be written
 * @returns a code and one line for the log
 */
export function toLedgerFailure(error: unknown, file: string | null = null): LedgerFailure {
  const message = messageOf(error)
  if (error instanceof LedgerError) return { code: error.code, message }
  const { code, errcode } = (error ?? {}) as { code?: unknown; errcode?: unknown }
  const primary = typeof errcode === 'number' ? errcode & 0xff : null
  const known = primary === null ? knownCode(code) : SQLITE[primary]
  if (known !== undefined) return { code: known, message }
  const hint = file !== null && NOT_PERMITTED.has(primary ?? code) ? otherOwner(file) : ''
  return { code: 'unwritable', message: message + hint }
}

function knownCode(code: unknown): LedgerFailureCode | undefined {
  if (code === 'ENOSPC' || code === 'EDQUOT') return 'full'
  // Node refuses values that SQLite has no type for before SQLite sees them.
  return typeof code === 'string' && code.startsWith('ERR_INVALID_ARG') ? 'row' : undefined
}

/** As when a gateway ran as root once. Empty = the file is this user's, or nothing is known of it. */
function otherOwner(file: string): string {
  const user = process.geteuid?.()
  try {
    const owner = statSync(file).uid
    if (user === undefined || owner === user) return ''
    return `: the file belongs to another user (uid ${owner}); the gateway runs as uid ${user}`
  } catch {
    // The first error says more.
    return ''
  }
}
