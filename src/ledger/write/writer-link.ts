import { Worker } from 'node:worker_threads'
import { messageOf } from '../../base/message-of.ts'
import { threadUrl } from '../../base/threads/thread-url.ts'
import type { LedgerFailure } from '../ledger-failure.ts'
import type { Batch } from './ledger-store.ts'
import type { StoredRow } from '../stored-values.ts'
import type { FromWriter, ToWriter, WriterOptions } from './writer-messages.ts'

const MIN_RESTART_DELAY_MS = 50
const MAX_RESTART_DELAY_MS = 5000

/** The events of the writing thread. */
export interface WriterEvents {
  /** A batch is done; `lost` of its ended requests were refused. */
  written(batch: Batch, lost: number, refused: LedgerFailure | null): void
  interrupted(rows: readonly StoredRow[]): void
  failed(trouble: LedgerFailure): void
  recovered(): void
}

/**
 * The writing thread, seen from the main thread. Keeps each batch until it is written. A
 * thread that dies is restarted and gets the unwritten batches again, which is harmless:
 * rows have a unique key.
 */
export class WriterLink {
  readonly #options: WriterOptions
  readonly #events: WriterEvents
  /** Batches that were sent but are not written yet. */
  readonly unwritten: Batch[] = []
  #worker: Worker | null = null
  #restart: NodeJS.Timeout | null = null
  #restartDelay = MIN_RESTART_DELAY_MS
  #isKeptAlive = false
  #closed: (() => void) | null = null

  constructor(options: WriterOptions, events: WriterEvents) {
    this.#options = options
    this.#events = events
    this.#start()
  }

  send(batch: Batch): void {
    this.unwritten.push(batch)
    this.#post(batch)
  }

  /** @param wanted whether somebody waits, so that the process must stay alive */
  keepAlive(wanted: boolean): void {
    this.#isKeptAlive = wanted
    if (wanted) this.#worker?.ref()
    else this.#worker?.unref()
  }

  /**
   * Ends the thread. Unwritten batches stay unwritten, except for those that it still writes.
   * @param timeoutMs ms until it is ended by force
   */
  async close(timeoutMs: number): Promise<void> {
    if (this.#restart !== null) clearTimeout(this.#restart)
    const worker = this.#worker
    if (worker === null) return
    worker.ref()
    await new Promise<void>(resolve => {
      const force = setTimeout(() => void worker.terminate(), timeoutMs)
      this.#closed = () => {
        clearTimeout(force)
        resolve()
      }
      this.#post('close')
    })
  }

  #post(message: ToWriter): void {
    this.#worker?.postMessage(message)
  }

  #start(): void {
    this.#restart = null
    const worker = new Worker(threadUrl('writer-thread', import.meta.url), {
      name: 'ledger',
      workerData: this.#options,
      // The options of the process (loaders, inspectors) are not for the thread.
      execArgv: [],
    })
    let cause = 'it ended by itself'
    worker.on('message', (message: FromWriter) => this.#handleMessage(message))
    worker.on('error', error => {
      cause = messageOf(error)
    })
    worker.on('exit', () => this.#threadExited(cause))
    this.#worker = worker
    this.keepAlive(this.#isKeptAlive)
    for (const batch of this.unwritten) this.#post(batch)
  }

  #handleMessage(message: FromWriter): void {
    switch (message.kind) {
      case 'written': {
        const batch = this.unwritten[0]
        // A response to the same batch, sent twice.
        if (batch?.seq !== message.seq) return
        this.unwritten.shift()
        this.#restartDelay = MIN_RESTART_DELAY_MS
        return this.#events.written(batch, message.lost, message.refused)
      }
      case 'interrupted':
        return this.#events.interrupted(message.rows)
      case 'trouble':
        return this.#events.failed(message.trouble)
      case 'well':
        return this.#events.recovered()
    }
  }

  #threadExited(cause: string): void {
    this.#worker = null
    if (this.#closed !== null) return this.#closed()
    this.#events.failed({ code: 'crash', message: `the writing thread died: ${cause}` })
    this.#restart = setTimeout(() => this.#start(), this.#restartDelay)
    this.#restartDelay = Math.min(this.#restartDelay * 2, MAX_RESTART_DELAY_MS)
  }
}
