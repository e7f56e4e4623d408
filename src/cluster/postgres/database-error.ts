import { messageOf } from '../../base/message-of.ts'

/** `unreachable`: no connection, or a lost one. `timeout`: no response in time. `rejected`: by the server; the connection stays usable. */
export type DatabaseErrorCode = 'unreachable' | 'timeout' | 'rejected'

/** The message never contains the password. */
export class DatabaseError extends Error {
  readonly code: DatabaseErrorCode
  /** The server's code: https://www.postgresql.org/docs/current/errcodes-appendix.html */
  readonly sqlState: string | null

  constructor(code: DatabaseErrorCode, message: string, sqlState: string | null = null) {
    super(message)
    this.name = 'DatabaseError'
    this.code = code
    this.sqlState = sqlState
  }
}

/**
 * Connection exceptions, insufficient resources, operator intervention, login. And read_only_sql_transaction: on a standby, another
 * connection may lead to the server that takes writes.
 */
const LOST = /^(?:08|53|57P|28|25006)/

/** @param url masks its password in the message */
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
    // A percent sign in it is not an escape.
    return password
  }
}
