import { Worker } from 'node:worker_threads'
import { sibling } from './thread.ts'

/** ms from a first write to the start of the thread, which takes its time and is in no hurry. */
const START = 1000
/** ms without a write after which the thread, which takes 9 MB, ends; its last checkpoint is long made. */
const IDLE = 10_000

/** The checkpoint thread, while there is something for it to copy. */
export class Checkpoints {
  readonly #file: string
  #thread: Worker | null = null
  #timer: NodeJS.Timeout | null = null
  #writtenAt = 0

  /** @param file the ledger's path */
  constructor(file: string) {
    this.#file = file
  }

  /** Something was written. */
  written(): void {
    this.#writtenAt = performance.now()
    this.#timer ??= setTimeout(() => this.#start(), START)
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    this.#thread?.postMessage('close')
    this.#thread = null
  }

  #start(): void {
    this.#thread = new Worker(sibling('checkpoint-thread', import.meta.url), {
      name: 'ledger checkpoints',
      workerData: this.#file,
      execArgv: [],
    })
    // Without it the writer makes the checkpoints itself, later.
    this.#thread.on('error', () => undefined)
    this.#timer = setInterval(() => {
      if (performance.now() - this.#writtenAt > IDLE) this.stop()
    }, IDLE)
  }
}
