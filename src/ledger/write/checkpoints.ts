import type { Worker } from 'node:worker_threads'
import { startThread } from '../../base/threads/supervised-thread.ts'
import { threadUrl } from '../../base/threads/thread-url.ts'

interface CheckpointTimes {
  /** Milliseconds from the first write to the first checkpoint. */
  readonly start: number
  /** Milliseconds. If no write follows within this time, the writer makes the checkpoint and no thread is started. */
  readonly quiet: number
  /** Milliseconds without a write after which the thread (9 MB) ends. Long, because a start takes 50 to 90 ms of CPU. */
  readonly idle: number
}

const TIMES: CheckpointTimes = { start: 1000, quiet: 500, idle: 300_000 }

/** Decides who copies the log into the database: the writer after single writes, a thread while writes continue. */
export class Checkpoints {
  readonly #file: string
  readonly #checkpoint: () => boolean
  readonly #times: CheckpointTimes
  #thread: Worker | null = null
  #timer: NodeJS.Timeout | null = null
  #writtenAt = 0

  /** @param copy makes a checkpoint in the writer's thread; returns false if there is more to copy */
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
      // If the thread dies, for example because the disk is full, the next write starts another thread.
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
