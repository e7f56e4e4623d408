import { Worker } from 'node:worker_threads'
import { threadUrl } from '../thread-url.ts'

export interface CheckpointTimes {
  /** ms from a first write to the start of the thread, which takes its time and is in no hurry. */
  readonly start: number
  /** ms without a write after which the thread, which takes 9 MB, ends with a last checkpoint. */
  readonly idle: number
}

const TIMES: CheckpointTimes = { start: 1000, idle: 3000 }

/** The checkpoint thread, while there is something for it to copy. */
export class Checkpoints {
  readonly #file: string
  readonly #times: CheckpointTimes
  #thread: Worker | null = null
  #timer: NodeJS.Timeout | null = null
  #writtenAt = 0

  /** @param file the ledger's path */
  constructor(file: string, times = TIMES) {
    this.#file = file
    this.#times = times
  }

  /** Something was written. */
  written(): void {
    this.#writtenAt = performance.now()
    this.#timer ??= setTimeout(() => this.#start(), this.#times.start)
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    this.#thread?.postMessage('close')
    this.#thread = null
  }

  #start(): void {
    this.#thread = new Worker(threadUrl('checkpoint-thread', import.meta.url), {
      name: 'ledger checkpoints',
      workerData: this.#file,
      execArgv: [],
    })
    // Without it the writer makes the checkpoints itself, later.
    this.#thread.on('error', () => undefined)
    this.#watch(this.#times.idle)
  }

  #watch(ms: number): void {
    this.#timer = setTimeout(() => {
      const left = this.#writtenAt + this.#times.idle - performance.now()
      if (left > 0) this.#watch(left)
      else this.stop()
    }, ms)
  }
}
