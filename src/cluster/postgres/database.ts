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
  /** Milliseconds between two checks whether the server of an open connection accepts writes; default 10 s. */
  readonly checkIntervalMs?: number
  /** Called when the connection was lost. The next query opens another connection. */
  readonly onLost?: () => void
}

export type Row = Readonly<Record<string, unknown>>

/**
 * @param sql with $1, $2 … for the values @param timeoutMs ms for the response, including the time to connect; default 5 s
 * @returns the rows of the last statement @throws {DatabaseError}
 */
export type Query = (sql: string, values?: readonly unknown[], timeoutMs?: number) => Promise<Row[]>

const DEFAULT_TIMEOUT_MS = 5_000
/** Milliseconds after which the server itself stops a statement. Longer than the deadline of most callers. */
const STATEMENT_TIMEOUT_MS = 60_000
/** Milliseconds without data after which the operating system probes the peer. */
const KEEP_ALIVE_MS = 10_000
const CHECK_INTERVAL_MS = 10_000
const IS_READ_ONLY = `SELECT pg_is_in_recovery() OR current_setting('default_transaction_read_only')::boolean AS is_read_only`
/** Maximum length of application_name: https://www.postgresql.org/docs/current/runtime-config-logging.html#GUC-APPLICATION-NAME */
const MAX_NAME_LENGTH = 63

/**
 * One connection to PostgreSQL. The first query, and the first query after a loss, opens the connection. Queries run one after the other.
 * If a query gets no response in time, it is rejected and the connection is closed, so that a silent or half-open socket blocks no query.
 * A connection to a server that no longer accepts writes is closed too, because the next connection resolves the name again.
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

  /** Other queries wait until the transaction has ended. @param work must use its own `query` @throws {DatabaseError}, errors of `work` */
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
        // If the connection was lost, the server has rolled back the transaction already.
        if (connection !== null && connection === this.#connection) await query('ROLLBACK').catch(() => undefined)
        throw error
      }
    })
  }

  /** Closes the connection. Running and waiting queries are rejected. */
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

  /** Closes a connection whose server no longer accepts writes. A connection that only reads would not notice a failover otherwise. */
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
    // Ignore a late error, because nothing uses the result after the deadline.
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
      // Keep the connection after an error in SQL, because the connection is still usable.
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
    // Ignore the error, because the socket's `close` event reports it too.
    client.on('error', () => undefined)
    if (onNotification) client.on('notification', onNotification)
    await client.connect()
    return client
  }

  #lose(connection: Connection): void {
    // Do not use `client.end`, which waits for the peer: the peer may be silent.
    connection.socket.destroy()
    if (this.#connection !== connection) return
    this.#connection = null
    this.#options.onLost?.()
  }
}

interface Connection {
  readonly socket: Socket
  readonly client: Promise<Client>
  /** When the connection was opened or last checked, ms on a monotonic clock. */
  checkedAt: number
}

/** Replaces NUL characters, which PostgreSQL refuses in text and which names of models and users in login attempts can contain. */
export function withoutNul<T>(value: T): T | string {
  return typeof value === 'string' ? value.replaceAll('\0', '\ufffd') : value
}
