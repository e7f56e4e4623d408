import { Worker } from 'node:worker_threads'
import { messageOf } from '../../base/message-of.ts'
import { threadUrl } from '../../base/thread-url.ts'
import type { Desk, DeskOptions } from './console-store.ts'
import type { Answer, Question, Remote } from './messages.ts'

/** The desk could not do what it was asked. */
export class DeskError extends Error {
  override readonly name = 'DeskError'
  /** `taken` and its kin, where the store of keys told so; `down` where the desk could not be asked. */
  readonly code: string | null

  constructor(code: string | null, message: string) {
    super(message)
    this.code = code
  }
}

interface Waiting {
  resolve(value: never): void
  reject(error: DeskError): void
}

/** ms that a question may wait for its answer; a key's change may wait for other processes. */
const PATIENCE = 15_000
/** ms that it may take to close. */
const CLOSING = 2_000

/**
 * The main thread's end of the desk. The thread begins with the first question;
 * one that dies is followed by another at the next.
 */
export class DeskLink {
  readonly #options: DeskOptions
  readonly #waiting = new Map<number, Waiting>()
  #worker: Worker | null = null
  #ids = 0
  #closed = false

  constructor(options: DeskOptions) {
    this.#options = options
  }

  /** @throws {DeskError} */
  ask<M extends keyof Desk>(method: M, ...args: Parameters<Desk[M]>): ReturnType<Remote[M]> {
    const id = ++this.#ids
    const { promise, resolve, reject } = Promise.withResolvers<never>()
    const timer = setTimeout(() => {
      this.#waiting.delete(id)
      reject(new DeskError('down', 'the store does not answer'))
    }, PATIENCE).unref()
    void promise.then(() => clearTimeout(timer), () => clearTimeout(timer))
    this.#waiting.set(id, { resolve, reject })
    if (this.#closed) this.#fail('the gateway is about to end')
    else send(this.#thread(), { id, method, args })
    return promise as ReturnType<Remote[M]>
  }

  async close(): Promise<void> {
    const worker = this.#worker
    this.#closed = true
    if (worker === null) return
    worker.ref()
    send(worker, { id: 0, method: 'close', args: [] })
    const force = setTimeout(() => void worker.terminate(), CLOSING)
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
    worker.on('message', (answer: Answer) => this.#hear(answer))
    worker.on('error', error => {
      cause = messageOf(error)
    })
    worker.on('exit', () => {
      if (this.#worker === worker) this.#worker = null
      this.#fail(cause)
    })
    worker.unref()
    return this.#worker = worker
  }

  #hear(answer: Answer): void {
    const waiting = this.#waiting.get(answer.id)
    this.#waiting.delete(answer.id)
    if ('fault' in answer) waiting?.reject(new DeskError(answer.fault.code, answer.fault.message))
    else waiting?.resolve(answer.value as never)
  }

  #fail(cause: string): void {
    const what = this.#options.consoleFile ?? 'the store'
    for (const { reject } of this.#waiting.values()) {
      reject(new DeskError('down', `${what} cannot be used: ${cause}`))
    }
    this.#waiting.clear()
  }
}

function send(worker: Worker, question: Question): void {
  worker.postMessage(question, [])
}
