import { SupervisedThread } from '../../base/threads/supervised-thread.ts'
import { threadUrl } from '../../base/threads/thread-url.ts'
import type { LedgerFailure } from '../ledger-failure.ts'
import type { Batch } from './ledger-store.ts'
import type { StoredRow } from '../stored-values.ts'
import type { FromWriter, WriterOptions } from './writer-messages.ts'

/** The events of the writing thread. */
export interface WriterEvents {
  /** A batch is done; `lost` of its ended requests were refused. */
  written(batch: Batch, lost: number, refused: LedgerFailure | null): void
  interrupted(rows: readonly StoredRow[]): void
  failed(trouble: LedgerFailure): void
  recovered(): void
}

/**
 * The writing thread, seen from the main thread. Keeps each batch until it is written. If
 * the thread dies, it is restarted and gets the unwritten batches again. Writing a batch
 * twice is harmless, because rows have a unique key.
 */
export class WriterLink {
  readonly #events: WriterEvents
  readonly #thread: SupervisedThread<FromWriter>
  /** Batches that were sent but are not written yet. */
  readonly unwritten: Batch[] = []

  constructor(options: WriterOptions, events: WriterEvents) {
    this.#events = events
    this.#thread = new SupervisedThread({
      name: 'ledger',
      script: threadUrl('writer-thread', import.meta.url),
      workerData: options,
      restartDelayMs: [50, 5000],
      onMessage: message => this.#handleMessage(message),
      onDeath: cause => events.failed({ code: 'crash', message: `the writing thread died: ${cause}` }),
      onRestart: () => this.unwritten.forEach(batch => this.#thread.post(batch)),
    })
  }

  send(batch: Batch): void {
    this.unwritten.push(batch)
    this.#thread.post(batch)
  }

  /** @param wanted whether somebody waits, so that the process must stay alive */
  keepAlive(wanted: boolean): void {
    this.#thread.keepAlive(wanted)
  }

  /**
   * Ends the thread. Unwritten batches stay unwritten, except for those that it still writes.
   * @param timeoutMs ms until it is ended by force
   */
  close(timeoutMs: number): Promise<void> {
    return this.#thread.close(timeoutMs)
  }

  #handleMessage(message: FromWriter): void {
    switch (message.kind) {
      case 'written': {
        const batch = this.unwritten[0]
        // A response to the same batch, sent twice.
        if (batch?.seq !== message.seq) return
        this.unwritten.shift()
        this.#thread.resetDelay()
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
}
