import { messageOf } from '../../base/message-of.ts'

/** `unreachable`: no connection, or it was lost. `timeout`: no response in time. `rejected`: the server refused the statement. */
export type DatabaseErrorCode = 'unreachable' | 'timeout' | 'rejected'

/** An error of the database. Its message never contains the password. */
export class DatabaseError extends Error {
  readonly code: DatabaseErrorCode
  /** SQLSTATE of the server; null = none. https://www.postgresql.org/docs/current/errcodes-appendix.html */
  readonly sqlState: string | null

  constructor(code: DatabaseErrorCode, message: string, sqlState: string | null = null) {
    super(message)
    this.name = 'DatabaseError'
    this.code = code
    this.sqlState = sqlState
  }
}

/**
 * SQLSTATE classes after which another connection is needed: connection exceptions, insufficient resources, operator intervention and
 * login. Also read_only_sql_transaction, because another connection may lead from a standby to the server that accepts writes.
 */
const LOST = /^(?:08|53|57P|28|25006)/

/** @param url whose password is masked in the message */
export function toDatabaseError(error: unknown, url: string): DatabaseError {
  if (error instanceof DatabaseError) return error
  const { code, severity } = (error ?? {}) as { code?: unknown, severity?: unknown }
  const sqlState = typeof severity === 'string' && typeof code === 'string' ? code : null
  const message = withoutPassword(messageOf(error), url)
  return new DatabaseError(sqlState === null || LOST.test(sqlState) ? 'unreachable' : 'rejected', message, sqlState)
}

function withoutPassword(message: string, url: string): string {
  const { password = '' } = URL.parse(url) ?? {}
  if (password === '') return message
  return [password, decoded(password)].reduce((text, secret) => text.replaceAll(secret, '***'), message)
}

function decoded(password: string): string {
  try {
    return decodeURIComponent(password)
  } catch {
    // A percent sign in the password is not an escape: use the password unchanged.
    return password
  }
}
