import { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client, CustomTypesConfig, Notification } from 'pg'
import { DatabaseError, toDatabaseError } from './database-error.ts'

export interface DatabaseOptions {
  /** postgres://user:password@host:port/database */
  readonly url: string
  /** The name of this connection on the server (application_name). */
  readonly name: string
  /** How values are read; absent = as pg does. */
  readonly types?: CustomTypesConfig
  /** Called with each notification of the channels that are listened to. */
  readonly onNotification?: (message: Notification) => void
  /** ms after which an open connection is asked whether it still leads to a server that takes writes; default 10 s. */
  readonly checkIntervalMs?: number
  /** Called when a connection was lost. The next query opens another. */
  readonly onLost?: () => void
}

export type Row = Readonly<Record<string, unknown>>

/**
 * @param sql with $1, $2 for the values
 * @param timeoutMs ms for the response, the time to connect included; default 5 s
 * @returns the rows of the last statement
 * @throws {DatabaseError}
 */
export type Query = (sql: string, values?: readonly unknown[], timeoutMs?: number) => Promise<Row[]>

const DEFAULT_TIMEOUT_MS = 5_000
/** ms after which the server stops a statement by itself, long after the caller's deadline. */
const STATEMENT_TIMEOUT_MS = 60_000
/** ms after which the system asks a silent peer whether it is still there. */
const KEEP_ALIVE_MS = 10_000
const CHECK_INTERVAL_MS = 10_000
const IS_READ_ONLY = `SELECT pg_is_in_recovery() OR current_setting('default_transaction_read_only')::boolean AS is_read_only`
/** https://www.postgresql.org/docs/current/runtime-config-logging.html#GUC-APPLICATION-NAME */
const MAX_NAME_LENGTH = 63

/**
 * One connection to PostgreSQL. The first query opens it, and so does the next one after a loss. Queries run one after
 * the other. Each gets its response in time or is rejected: a connection that does not reply is closed, so that a silent
 * or half-open socket blocks nothing. A connection to a server that no longer accepts writes is closed too: the next one
 * resolves the name again.
 */
export class Database {
  readonly #options: DatabaseOptions
  #connection: Connection | null = null
  #last: Promise<unknown> = Promise.resolve()

  constructor(options: DatabaseOptions) {
    this.#options = options
  }

  /** Whether there is a connection. */
  get isOpen(): boolean {
    return this.#connection !== null
  }

  readonly query: Query = (sql, values, timeoutMs) => this.#inTurn(() => this.#run(sql, values, timeoutMs))

  /**
   * Runs the work in a transaction. Other queries wait for its end.
   *
   * @param work uses the query that it is given
   * @throws {DatabaseError}, and what `work` throws
   */
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
        // If the connection was lost, the server has rolled back.
        if (connection !== null && connection === this.#connection) await query('ROLLBACK').catch(() => undefined)
        throw error
      }
    })
  }

  /** Closes the connection at once, and rejects queries without a response. */
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

  /** A connection that only reads would not notice a failover. */
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
    // After the deadline its result is not used.
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
      // The connection stays usable after an error in SQL.
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
    // The `close` event of the socket reports it too.
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
  /** Of a monotonic clock, in ms: when it was opened, or asked whether it takes writes. */
  checkedAt: number
}
