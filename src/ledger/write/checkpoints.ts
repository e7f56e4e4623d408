import type { Worker } from 'node:worker_threads'
import { startThread } from '../../base/threads/supervised-thread.ts'
import { threadUrl } from '../../base/threads/thread-url.ts'

interface CheckpointTimes {
  /** ms from a first write to the first checkpoint. */
  readonly start: number
  /** ms without a write after which the write was a single one, which needs no thread. */
  readonly quiet: number
  /** ms without a write after which the thread (9 MB) ends. A start takes 50 to 90 ms of CPU, so short pauses must not end it. */
  readonly idle: number
}

const TIMES: CheckpointTimes = { start: 1000, quiet: 500, idle: 300_000 }

/** Copies the log into the database: the writer when nobody waits, a thread while writing continues. An ended thread leaves 5 MB used. */
export class Checkpoints {
  readonly #file: string
  readonly #checkpoint: () => boolean
  readonly #times: CheckpointTimes
  #thread: Worker | null = null
  #timer: NodeJS.Timeout | null = null
  #writtenAt = 0

  /** @param copy makes a checkpoint in this thread; false = there is more to copy */
  constructor(file: string, copy: () => boolean, times = TIMES) {
    this.#file = file
    this.#checkpoint = copy
    this.#times = times
  }

  written(): void {
    this.#writtenAt = performance.now()
    this.#timer ??= setTimeout(() => this.#onTimer(), this.#times.start)
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    this.#thread?.postMessage('close')
    this.#thread = null
  }

  #onTimer(): void {
    this.#timer = null
    if (performance.now() - this.#writtenAt < this.#times.quiet) this.#startThread()
    else if (!this.#checkpoint()) this.#timer ??= setTimeout(() => this.#onTimer(), this.#times.start)
  }

  #startThread(): void {
    const thread = startThread({
      name: 'ledger checkpoints',
      script: threadUrl('checkpoint-thread', import.meta.url),
      workerData: this.#file,
      // For example a full disk: the next write starts another thread.
      onExit: () => {
        if (this.#thread === thread) this.stop()
      },
    })
    this.#thread = thread
    this.#stopWhenIdle(this.#times.idle)
  }

  #stopWhenIdle(ms: number): void {
    this.#timer = setTimeout(() => {
      const left = this.#writtenAt + this.#times.idle - performance.now()
      if (left > 0) this.#stopWhenIdle(left)
      else this.stop()
    }, ms)
  }
}
