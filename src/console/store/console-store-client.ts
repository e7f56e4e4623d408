import { Worker } from 'node:worker_threads'
import { messageOf } from '../../base/message-of.ts'
import { threadUrl } from '../../base/thread-url.ts'
import type { ConsoleStore, ConsoleStoreOptions } from './console-store.ts'
import type { StoreReply, StoreCall, RemoteStore } from './messages.ts'

/** The desk could not do what it was asked. */
export class ConsoleStoreError extends Error {
  override readonly name = 'DeskError'
  /** `taken` and its kin, where the store of keys told so; `down` where the desk could not be asked. */
  readonly code: string | null

  constructor(code: string | null, message: string) {
    super(message)
    this.code = code
  }
}

interface PendingCall {
  resolve(value: never): void
  reject(error: ConsoleStoreError): void
}

/** ms that a question may wait for its answer; a key's change may wait for other processes. */
const CALL_TIMEOUT = 15_000
/** ms that it may take to close. */
const CLOSE_TIMEOUT = 2_000

/**
 * The main thread's end of the desk. The thread begins with the first question;
 * one that dies is followed by another at the next.
 */
export class ConsoleStoreClient {
  readonly #options: ConsoleStoreOptions
  readonly #pending = new Map<number, PendingCall>()
  #worker: Worker | null = null
  #lastId = 0
  #closed = false

  constructor(options: ConsoleStoreOptions) {
    this.#options = options
  }

  /** @throws {ConsoleStoreError} */
  call<M extends keyof ConsoleStore>(method: M, ...args: Parameters<ConsoleStore[M]>): ReturnType<RemoteStore[M]> {
    const id = ++this.#lastId
    const { promise, resolve, reject } = Promise.withResolvers<never>()
    const timer = setTimeout(() => {
      this.#pending.delete(id)
      reject(new ConsoleStoreError('down', 'the store does not answer'))
    }, CALL_TIMEOUT).unref()
    void promise.then(() => clearTimeout(timer), () => clearTimeout(timer))
    this.#pending.set(id, { resolve, reject })
    if (this.#closed) this.#rejectAll('the gateway is about to end')
    else send(this.#thread(), { id, method, args })
    return promise as ReturnType<RemoteStore[M]>
  }

  async close(): Promise<void> {
    const worker = this.#worker
    this.#closed = true
    if (worker === null) return
    worker.ref()
    send(worker, { id: 0, method: 'close', args: [] })
    const force = setTimeout(() => void worker.terminate(), CLOSE_TIMEOUT)
    await new Promise<void>(resolve => worker.once('exit', () => resolve()))
    clearTimeout(force)
  }

  #thread(): Worker {
    if (this.#worker !== null) return this.#worker
    const worker = new Worker(threadUrl('desk-thread', import.meta.url), {
      name: 'console',
      workerData: this.#options,
      // What the process was started with (loaders, inspectors) is not for it.
      execArgv: [],
    })
    let cause = 'it ended by itself'
    worker.on('message', (answer: StoreReply) => this.#onMessage(answer))
    worker.on('error', error => {
      cause = messageOf(error)
    })
    worker.on('exit', () => {
      if (this.#worker === worker) this.#worker = null
      this.#rejectAll(cause)
    })
    worker.unref()
    return this.#worker = worker
  }

  #onMessage(answer: StoreReply): void {
    const waiting = this.#pending.get(answer.id)
    this.#pending.delete(answer.id)
    if ('fault' in answer) waiting?.reject(new ConsoleStoreError(answer.fault.code, answer.fault.message))
    else waiting?.resolve(answer.value as never)
  }

  #rejectAll(cause: string): void {
    const what = this.#options.consoleFile ?? 'the store'
    for (const { reject } of this.#pending.values()) {
      reject(new ConsoleStoreError('down', `${what} cannot be used: ${cause}`))
    }
    this.#pending.clear()
  }
}

function send(worker: Worker, question: StoreCall): void {
  worker.postMessage(question, [])
}
