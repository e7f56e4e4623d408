import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import type { Logger } from 'pino'
import { messageOf } from '../../base/message-of.ts'
import { FILE_MODE } from '../../base/files/private-file.ts'

/** An event that is reported to the operator. */
export interface AlertEvent {
  /** Each delivery of the event has this id. */
  readonly id: string
  readonly type:
    | 'circuit.opened' | 'circuit.closed' | 'budget.reached' | 'ledger.failed' | 'ledger.recovered' | 'reload.rejected'
    | 'certificate.expiring' | 'store.failed' | 'store.recovered'
  /** ISO 8601 */
  readonly at: string
  readonly severity: 'error' | 'warning' | 'info'
  /** The upstream or key; null = the event is about neither. */
  readonly subject: string | null
  readonly message: string
  readonly data: Readonly<Record<string, unknown>>
}

/** Above this number, the oldest events are dropped. */
const MAX_EVENTS = 1_000

/** Events that wait to be sent, in order. A file keeps them over a restart. */
export class PendingEvents {
  readonly #file: string | null
  readonly #log: Logger
  readonly #events: AlertEvent[]
  #isSaving = false
  /** The file does not contain the latest change yet. */
  #isStale = false
  #isClosed = false
  #hasFailed = false
  #dropped = 0

  /** @param file null = events are lost when the process ends */
  constructor(file: string | null, log: Logger) {
    this.#file = file
    this.#log = log
    this.#events = file === null ? [] : readEvents(file, log)
  }

  get first(): AlertEvent | undefined {
    return this.#events[0]
  }

  get dropped(): number {
    return this.#dropped
  }

  /** @param keepsFirst the first event is being sent, so it is not dropped */
  add(event: AlertEvent, keepsFirst: boolean): void {
    this.#events.push(event)
    if (this.#events.length > MAX_EVENTS) {
      this.#events.splice(keepsFirst ? 1 : 0, 1)
      this.#dropped++
    }
    this.#changed()
  }

  removeFirst(): void {
    this.#events.shift()
    this.#changed()
  }

  /** Waiting events are in the file when this returns. */
  close(): void {
    this.#isClosed = true
    if (this.#file === null || !this.#isSaving) return
    try {
      const part = `${this.#file}.last`
      writeFileSync(part, this.#text, { mode: FILE_MODE })
      renameSync(part, this.#file)
    } catch (error) {
      this.#failed(error)
    }
  }

  #changed(): void {
    if (this.#file === null || this.#isClosed) return
    this.#isStale = true
    if (!this.#isSaving) void this.#saveAll(this.#file)
  }

  async #saveAll(file: string): Promise<void> {
    const part = `${file}.new`
    this.#isSaving = true
    while (this.#isStale) {
      this.#isStale = false
      try {
        await writeFile(part, this.#text, { mode: FILE_MODE })
        // `close` has written newer events: a rename must not replace these by older ones.
        if (this.#isClosed) return
        renameSync(part, file)
        this.#hasFailed = false
      } catch (error) {
        this.#failed(error)
      }
    }
    this.#isSaving = false
  }

  get #text(): string {
    return JSON.stringify(this.#events)
  }

  #failed(error: unknown): void {
    if (!this.#hasFailed) this.#log.warn({ file: this.#file, why: messageOf(error) }, 'waiting alerts cannot be saved: a restart loses them')
    this.#hasFailed = true
  }
}

function readEvents(file: string, log: Logger): AlertEvent[] {
  try {
    const events: unknown = JSON.parse(readFileSync(file, 'utf8'))
    return Array.isArray(events) ? (events as AlertEvent[]).slice(-MAX_EVENTS) : []
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') log.warn({ file, why: messageOf(error) }, 'saved alerts cannot be read')
    return []
  }
}
