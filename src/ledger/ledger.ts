import { AsyncLocalStorage } from 'node:async_hooks'
import { randomUUID } from 'node:crypto'
import { Alarm } from './alarm.ts'
import { decode, encode } from './columns.ts'
import type { RowValues } from './columns.ts'
import { EntryQueue } from './entry-queue.ts'
import { LedgerEntry } from './entry.ts'
import { toLedgerFailure } from './ledger-failure.ts'
import type { LedgerFailure, LedgerFailureCode } from './ledger-failure.ts'
import type { LedgerRow } from './row.ts'
import type { Batch } from './ledger-store.ts'
import { WriterLink } from './writer-link.ts'

/** What the ledger knows of its own state. */
export interface LedgerStats {
  /** Ended requests that are safe in the file. */
  readonly written: number
  /** Rows in memory: not yet in the file, ended or still in flight. */
  readonly waiting: number
  /** Ended requests that could not be kept, and never will be. */
  readonly lost: number
  /** Requests of processes that died, entered by this one as they were left. */
  readonly interrupted: number
  /** Attempts to write that failed. */
  readonly failures: number
  /** False while rows cannot be written. */
  readonly healthy: boolean
  /** The last trouble, with its time (ms since 1970); it may be over. */
  readonly lastError: (LedgerFailure & { readonly at: number }) | null
}

/**
 * The ledger as the request path sees it. No call blocks, waits or throws;
 * failures are reported to the callbacks and counted in stats.
 *
 * Rows are written in the order in which they were closed, so that kill -9 costs
 * the last ones alone: usually those of some 30 ms, and more where the machine has
 * no time for the thread that writes, or the disk does not answer.
 */
export interface Ledger {
  /**
   * A request was admitted. A refused one needs no draft.
   *
   * @param draft tells its row as it is to stand if the process dies: with the
   *   estimates of what it uses, and `interrupted` unless all that is left is to
   *   count. Asked when that is written, and again after each `progress`; never
   *   after `close`.
   * @returns for what follows
   */
  open(draft: () => LedgerRow): LedgerEntry
  /**
   * There is a better draft of an open request: once it is known which upstream
   * answers, now and then, about once a second, while a stream runs, and when it
   * has ended and is still to be counted.
   */
  updateDraft(entry: LedgerEntry): void
  /**
   * The request ended. Its row is not to be changed afterwards.
   *
   * @param entry none where it was never opened
   */
  close(row: LedgerRow, entry?: LedgerEntry | null): void
  stats(): LedgerStats
  /**
   * Rows, ended or in flight, that may not be in the file yet: with them, a reader of the
   * file misses none. Of one request the last counts.
   */
  unwritten(): RowValues[]
  /** Resolves when the file is open, or when the first try has failed. */
  ready(): Promise<void>
  /** Resolves when nothing waits: all is written, or counted as lost. */
  flush(): Promise<void>
  /**
   * Writes what waits and closes the file. What cannot be written in time is lost
   * and counted; so is what is closed afterwards. A file that could not be written
   * before is tried once more, and not waited for.
   * @param timeoutMs ms, default 5000
   */
  shutdown(timeoutMs?: number): Promise<void>
}

export interface LedgerOptions {
  /** Path; the directory is made where it is missing. */
  readonly file: string
  /** ms that rows are kept; null = for ever. */
  readonly keep: number | null
  /** Rows go to PostgreSQL: none is deleted before it is there. Default: they do not. */
  readonly isShipped?: boolean
  /** Most rows that wait in memory, about 1 kB each; default 100,000. */
  readonly maxWaiting?: number
  /** Called when rows cannot be kept or written, at each change of the cause, and again each minute. */
  readonly onFailure: (trouble: LedgerFailure, stats: LedgerStats) => void
  /** Called when rows are written again. */
  readonly onRecovered: (stats: LedgerStats) => void
  /** Called with the rows of requests of processes that died, when they are entered. */
  readonly onInterrupted?: (rows: readonly LedgerRow[]) => void
}

/**
 * ms between batches while rows keep coming; the first goes at once. Longer would
 * save CPU (a batch rewrites each index page once), and make more rows unsafe.
 */
const BATCH_INTERVAL_MS = 25
const MAX_BATCH_ROWS = 1000
/** Batches that wait in the thread; the others wait here, where drafts give way to their rows. */
const MAX_BATCHES_IN_FLIGHT = 4
const MAX_WAITING = 100_000
const SHUTDOWN_TIMEOUT_MS = 5000

/**
 * Opens the ledger and begins to write to it in a thread. Returns at once: an
 * unusable file is reported by onTrouble, and tried again without end.
 */
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
  /** A batch is many requests' affair, and in the course of none of them. */
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
    this.#alarm = new Alarm(trouble => options.onFailure(trouble, this.stats()))
    const { file, keep, isShipped = false } = options
    this.#link = new WriterLink({ file, instance: randomUUID(), keep, isShipped }, {
      written: (batch, lost, refused) => this.#acknowledge(batch, lost, refused),
      interrupted: rows => {
        this.#interrupted += rows.length
        options.onInterrupted?.(rows.map(decode))
      },
      failed: trouble => {
        this.#failures += 1
        this.#healthy = false
        this.#ready.resolve()
        this.#alarm.raise(trouble)
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
    // After the row it would be late, and of no use.
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
        // The write reports it.
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
    // Somebody waits: now rather than at the next turn.
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

  /** Somebody waits for it: the process is not to end before. */
  async #keepAliveUntil(promise: Promise<void>): Promise<void> {
    this.#waiters += 1
    this.#link.keepAlive(true)
    await promise
    this.#waiters -= 1
    this.#link.keepAlive(this.#waiters > 0)
  }

  async #runShutdown(patience: number): Promise<void> {
    const started = performance.now()
    // Locks pass. What else keeps the file from being written is tried once more by the thread as it ends.
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

/** Resolves with the promise, or after so many ms. */
async function within(ms: number, promise: Promise<void>): Promise<void> {
  const { promise: up, resolve } = Promise.withResolvers<void>()
  const deadline = setTimeout(resolve, ms)
  await Promise.race([promise, up])
  clearTimeout(deadline)
}
