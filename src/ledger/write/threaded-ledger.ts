import { AsyncLocalStorage } from 'node:async_hooks'
import { randomUUID } from 'node:crypto'
import { Alarm } from './alarm.ts'
import { decode, encode, type RowValues } from '../columns.ts'
import { EntryQueue } from './entry-queue.ts'
import { LedgerEntry } from '../entry.ts'
import { toLedgerFailure, type LedgerFailure, type LedgerFailureCode } from '../ledger-failure.ts'
import type { Batch } from './ledger-store.ts'
import type { Ledger, LedgerOptions, LedgerStats } from './ledger.ts'
import type { LedgerRow } from '../row.ts'
import { WriterLink } from './writer-link.ts'

/** Milliseconds between two batches. A longer time would need less CPU, but lose more rows if the process is killed. */
const BATCH_INTERVAL_MS = 25
const MAX_BATCH_ROWS = 1000
/** Maximum batches that wait in the thread. Further entries wait in the queue, where a final row replaces its checkpoint. */
const MAX_BATCHES_IN_FLIGHT = 4
const MAX_WAITING = 100_000
const SHUTDOWN_TIMEOUT_MS = 5000

/** Starts a thread that writes the ledger. If the file is unusable, calls `onFailure` and retries without limit. */
export function openLedger(options: LedgerOptions): Ledger {
  return new ThreadedLedger(options)
}

class ThreadedLedger implements Ledger {
  readonly #options: LedgerOptions
  readonly #maxWaiting: number
  readonly #link: WriterLink
  readonly #waiting = new EntryQueue()
  readonly #flushes: { readonly seq: number; readonly resolve: () => void }[] = []
  readonly #alarm: Alarm
  /** Sends batches outside the async context of a request, because a batch has rows of many requests. */
  readonly #runOutsideRequest = AsyncLocalStorage.snapshot()
  #waiters = 0
  #sentRows = 0
  #seq = 0
  #sentAt = -Infinity
  #scheduled = false
  readonly #ready = Promise.withResolvers<void>()
  #shutdownPromise: Promise<void> | null = null
  #healthy = true
  #written = 0
  #lost = 0
  #interrupted = 0
  #failures = 0

  constructor(options: LedgerOptions) {
    this.#options = options
    this.#maxWaiting = options.maxWaiting ?? MAX_WAITING
    this.#alarm = new Alarm(failure => options.onFailure(failure, this.stats()))
    const { file, keep, isShipped = false } = options
    this.#link = new WriterLink({ file, instance: randomUUID(), keep, isShipped }, {
      written: (batch, lost, refused) => this.#acknowledge(batch, lost, refused),
      interrupted: rows => {
        this.#interrupted += rows.length
        options.onInterrupted?.(rows.map(decode))
      },
      failed: failure => {
        this.#failures += 1
        this.#healthy = false
        this.#ready.resolve()
        this.#alarm.raise(failure)
      },
      recovered: () => this.#recover(),
    })
  }

  open(draft: () => LedgerRow): LedgerEntry {
    const entry = new LedgerEntry(draft)
    this.#add(entry)
    return entry
  }

  updateDraft(entry: LedgerEntry): void {
    // Write no checkpoint after the final row.
    if (entry.row === null) this.#add(entry)
  }

  close(row: LedgerRow, entry: LedgerEntry | null = null): void {
    const closed = entry ?? new LedgerEntry(null)
    closed.draft = null
    closed.row = row
    this.#add(closed)
  }

  stats(): LedgerStats {
    return {
      written: this.#written,
      waiting: this.#waiting.size + this.#sentRows,
      lost: this.#lost,
      interrupted: this.#interrupted,
      failures: this.#failures,
      healthy: this.#healthy,
      lastError: this.#alarm.last,
    }
  }

  unwritten(): RowValues[] {
    const sent = this.#link.unwritten.flatMap(({ drafts, closed }) => [...drafts, ...closed])
    const waiting = [...this.#waiting].flatMap(({ row, draft }) => {
      try {
        const known = row ?? draft?.()
        return known ? [encode(known)] : []
      } catch {
        // Ignore an error of `draft` here, because writing the checkpoint reports it.
        return []
      }
    })
    return [...sent, ...waiting]
  }

  ready(): Promise<void> {
    return this.#keepAliveUntil(this.#ready.promise)
  }

  flush(): Promise<void> {
    const seq = this.#seq + Math.ceil(this.#waiting.size / MAX_BATCH_ROWS)
    if (this.#waiting.size === 0 && this.#link.unwritten.length === 0) return Promise.resolve()
    this.#send()
    return this.#keepAliveUntil(new Promise(resolve => this.#flushes.push({ seq, resolve })))
  }

  shutdown(timeoutMs = SHUTDOWN_TIMEOUT_MS): Promise<void> {
    return this.#shutdownPromise ??= this.#runShutdown(timeoutMs)
  }

  #add(entry: LedgerEntry): void {
    const isClosed = entry.row !== null
    const isWaiting = entry.place !== null
    if (isWaiting && (!isClosed || this.#shutdownPromise !== null)) return
    if (this.#shutdownPromise !== null) {
      if (isClosed) this.#recordLost(1, 'shutdown', 'a request ended after the ledger was closed')
      return
    }
    if (!isWaiting && this.#waiting.size + this.#sentRows >= this.#maxWaiting) {
      if (isClosed) this.#recordLost(1, 'overflow', `${this.#maxWaiting} rows wait: more are not kept`)
      return
    }
    this.#waiting.push(entry)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#scheduled || this.#link.unwritten.length >= MAX_BATCHES_IN_FLIGHT) return
    this.#scheduled = true
    const run = () => {
      this.#scheduled = false
      this.#send()
    }
    const wait = this.#sentAt + BATCH_INTERVAL_MS - performance.now()
    if (wait <= 0) this.#runOutsideRequest(setImmediate, run)
    else this.#runOutsideRequest(setTimeout, run, wait).unref()
  }

  #send(): void {
    while (this.#waiting.size > 0 && this.#link.unwritten.length < MAX_BATCHES_IN_FLIGHT) {
      const batch = this.#takeBatch()
      this.#sentRows += batch.drafts.length + batch.closed.length
      this.#sentAt = performance.now()
      this.#link.send(batch)
    }
  }

  #takeBatch(): Batch {
    const drafts: RowValues[] = []
    const closed: RowValues[] = []
    const hadDraft: boolean[] = []
    for (const entry of this.#waiting.take(MAX_BATCH_ROWS)) {
      const { row, draft } = entry
      try {
        if (row !== null) {
          closed.push(encode(row))
          hadDraft.push(entry.isDrafted)
        } else if (draft !== null) {
          drafts.push(encode(draft()))
          entry.isDrafted = true
        }
      } catch (error) {
        this.#recordLost(row === null ? 0 : 1, 'row', toLedgerFailure(error).message)
      }
    }
    this.#seq += 1
    return { seq: this.#seq, drafts, closed, hadDraft }
  }

  #acknowledge(batch: Batch, lost: number, refused: LedgerFailure | null): void {
    this.#sentRows -= batch.drafts.length + batch.closed.length
    this.#written += batch.closed.length - lost
    if (refused !== null) this.#recordLost(lost, refused.code, refused.message)
    for (let next = this.#flushes[0]; next !== undefined && next.seq <= batch.seq; next = this.#flushes[0]) {
      this.#flushes.shift()
      next.resolve()
    }
    // While a flush waits, send the next batch at once.
    if (this.#flushes.length > 0) this.#send()
    else if (this.#waiting.size > 0) this.#schedule()
  }

  #recover(): void {
    this.#ready.resolve()
    this.#alarm.end()
    if (this.#healthy) return
    this.#healthy = true
    this.#options.onRecovered(this.stats())
  }

  #recordLost(rows: number, code: LedgerFailureCode, message: string): void {
    this.#lost += rows
    this.#alarm.raise({ code, message })
  }

  async #keepAliveUntil(promise: Promise<void>): Promise<void> {
    this.#waiters += 1
    this.#link.keepAlive(true)
    await promise
    this.#waiters -= 1
    this.#link.keepAlive(this.#waiters > 0)
  }

  async #runShutdown(patience: number): Promise<void> {
    const started = performance.now()
    // Wait for a lock, which other processes release. After other failures, do not wait: the thread tries once more when it ends.
    if (this.#healthy || this.#alarm.last?.code === 'locked') await within(patience, this.flush())
    else this.#send()
    await this.#link.close(Math.max(0, started + patience - performance.now()))
    this.#dropUnwritten()
  }

  #dropUnwritten(): void {
    let rows = 0
    for (const { row } of this.#waiting) rows += row === null ? 0 : 1
    for (const batch of this.#link.unwritten) rows += batch.closed.length
    this.#waiting.take(Infinity)
    this.#sentRows = 0
    if (rows > 0) this.#recordLost(rows, 'shutdown', `${rows} rows could not be written before the end`)
    for (const { resolve } of this.#flushes.splice(0)) resolve()
    this.#ready.resolve()
  }
}

/** Resolves when the promise resolves, or after `ms`. */
async function within(ms: number, promise: Promise<void>): Promise<void> {
  const { promise: up, resolve } = Promise.withResolvers<void>()
  const deadline = setTimeout(resolve, ms)
  await Promise.race([promise, up])
  clearTimeout(deadline)
}
