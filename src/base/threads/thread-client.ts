import type { Worker } from 'node:worker_threads'
import { closeThread, startThread } from './supervised-thread.ts'

export interface ThreadRequest {
  readonly id: number
  readonly message: unknown
}

export type ThreadReply =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly error: ThrownInThread }

/** An error that the thread threw, with the members by which callers distinguish errors. */
export interface ThrownInThread {
  readonly name: string
  readonly message: string
  readonly stack: string | undefined
  readonly code: unknown
  readonly field: unknown
}

export interface ThreadOptions {
  readonly name: string
  readonly script: URL
  readonly workerData?: unknown
  /** true = each request is sent only after the reply to the previous request; default: requests are sent at once. */
  readonly serial?: boolean
  /** Called when the thread ended by itself. @param hasReplied false = the thread never replied, and may be unable to start */
  readonly onExit?: (cause: string, hasReplied: boolean) => void
}

export class ThreadError extends Error {
  override readonly name = 'ThreadError'
  /** `thrown`: the thread threw an error; `ended`: the thread died; `closed`: the client was closed, or `cancel` was called. */
  readonly reason: 'thrown' | 'ended' | 'timeout' | 'closed'
  /** The thread's error if `reason` is `thrown`; otherwise null. */
  readonly thrown: ThrownInThread | null

  constructor(reason: ThreadError['reason'], message: string, thrown: ThrownInThread | null = null) {
    super(message)
    this.reason = reason
    this.thrown = thrown
  }
}

interface PendingRequest extends ThreadRequest {
  readonly transfer: readonly ArrayBuffer[]
  resolve(value: unknown): void
  reject(error: ThreadError): void
}

/**
 * Sends requests to a thread that starts with the first request. If the thread dies, requests that were sent are rejected, and requests
 * that still wait start another thread. The thread keeps the process alive while a reply is pending.
 */
export class ThreadClient {
  readonly #options: ThreadOptions
  readonly #waiting: PendingRequest[] = []
  readonly #sent = new Map<number, PendingRequest>()
  #worker: Worker | null = null
  #lastId = 0
  #isClosed = false
  #resolveIdle: (() => void) | null = null

  constructor(options: ThreadOptions) {
    this.#options = options
  }

  /** Number of requests without a reply, including requests that timed out. */
  get pending(): number {
    return this.#waiting.length + this.#sent.size
  }

  /** Sends a request: `message` is copied, and `transfer` is moved. @param options.timeoutMs absent = no limit @throws {ThreadError} */
  request<T>(message: unknown, { timeoutMs, transfer = [] }: { timeoutMs?: number; transfer?: readonly ArrayBuffer[] } = {}): Promise<T> {
    if (this.#isClosed) return Promise.reject(new ThreadError('closed', 'the thread is closed'))
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    const pending = { id: this.#lastId += 1, message, transfer, resolve, reject }
    if (timeoutMs !== undefined) {
      const timer = setTimeout(() => {
        const at = this.#waiting.indexOf(pending)
        if (at !== -1) this.#waiting.splice(at, 1)
        reject(new ThreadError('timeout', `no reply within ${timeoutMs} ms`))
      }, timeoutMs).unref()
      const stop = () => clearTimeout(timer)
      promise.then(stop, stop)
    }
    this.#waiting.push(pending)
    this.#sendWaiting()
    return promise as Promise<T>
  }

  /** Starts the thread before the first request. */
  start(): void {
    this.#worker ??= this.#startWorker()
  }

  /** Rejects all requests that have no reply. The thread continues to run. */
  cancel(message: string): void {
    for (const { reject } of [...this.#waiting.splice(0), ...this.#sent.values()]) reject(new ThreadError('closed', message))
  }

  async idle(): Promise<void> {
    if (this.pending > 0) await new Promise<void>(resolve => (this.#resolveIdle = resolve))
  }

  /** Ends the thread at once. Requests that were sent are rejected. */
  async terminate(): Promise<void> {
    const worker = this.#worker
    this.#worker = null
    this.#rejectSent('it was ended')
    await worker?.terminate()
  }

  /**
   * Accepts no more requests, waits for all replies, and ends the thread.
   * @param timeoutMs ms after which the thread is ended by force; absent = no limit
   */
  async close(timeoutMs?: number): Promise<void> {
    this.#isClosed = true
    const timer = timeoutMs === undefined ? undefined : setTimeout(() => {
      this.cancel('the thread took too long to close')
      void this.terminate()
    }, timeoutMs)
    await this.idle()
    if (this.#worker !== null) await closeThread(this.#worker)
    clearTimeout(timer)
  }

  #sendWaiting(): void {
    while (this.#waiting.length > 0 && (this.#options.serial !== true || this.#sent.size === 0)) {
      const pending = this.#waiting.shift() as PendingRequest
      const { id, message, transfer } = pending
      this.#sent.set(id, pending)
      this.start()
      this.#worker?.postMessage({ id, message } satisfies ThreadRequest, transfer)
    }
    if (this.pending > 0) {
      this.#worker?.ref()
      return
    }
    this.#worker?.unref()
    this.#resolveIdle?.()
    this.#resolveIdle = null
  }

  #startWorker(): Worker {
    const { name, script, workerData } = this.#options
    let hasReplied = false
    const worker = startThread({
      name, script, workerData,
      onMessage: (reply: ThreadReply) => {
        hasReplied = true
        this.#handleReply(reply)
      },
      onExit: cause => this.#handleExit(worker, cause, hasReplied),
    })
    worker.unref()
    return worker
  }

  #handleReply(reply: ThreadReply): void {
    const pending = this.#sent.get(reply.id)
    this.#sent.delete(reply.id)
    if ('value' in reply) pending?.resolve(reply.value)
    else pending?.reject(new ThreadError('thrown', reply.error.message, reply.error))
    this.#sendWaiting()
  }

  #handleExit(worker: Worker, cause: string, hasReplied: boolean): void {
    if (worker !== this.#worker) return
    this.#worker = null
    this.#options.onExit?.(cause, hasReplied)
    this.#rejectSent(cause)
  }

  #rejectSent(cause: string): void {
    const sent = [...this.#sent.values()]
    this.#sent.clear()
    for (const { reject } of sent) reject(new ThreadError('ended', cause))
    this.#sendWaiting()
  }
}
