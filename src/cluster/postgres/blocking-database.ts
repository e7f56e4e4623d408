import { MessageChannel, receiveMessageOnPort, type MessagePort, type Worker } from 'node:worker_threads'
import { startThread } from '../../base/threads/supervised-thread.ts'
import { threadUrl } from '../../base/threads/thread-url.ts'
import { DatabaseError, type DatabaseErrorCode } from './database-error.ts'
import type { DatabaseOptions, Row } from './database.ts'

export interface BlockingThreadData {
  readonly options: Pick<DatabaseOptions, 'url' | 'name'>
  readonly port: MessagePort
  /** A counter that changes with each reply. */
  readonly replies: Int32Array
}

export type BlockingQuery = { readonly sql: string; readonly values: readonly unknown[]; readonly timeoutMs: number }

export type BlockingReply =
  | { readonly rows: Row[] }
  | { readonly error: { readonly code: DatabaseErrorCode, readonly message: string, readonly sqlState: string | null } }

/** Milliseconds for the thread to start and reply, in addition to the query's timeout. */
const THREAD_TIMEOUT_MS = 2_000

/**
 * A connection for synchronous code, such as code that also reads a SQLite file: a query blocks until its response arrives. Do not use the
 * class in a thread that serves requests. Whole numbers in rows are bigint.
 */
export class BlockingDatabase {
  readonly #options: BlockingThreadData['options']
  #thread: Thread | null = null

  constructor(options: BlockingThreadData['options']) {
    this.#options = options
  }

  /** @param timeoutMs ms for the response, including the time to connect @returns the rows of the last statement @throws {DatabaseError} */
  query(sql: string, values: readonly unknown[], timeoutMs: number): Row[] {
    const { port, replies } = this.#thread ??= this.#start()
    const before = Atomics.load(replies, 0)
    port.postMessage({ sql, values, timeoutMs } satisfies BlockingQuery)
    Atomics.wait(replies, 0, before, timeoutMs + THREAD_TIMEOUT_MS)
    const reply = receiveMessageOnPort(port)?.message as BlockingReply | undefined
    if (reply === undefined) {
      // Close the connection, because a late reply would be taken for the reply to the next query.
      this.close()
      throw new DatabaseError('timeout', `PostgreSQL did not answer within ${timeoutMs} ms`)
    }
    if ('rows' in reply) return reply.rows
    const { code, message, sqlState } = reply.error
    throw new DatabaseError(code, message, sqlState)
  }

  /** Closes the connection. The next query opens another one. */
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
      // Ignore the exit: the waiting query fails by its timeout.
      onExit: () => undefined,
    })
    worker.unref()
    port1.unref()
    return { worker, port: port1, replies }
  }
}

type Thread = Pick<BlockingThreadData, 'port' | 'replies'> & { readonly worker: Worker }
