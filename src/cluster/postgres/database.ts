import { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client, CustomTypesConfig, Notification } from 'pg'
import { DatabaseError, toDatabaseError } from './database-error.ts'

export interface DatabaseOptions {
  /** postgres://user:password@host:port/database */
  readonly url: string
  /** The connection's name on the server (application_name). */
  readonly name: string
  readonly types?: CustomTypesConfig
  readonly onNotification?: (message: Notification) => void
  /** ms after which an open connection is checked for a server that takes writes; default 10 s. */
  readonly checkIntervalMs?: number
  /** The connection was lost. The next query opens another. */
  readonly onLost?: () => void
}

export type Row = Readonly<Record<string, unknown>>

/**
 * @param sql with $1, $2 for the values @param timeoutMs ms for the response, including the time to connect; default 5 s
 * @returns the rows of the last statement @throws {DatabaseError}
 */
export type Query = (sql: string, values?: readonly unknown[], timeoutMs?: number) => Promise<Row[]>

const DEFAULT_TIMEOUT_MS = 5_000
/** ms until the server stops a statement, long after the caller's deadline. */
const STATEMENT_TIMEOUT_MS = 60_000
/** ms of silence until the system probes the peer. */
const KEEP_ALIVE_MS = 10_000
const CHECK_INTERVAL_MS = 10_000
const IS_READ_ONLY = `SELECT pg_is_in_recovery() OR current_setting('default_transaction_read_only')::boolean AS is_read_only`
/** https://www.postgresql.org/docs/current/runtime-config-logging.html#GUC-APPLICATION-NAME */
const MAX_NAME_LENGTH = 63

/**
 * One connection to PostgreSQL, opened by the first query and by the next one after a loss. Queries run one after the other, and each
 * gets its response in time or is rejected: a connection without a reply is closed, so that a silent or half-open socket blocks
 * nothing. So is a connection to a server that no longer accepts writes: the next connection resolves the name again.
 */
export class Database {
  readonly #options: DatabaseOptions
  #connection: Connection | null = null
  #last: Promise<unknown> = Promise.resolve()

  constructor(options: DatabaseOptions) {
    this.#options = options
  }

  get isOpen(): boolean {
    return this.#connection !== null
  }

  readonly query: Query = (sql, values, timeoutMs) => this.#inTurn(() => this.#run(sql, values, timeoutMs))

  /** Other queries wait for the end of the transaction. @param work uses its own `query` @throws {DatabaseError}, and what `work` throws */
  transaction<T>(work: (query: Query) => Promise<T>): Promise<T> {
    const query: Query = (sql, values, timeoutMs) => this.#run(sql, values, timeoutMs)
    return this.#inTurn(async () => {
      await query('BEGIN')
      const connection = this.#connection
      try {
        const result = await work(query)
        await query('COMMIT')
        return result
      } catch (error) {
        // After a lost connection, the server has rolled back.
        if (connection !== null && connection === this.#connection) await query('ROLLBACK').catch(() => undefined)
        throw error
      }
    })
  }

  /** Rejects queries without a response. */
  close(): void {
    this.#connection?.socket.destroy()
    this.#connection = null
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work)
    this.#last = done.catch(() => undefined)
    return done
  }

  async #run(sql: string, values: readonly unknown[] = [], timeoutMs = DEFAULT_TIMEOUT_MS): Promise<Row[]> {
    await this.#checkConnection(timeoutMs)
    return this.#send(sql, values, timeoutMs)
  }

  /** Without a check, a connection that only reads would not notice a failover. */
  async #checkConnection(timeoutMs: number): Promise<void> {
    const connection = this.#connection
    const { checkIntervalMs = CHECK_INTERVAL_MS } = this.#options
    if (connection === null || performance.now() - connection.checkedAt < checkIntervalMs) return
    if ((await connection.client.catch(() => null))?.getTransactionStatus() !== 'I') return
    connection.checkedAt = performance.now()
    const [row] = await this.#send(IS_READ_ONLY, [], timeoutMs)
    if (row?.['is_read_only'] === true) this.#lose(connection)
  }

  async #send(sql: string, values: readonly unknown[], timeoutMs: number): Promise<Row[]> {
    const connection = this.#connection ??= this.#connect()
    const reply = connection.client.then(client => client.query(sql, [...values]))
    // After the deadline the result is not used.
    reply.catch(() => undefined)
    const deadline = new AbortController()
    try {
      const late = sleep(timeoutMs, null, { signal: deadline.signal })
      late.catch(() => undefined)
      const result = await Promise.race([reply, late])
      if (result === null) throw new DatabaseError('timeout', `PostgreSQL did not answer within ${timeoutMs} ms`)
      return ([result].flat().at(-1)?.rows ?? []) as Row[]
    } catch (error) {
      const failure = toDatabaseError(error, this.#options.url)
      // An error in SQL leaves the connection usable.
      if (failure.code !== 'rejected') this.#lose(connection)
      throw failure
    } finally {
      deadline.abort()
    }
  }

  #connect(): Connection {
    const socket = new Socket()
    const connection: Connection = { socket, client: this.#login(socket), checkedAt: performance.now() }
    connection.client.catch(() => undefined)
    socket.once('close', () => this.#lose(connection))
    return connection
  }

  async #login(socket: Socket): Promise<Client> {
    const { url, name, types, onNotification } = this.#options
    const { default: { Client } } = await import('pg')
    if (socket.destroyed) throw new DatabaseError('unreachable', 'the connection was closed')
    const client = new Client({
      connectionString: url,
      application_name: name.slice(0, MAX_NAME_LENGTH),
      statement_timeout: STATEMENT_TIMEOUT_MS,
      keepAlive: true,
      keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
      stream: () => socket,
      ...types && { types },
    })
    // The socket's `close` event reports it too.
    client.on('error', () => undefined)
    if (onNotification) client.on('notification', onNotification)
    await client.connect()
    return client
  }

  #lose(connection: Connection): void {
    // Not `client.end`: it waits for a peer that may be silent.
    connection.socket.destroy()
    if (this.#connection !== connection) return
    this.#connection = null
    this.#options.onLost?.()
  }
}

interface Connection {
  readonly socket: Socket
  readonly client: Promise<Client>
  /** ms of a monotonic clock: when it was opened or last checked. */
  checkedAt: number
}

/** PostgreSQL refuses NUL in text; names in login attempts and names of models can contain it. */
export function withoutNul<T>(value: T): T | string {
  return typeof value === 'string' ? value.replaceAll('\0', '\ufffd') : value
}
