import { AsyncLocalStorage } from 'node:async_hooks'
import { randomUUID } from 'node:crypto'
import { Alarm } from './alarm.ts'
import { encode } from './columns.ts'
import type { Values } from './columns.ts'
import { LedgerEntry } from './entry.ts'
import type { LedgerRow } from './row.ts'
import type { Batch } from './store.ts'
import { troubleOf } from './failure.ts'
import type { Trouble, TroubleCode } from './failure.ts'
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
  /** False while rows cannot be written. */
  readonly healthy: boolean
  /** The last trouble, with its time (ms since 1970); it may be over. */
  readonly lastError: (Trouble & { readonly at: number }) | null
}

/**
 * The ledger as the request path sees it. No call blocks, waits or throws;
 * whatever goes wrong is told to the callbacks and counted in stats.
 *
 * A row that was closed is safe from kill -9 within some 30 ms while the disk
 * answers.
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
  progress(entry: LedgerEntry): void
  /**
   * The request ended. Its row is not to be changed afterwards.
   *
   * @param entry none where it was never opened
   */
  close(row: LedgerRow, entry?: LedgerEntry | null): void
  stats(): LedgerStats
  /**
   * Rows, ended or in flight, that may not be in the file yet, for whoever reads that
   * and is to miss none. Of one request the last counts.
   */
  unwritten(): Values[]
  /** Resolves when the file is open, or when the first try has failed. */
  ready(): Promise<void>
  /** Resolves when nothing waits: all is written, or counted as lost. */
  flush(): Promise<void>
  /**
   * Writes what waits and closes the file. What cannot be written in time is lost
   * and counted; so is what is closed afterwards. A file that could not be written
   * before is tried once more, and not waited for.
   * @param patience ms, 5000 unless told
   */
  shutdown(patience?: number): Promise<void>
}

export interface LedgerOptions {
  /** Path; the directory is made where it is missing. */
  readonly file: string
  /** ms that rows are kept; null = for ever. */
  readonly keep: number | null
  /** The most rows that wait in memory, 100,000 unless told: some 1 kB each. */
  readonly maxWaiting?: number
  /** Called when rows cannot be kept or written, at each change of the cause, and again each minute. */
  readonly onTrouble: (trouble: Trouble, stats: LedgerStats) => void
  /** Called when rows are written again. */
  readonly onRecovered: (stats: LedgerStats) => void
}

/**
 * ms between batches while rows keep coming; the first goes at once. Longer would
 * save CPU (a batch rewrites each index page once), and make more rows unsafe.
 */
const INTERVAL = 25
const BATCH = 1000
/** Batches that wait in the thread; the others wait here, where drafts give way to their rows. */
const WINDOW = 4
const MAX_WAITING = 100_000
const PATIENCE = 5000

/**
 * Opens the ledger and begins to write to it in a thread. Returns at once: an
 * unusable file is told by onTrouble, and tried again for ever.
 */
export function openLedger(options: LedgerOptions): Ledger {
  return new ThreadedLedger(options)
}

class ThreadedLedger implements Ledger {
  readonly #options: LedgerOptions
  readonly #maxWaiting: number
  readonly #link: WriterLink
  /** In the order of their first arrival. */
  #waiting: LedgerEntry[] = []
  readonly #flushes: { readonly seq: number; readonly resolve: () => void }[] = []
  readonly #alarm: Alarm
  /** A batch is many requests' affair, and in the course of none of them. */
  readonly #outside = AsyncLocalStorage.snapshot()
  #awaiting = 0
  #sentRows = 0
  #seq = 0
  #sentAt = -Infinity
  #scheduled = false
  readonly #ready = Promise.withResolvers<void>()
  #ending: Promise<void> | null = null
  #healthy = true
  #written = 0
  #lost = 0
  #interrupted = 0

  constructor(options: LedgerOptions) {
    this.#options = options
    this.#maxWaiting = options.maxWaiting ?? MAX_WAITING
    this.#alarm = new Alarm(trouble => options.onTrouble(trouble, this.stats()))
    this.#link = new WriterLink({ file: options.file, instance: randomUUID(), keep: options.keep }, {
      written: (batch, lost, refused) => this.#acknowledge(batch, lost, refused),
      interrupted: requests => {
        this.#interrupted += requests
      },
      trouble: trouble => {
        this.#healthy = false
        this.#ready.resolve()
        this.#alarm.raise(trouble)
      },
      well: () => this.#recover(),
    })
  }

  open(draft: () => LedgerRow): LedgerEntry {
    const entry = new LedgerEntry(draft)
    this.#add(entry)
    return entry
  }

  progress(entry: LedgerEntry): void {
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
      waiting: this.#waiting.length + this.#sentRows,
      lost: this.#lost,
      interrupted: this.#interrupted,
      healthy: this.#healthy,
      lastError: this.#alarm.last,
    }
  }

  unwritten(): Values[] {
    const sent = this.#link.unwritten.flatMap(({ drafts, closed }) => [...drafts, ...closed])
    const waiting = this.#waiting.flatMap(({ row, draft }) => {
      try {
        const known = row ?? draft?.()
        return known ? [encode(known)] : []
      } catch {
        // That is told when it is to be written.
        return []
      }
    })
    return [...sent, ...waiting]
  }

  ready(): Promise<void> {
    return this.#awaited(this.#ready.promise)
  }

  flush(): Promise<void> {
    const seq = this.#seq + Math.ceil(this.#waiting.length / BATCH)
    if (this.#waiting.length === 0 && this.#link.unwritten.length === 0) return Promise.resolve()
    this.#send()
    return this.#awaited(new Promise(resolve => this.#flushes.push({ seq, resolve })))
  }

  shutdown(patience = PATIENCE): Promise<void> {
    return this.#ending ??= this.#end(patience)
  }

  #add(entry: LedgerEntry): void {
    if (entry.waits) return
    const isClosed = entry.row !== null
    if (this.#ending !== null) {
      if (isClosed) this.#lose(1, 'shutdown', 'a request ended after the ledger was closed')
      return
    }
    if (this.#waiting.length + this.#sentRows >= this.#maxWaiting) {
      if (isClosed) this.#lose(1, 'overflow', `${this.#maxWaiting} rows wait: more are not kept`)
      return
    }
    entry.waits = true
    this.#waiting.push(entry)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#scheduled || this.#link.unwritten.length >= WINDOW) return
    this.#scheduled = true
    const run = () => {
      this.#scheduled = false
      this.#send()
    }
    const wait = this.#sentAt + INTERVAL - performance.now()
    if (wait <= 0) this.#outside(setImmediate, run)
    else this.#outside(setTimeout, run, wait).unref()
  }

  #send(): void {
    while (this.#waiting.length > 0 && this.#link.unwritten.length < WINDOW) {
      const batch = this.#cut()
      this.#sentRows += batch.drafts.length + batch.closed.length
      this.#sentAt = performance.now()
      this.#link.send(batch)
    }
  }

  #cut(): Batch {
    const drafts: Values[] = []
    const closed: Values[] = []
    const hadDraft: boolean[] = []
    for (const entry of this.#waiting.splice(0, BATCH)) {
      entry.waits = false
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
        this.#lose(row === null ? 0 : 1, 'row', troubleOf(error).message)
      }
    }
    this.#seq += 1
    return { seq: this.#seq, drafts, closed, hadDraft }
  }

  #acknowledge(batch: Batch, lost: number, refused: Trouble | null): void {
    this.#sentRows -= batch.drafts.length + batch.closed.length
    this.#written += batch.closed.length - lost
    if (refused !== null) this.#lose(lost, refused.code, refused.message)
    for (let next = this.#flushes[0]; next !== undefined && next.seq <= batch.seq; next = this.#flushes[0]) {
      this.#flushes.shift()
      next.resolve()
    }
    // Somebody waits: now rather than at the next turn.
    if (this.#flushes.length > 0) this.#send()
    else if (this.#waiting.length > 0) this.#schedule()
  }

  #recover(): void {
    this.#ready.resolve()
    this.#alarm.end()
    if (this.#healthy) return
    this.#healthy = true
    this.#options.onRecovered(this.stats())
  }

  #lose(rows: number, code: TroubleCode, message: string): void {
    this.#lost += rows
    this.#alarm.raise({ code, message })
  }

  /** Somebody waits for it: the process is not to end before. */
  async #awaited(promise: Promise<void>): Promise<void> {
    this.#awaiting += 1
    this.#link.keepAlive(true)
    await promise
    this.#awaiting -= 1
    this.#link.keepAlive(this.#awaiting > 0)
  }

  async #end(patience: number): Promise<void> {
    const started = performance.now()
    // Locks pass. What else keeps the file from being written is tried once more by the thread as it ends.
    if (this.#healthy || this.#alarm.last?.code === 'locked') await within(patience, this.flush())
    else this.#send()
    await this.#link.close(Math.max(0, started + patience - performance.now()))
    this.#giveUp()
  }

  #giveUp(): void {
    let rows = 0
    for (const { row } of this.#waiting) rows += row === null ? 0 : 1
    for (const batch of this.#link.unwritten) rows += batch.closed.length
    this.#waiting = []
    this.#sentRows = 0
    if (rows > 0) this.#lose(rows, 'shutdown', `${rows} rows could not be written before the end`)
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
