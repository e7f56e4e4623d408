import { Worker } from 'node:worker_threads'
import type { MessagePort } from 'node:worker_threads'
import { messageOf } from '../message-of.ts'

export interface ThreadStart<M> {
  readonly name: string
  /** The thread's script. */
  readonly script: URL
  readonly workerData?: unknown
  readonly transferList?: MessagePort[]
  readonly onMessage?: (message: M) => void
  /** The thread has ended, for whatever reason. */
  readonly onExit: (cause: string) => void
}

/** Starts a thread. */
export function startThread<M>({ name, script, workerData, transferList = [], onMessage, onExit }: ThreadStart<M>): Worker {
  // The thread does not inherit the options of the process, such as loaders and inspectors.
  const worker = new Worker(script, { name, workerData, transferList, execArgv: [] })
  let cause = 'it ended by itself'
  if (onMessage) worker.on('message', onMessage)
  worker.on('error', error => {
    cause = messageOf(error)
  })
  worker.on('exit', () => onExit(cause))
  return worker
}

/**
 * Asks a thread to end, and waits for it.
 * @param timeoutMs ms after which it is ended by force; absent = no limit
 */
export async function closeThread(worker: Worker, timeoutMs?: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const force = timeoutMs === undefined ? undefined : setTimeout(() => void worker.terminate(), timeoutMs)
  worker.once('exit', () => resolve())
  worker.ref()
  worker.postMessage('close', [])
  await promise
  clearTimeout(force)
}

export interface Supervision<M> extends Omit<ThreadStart<M>, 'onExit'> {
  /** ms until a thread that died is restarted. Each further death doubles it, up to the second figure. */
  readonly restartDelayMs: readonly [first: number, last: number]
  /** The thread died, and will be restarted. */
  readonly onDeath: (cause: string) => void
  /** Messages to the dead thread that still matter can be sent again. */
  readonly onRestart?: () => void
}

/** A thread that is started at once, and again when it dies. */
export class SupervisedThread<M> {
  readonly #supervision: Supervision<M>
  #worker: Worker | null = null
  #restart: NodeJS.Timeout | null = null
  #restartDelay: number
  #isKeptAlive = false
  #isClosed = false

  constructor(supervision: Supervision<M>) {
    this.#supervision = supervision
    this.#restartDelay = supervision.restartDelayMs[0]
    this.#start()
  }

  /** Sends a message. It is dropped if the thread has died: a restarted thread gets only messages sent after its start. */
  post(message: unknown): void {
    this.#worker?.postMessage(message)
  }

  /** @param wanted the thread keeps the process alive, because a caller waits for it */
  keepAlive(wanted: boolean): void {
    this.#isKeptAlive = wanted
    if (wanted) this.#worker?.ref()
    else this.#worker?.unref()
  }

  /** The thread does its work: if it dies, it is restarted soon. */
  resetDelay(): void {
    this.#restartDelay = this.#supervision.restartDelayMs[0]
  }

  /** Sends 'close', and waits until the thread ends. @param timeoutMs ms until it is ended by force */
  async close(timeoutMs: number): Promise<void> {
    this.#isClosed = true
    if (this.#restart !== null) clearTimeout(this.#restart)
    if (this.#worker !== null) await closeThread(this.#worker, timeoutMs)
  }

  #start(): void {
    this.#restart = null
    this.#worker = startThread({ ...this.#supervision, onExit: cause => this.#exited(cause) })
    this.keepAlive(this.#isKeptAlive)
  }

  #exited(cause: string): void {
    this.#worker = null
    if (this.#isClosed) return
    this.#supervision.onDeath(cause)
    this.#restart = setTimeout(() => {
      this.#start()
      this.#supervision.onRestart?.()
    }, this.#restartDelay)
    this.#restartDelay = Math.min(this.#restartDelay * 2, this.#supervision.restartDelayMs[1])
  }
}
