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

/**
 * Sorts what node:sqlite or node:fs threw.
 * @returns a code and one line for the log
 */
export function toLedgerFailure(error: unknown): LedgerFailure {
  const message = messageOf(error)
  if (error instanceof LedgerError) return { code: error.code, message }
  const { code, errcode } = (error ?? {}) as { code?: unknown; errcode?: unknown }
  if (typeof errcode === 'number') return { code: SQLITE[errcode & 0xff] ?? 'unwritable', message }
  if (code === 'ENOSPC' || code === 'EDQUOT') return { code: 'full', message }
  // Node refuses values that SQLite has no type for before SQLite sees them.
  if (typeof code === 'string' && code.startsWith('ERR_INVALID_ARG')) return { code: 'row', message }
  return { code: 'unwritable', message }
}
