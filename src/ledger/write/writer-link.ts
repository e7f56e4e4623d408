import { SupervisedThread } from '../../base/threads/supervised-thread.ts'
import { threadUrl } from '../../base/threads/thread-url.ts'
import type { LedgerFailure } from '../ledger-failure.ts'
import type { Batch } from './ledger-store.ts'
import type { StoredRow } from '../stored-values.ts'
import type { FromWriter, WriterOptions } from './writer-messages.ts'

interface WriterEvents {
  /** @param lost number of rows of ended requests that SQLite refused @param refused why; null = no row was refused */
  written(batch: Batch, lost: number, refused: LedgerFailure | null): void
  interrupted(rows: readonly StoredRow[]): void
  failed(trouble: LedgerFailure): void
  recovered(): void
}

/** Sends batches to the writing thread. A restarted thread gets unwritten batches again, which is safe because rows have unique keys. */
export class WriterLink {
  readonly #events: WriterEvents
  readonly #thread: SupervisedThread<FromWriter>
  /** Batches that were sent to the thread but are not written yet. */
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

  /** @param wanted true = the process must not end before the thread has replied */
  keepAlive(wanted: boolean): void {
    this.#thread.keepAlive(wanted)
  }

  /** Ends the thread. Batches that are not written in time stay in `unwritten`. @param timeoutMs ms until the thread is terminated */
  close(timeoutMs: number): Promise<void> {
    return this.#thread.close(timeoutMs)
  }

  #handleMessage(message: FromWriter): void {
    switch (message.kind) {
      case 'written': {
        const batch = this.unwritten[0]
        // Ignore the second reply to a batch that was sent twice.
        if (batch?.seq !== message.seq) return
        this.unwritten.shift()
        this.#thread.resetDelay()
        return this.#events.written(batch, message.lost, message.refused)
      }
      case 'interrupted':
        return this.#events.interrupted(message.rows)
      case 'trouble':
        return this.#events.failed(message.trouble)
      case 'healthy':
        return this.#events.recovered()
    }
  }
}
