import { Worker, type MessagePort } from 'node:worker_threads'
import { messageOf } from '../message-of.ts'

interface ThreadStart<M> {
  readonly name: string
  readonly script: URL
  readonly workerData?: unknown
  readonly transferList?: MessagePort[]
  readonly onMessage?: (message: M) => void
  readonly onExit: (cause: string) => void
}

export function startThread<M>({ name, script, workerData, transferList = [], onMessage, onExit }: ThreadStart<M>): Worker {
  // Set no options: otherwise the thread inherits the options of the process, such as loaders and inspectors.
  const worker = new Worker(script, { name, workerData, transferList, execArgv: [] })
  let cause = 'it ended by itself'
  if (onMessage) worker.on('message', onMessage)
  worker.on('error', error => {
    cause = messageOf(error)
  })
  worker.on('exit', () => onExit(cause))
  return worker
}

/** @param timeoutMs ms after which the thread is ended by force; absent = no limit */
export async function closeThread(worker: Worker, timeoutMs?: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const force = timeoutMs === undefined ? undefined : setTimeout(() => void worker.terminate(), timeoutMs)
  worker.once('exit', () => resolve())
  worker.ref()
  worker.postMessage('close', [])
  await promise
  clearTimeout(force)
}

interface Supervision<M> extends Omit<ThreadStart<M>, 'onExit'> {
  /** ms before a dead thread is restarted. The delay is doubled with each death, up to `last`. */
  readonly restartDelayMs: readonly [first: number, last: number]
  readonly onDeath: (cause: string) => void
  /** Called after a restart. The owner can post the messages again that the dead thread did not process. */
  readonly onRestart?: () => void
}

/** A thread that starts at once, and is restarted when it dies. */
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

  /** Sends a message to the thread. If the thread has died, the message is lost. */
  post(message: unknown): void {
    this.#worker?.postMessage(message)
  }

  /** @param wanted true while a caller waits for the thread: the thread then keeps the process alive */
  keepAlive(wanted: boolean): void {
    this.#isKeptAlive = wanted
    if (wanted) this.#worker?.ref()
    else this.#worker?.unref()
  }

  /** Resets the restart delay, because the thread works. */
  resetDelay(): void {
    this.#restartDelay = this.#supervision.restartDelayMs[0]
  }

  /** Sends 'close', and waits until the thread ends. @param timeoutMs ms after which the thread is ended by force */
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
