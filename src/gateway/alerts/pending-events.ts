import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import type { Logger } from 'pino'
import { messageOf } from '../../base/message-of.ts'
import { FILE_MODE } from '../../base/files/private-file.ts'

/** An event that is reported to the operator. */
export interface AlertEvent {
  /** The same id in each delivery of the event. */
  readonly id: string
  readonly type:
    | 'circuit.opened' | 'circuit.closed' | 'budget.reached' | 'ledger.failed' | 'ledger.recovered' | 'reload.rejected'
    | 'certificate.expiring' | 'store.failed' | 'store.recovered'
  /** Time of the event, ISO 8601. */
  readonly at: string
  readonly severity: 'error' | 'warning' | 'info'
  /** The upstream or key that the event concerns; null = neither. */
  readonly subject: string | null
  readonly message: string
  readonly data: Readonly<Record<string, unknown>>
}

/** Maximum number of events. If there are more, the oldest are dropped. */
const MAX_EVENTS = 1_000

/** Events that wait to be sent, in order. A file keeps the events while the gateway restarts. */
export class PendingEvents {
  readonly #file: string | null
  readonly #log: Logger
  readonly #events: AlertEvent[]
  #isSaving = false
  /** true if the file does not contain the latest change yet. */
  #isStale = false
  #isClosed = false
  #hasFailed = false
  #dropped = 0

  /** @param file null = the events are lost when the process ends */
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

  /** @param keepsFirst true while the first event is being sent: it is not dropped */
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

  /** Ends the queue. When this returns, the file contains all waiting events. */
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
        // `close` has written newer events to the file: older events must not replace them.
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
