import { MessageChannel, receiveMessageOnPort } from 'node:worker_threads'
import type { MessagePort, Worker } from 'node:worker_threads'
import { startThread } from '../../base/threads/supervised-thread.ts'
import { threadUrl } from '../../base/threads/thread-url.ts'
import { DatabaseError } from './database-error.ts'
import type { DatabaseErrorCode } from './database-error.ts'
import type { DatabaseOptions, Row } from './database.ts'

/** What the thread is started with. */
export interface BlockingThreadData {
  readonly options: Pick<DatabaseOptions, 'url' | 'name'>
  readonly port: MessagePort
  /** Changes with each reply. */
  readonly replies: Int32Array
}

/** A query for the thread. */
export interface BlockingQuery {
  readonly sql: string
  readonly values: readonly unknown[]
  readonly timeoutMs: number
}

export type BlockingReply =
  | { readonly rows: Row[] }
  | { readonly error: { readonly code: DatabaseErrorCode, readonly message: string, readonly sqlState: string | null } }

/** ms for the thread to start and to reply, beside the time that a query may take. */
const THREAD_TIMEOUT_MS = 2_000

/**
 * A connection to PostgreSQL for code that also reads a SQLite file, and so cannot await a promise: a query blocks until
 * its response arrives. Do not use it in a thread that serves requests. Whole numbers are bigint.
 */
export class BlockingDatabase {
  readonly #options: BlockingThreadData['options']
  #thread: Thread | null = null

  constructor(options: BlockingThreadData['options']) {
    this.#options = options
  }

  /**
   * @param sql with $1, $2 for the values
   * @param timeoutMs ms for the response, the time to connect included
   * @returns the rows of the last statement
   * @throws {DatabaseError}
   */
  query(sql: string, values: readonly unknown[], timeoutMs: number): Row[] {
    const { port, replies } = this.#thread ??= this.#start()
    const before = Atomics.load(replies, 0)
    port.postMessage({ sql, values, timeoutMs } satisfies BlockingQuery)
    Atomics.wait(replies, 0, before, timeoutMs + THREAD_TIMEOUT_MS)
    const reply = receiveMessageOnPort(port)?.message as BlockingReply | undefined
    if (reply === undefined) {
      // A late reply must not become the reply to the next query.
      this.close()
      throw new DatabaseError('timeout', `PostgreSQL did not answer within ${timeoutMs} ms`)
    }
    if ('rows' in reply) return reply.rows
    const { code, message, sqlState } = reply.error
    throw new DatabaseError(code, message, sqlState)
  }

  /** Closes the connection. The next query opens another. */
  close(): void {
    this.#thread?.port.close()
    void this.#thread?.worker.terminate()
    this.#thread = null
  }

  #start(): Thread {
    const { port1, port2 } = new MessageChannel()
    const replies = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
    const workerData: BlockingThreadData = { options: this.#options, port: port2, replies }
    const worker = startThread({
      name: 'PostgreSQL', script: threadUrl('blocking-database-thread', import.meta.url), workerData, transferList: [port2],
      // The query without a reply reports it.
      onExit: () => undefined,
    })
    worker.unref()
    port1.unref()
    return { worker, port: port1, replies }
  }
}

interface Thread {
  readonly worker: Worker
  readonly port: MessagePort
  readonly replies: Int32Array
}
