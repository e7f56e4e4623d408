import { Checkpoints } from './checkpoints.ts'
import { toLedgerFailure, type LedgerFailure } from '../ledger-failure.ts'
import { LedgerStore, type Batch } from './ledger-store.ts'
import type { FromWriter, WriterOptions } from './writer-messages.ts'

const MIN_RETRY_DELAY_MS = 50
const MAX_RETRY_DELAY_MS = 5000
/** Milliseconds that shipped rows stay in the file, so that they can be read while PostgreSQL is unreachable. */
const SHIPPED_KEEP_MS = 2 * 86_400_000

/** Writes batches in order, and retries. Runs in a separate thread, because each call can block. */
export class Writer {
  readonly #options: WriterOptions
  readonly #post: (message: FromWriter) => void
  readonly #batches: Batch[] = []
  readonly #activeTasks = new Set<'sum' | 'expire'>()
  readonly #checkpoints: Checkpoints
  #store: LedgerStore | null = null
  #retry: NodeJS.Timeout | null = null
  #retryDelay = MIN_RETRY_DELAY_MS
  #isHealthy = false
  #closed = false

  constructor(options: WriterOptions, post: (message: FromWriter) => void) {
    this.#options = options
    this.#checkpoints = new Checkpoints(options.file, () => this.#checkpoint())
    this.#post = post
  }

  write(batch: Batch): void {
    this.#batches.push(batch)
    this.#attempt(store => this.#writeAll(store))
  }

  /** Opens the file, and writes the checkpoints of dead processes as rows. */
  recover(): void {
    this.#attempt(store => this.#recover(store))
  }

  sum(): void {
    this.#runInSteps('sum', store => store.sum())
  }

  /** Deletes expired rows, and rows that PostgreSQL has and that are older than `SHIPPED_KEEP_MS`. */
  expire(): void {
    const { keep, isShipped } = this.#options
    // Sum all rows first, because only summed rows can be deleted.
    this.#runInSteps('expire', store => {
      const now = Date.now()
      return store.sum() || store.expire(keep === null ? null : now - keep, now)
        || (isShipped && store.trim(now - SHIPPED_KEEP_MS)) || store.vacuum()
    })
  }

  /** Tries once more to write, and closes the file. Requests that are still running get rows as interrupted. */
  close(): void {
    if (this.#retry !== null) clearTimeout(this.#retry)
    this.#retry = null
    if (this.#batches.length > 0) this.#attempt(store => this.#writeAll(store))
    if (this.#retry !== null) clearTimeout(this.#retry)
    this.#checkpoints.stop()
    this.#store?.close()
    this.#store = null
    this.#closed = true
  }

  /** @returns true = everything was copied from the log into the database */
  #checkpoint(): boolean {
    let isAll = false
    this.#attempt(store => {
      isAll = store.checkpoint()
    })
    return isAll || this.#closed
  }

  /** Runs a task in pieces, and writes waiting batches between them. @param piece returns true if there may be more */
  #runInSteps(work: 'sum' | 'expire', piece: (store: LedgerStore) => boolean): void {
    if (this.#activeTasks.has(work)) return
    this.#attempt(store => {
      if (!piece(store)) return
      this.#activeTasks.add(work)
      setImmediate(() => {
        this.#activeTasks.delete(work)
        this.#runInSteps(work, piece)
      })
    })
  }

  #attempt(work: (store: LedgerStore) => void): void {
    if (this.#retry !== null || this.#closed) return
    try {
      work(this.#store ?? this.#open())
      this.#markHealthy()
    } catch (error) {
      this.#reportFailure(this.#handleFailure(error))
      this.#retry = setTimeout(() => {
        this.#retry = null
        this.#attempt(store => this.#writeAll(store))
      }, this.#retryDelay)
      this.#retryDelay = Math.min(this.#retryDelay * 2, MAX_RETRY_DELAY_MS)
    }
  }

  #writeAll(store: LedgerStore): void {
    for (let batch = this.#batches[0]; batch !== undefined; batch = this.#batches[0]) {
      const rejected = store.write(batch)
      this.#checkpoints.written()
      this.#batches.shift()
      this.#markHealthy()
      const refused = rejected === null ? null : toLedgerFailure(rejected.error)
      this.#post({ kind: 'written', seq: batch.seq, lost: rejected?.closed ?? 0, refused })
    }
  }

  #recover(store: LedgerStore): void {
    const rows = store.recover()
    if (rows.length > 0) this.#post({ kind: 'interrupted', rows })
  }

  #open(): LedgerStore {
    const { file, instance, isShipped } = this.#options
    const store = new LedgerStore(file, instance, isShipped)
    this.#store = store
    if (store.quarantinedAs !== null) {
      const message = `the file was unreadable: it is kept as ${store.quarantinedAs}, and a new one was started`
      this.#reportFailure({ code: 'corrupt', message })
    }
    this.#recover(store)
    return store
  }

  #handleFailure(error: unknown): LedgerFailure {
    const trouble = toLedgerFailure(error, this.#options.file)
    const store = this.#store
    // Keep the file open after a lock or with a full disk, because the file is still usable.
    if (store === null || trouble.code === 'locked' || trouble.code === 'full') return trouble
    this.#checkpoints.stop()
    this.#store = null
    if (trouble.code !== 'corrupt') {
      store.abandon()
      return trouble
    }
    const kept = store.quarantine()
    return kept === null ? trouble : { ...trouble, message: `${trouble.message}: it is kept as ${kept}` }
  }

  #markHealthy(): void {
    if (!this.#isHealthy) this.#post({ kind: 'healthy' })
    this.#isHealthy = true
    this.#retryDelay = MIN_RETRY_DELAY_MS
  }

  #reportFailure(trouble: LedgerFailure): void {
    this.#isHealthy = false
    this.#post({ kind: 'trouble', trouble })
  }
}
