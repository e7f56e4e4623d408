import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from '../../base/message-of.ts'
import { Database } from '../postgres/database.ts'
import { DatabaseError } from '../postgres/database-error.ts'
import { migrate } from '../postgres/migrate.ts'
import { ClusterLedger } from './cluster-ledger.ts'
import { toLedgerFailure, type LedgerFailure } from '../../ledger/ledger-failure.ts'
import { acquireLock } from '../../ledger/file/lock.ts'
import { Outbox } from './outbox.ts'

export interface ShipperOptions {
  /** The SQLite ledger. */
  readonly file: string
  readonly url: string
  readonly instance: string
  /** Milliseconds that rows are kept; null = forever. */
  readonly keep: number | null
}

export type FromShipper =
  /** Sent when the state changes. */
  | { readonly kind: 'state', /** Waiting rows. */ readonly pending: number, /** Rows sent since the start. */ readonly shipped: number }
  /** Shipping fails. The thread tries again. */
  | { readonly kind: 'failed', readonly failure: LedgerFailure }
  /** Sent at the first success, and at the first success after a failure. */
  | { readonly kind: 'recovered' }
  /** PostgreSQL has refused these rows as invalid. The rows stay in the file. */
  | { readonly kind: 'refused', readonly requestIds: readonly string[] }

const POLL_MS = 250
const MIN_RETRY_MS = 250
const MAX_RETRY_MS = 5_000
/** Milliseconds between two attempts to get the lock. */
const LOCKED_RETRY_MS = 2_000
const MAINTENANCE_MS = 10 * 60_000
/** Share of the time in which the thread pauses while many rows wait, so that requests and other gateways are not slowed down. */
const PAUSE_SHARE = 0.25

/**
 * Sends the rows of a SQLite ledger to PostgreSQL, in the order of their ids. If several processes write to one file, only the process that
 * holds a lock sends rows. The system releases the lock when the process dies.
 */
export class Shipper {
  readonly #options: ShipperOptions
  readonly #post: (message: FromShipper) => void
  readonly #database: Database
  readonly #ledger: ClusterLedger
  readonly #closing = new AbortController()
  #outbox: Outbox | null = null
  #releaseLock: (() => void) | null = null
  /** The journal's number in PostgreSQL; null = not registered yet. */
  #journal: number | null = null
  #retryMs = MIN_RETRY_MS
  #isHealthy = false
  #shipped = 0
  #reported = ''
  #maintainAt = 0

  constructor(options: ShipperOptions, post: (message: FromShipper) => void) {
    this.#options = options
    this.#post = post
    this.#database = new Database({ url: options.url, name: `gateway ledger ${options.instance}` })
    this.#ledger = new ClusterLedger(this.#database)
  }

  /** Ships rows until `close` is called. Never rejects. */
  async run(): Promise<void> {
    const { signal } = this.#closing
    while (!signal.aborted) await sleep(await this.#attempt(), undefined, { signal }).catch(() => undefined)
    // Ship the last rows. After a failure, the next process that opens the file ships them.
    let pause: number
    do pause = await this.#attempt()
    while (this.#isHealthy && pause !== POLL_MS)
    this.#database.close()
    this.#closeOutbox()
    this.#releaseLock?.()
  }

  /** Makes `run` ship the waiting rows and end. */
  close(): void {
    this.#closing.abort()
  }

  /** @returns ms until the next attempt */
  async #attempt(): Promise<number> {
    try {
      const pause = await this.#ship()
      this.#retryMs = MIN_RETRY_MS
      return pause
    } catch (error) {
      return this.#fail(error)
    } finally {
      this.#report()
    }
  }

  async #ship(): Promise<number> {
    if (!this.#acquireLock()) return LOCKED_RETRY_MS
    const outbox = this.#openOutbox()
    if (outbox === null) return POLL_MS
    this.#journal ??= await this.#register(outbox)
    const started = performance.now()
    const batch = outbox.next()
    const last = batch.at(-1)
    if (last === undefined) {
      await this.#maintain()
      this.#markHealthy()
      return POLL_MS
    }
    const refused = await this.#ledger.insert(this.#journal, batch.map(({ row }) => row))
    for (const { id, row } of batch) if (refused.includes(row)) outbox.markRefused(id)
    outbox.markShipped(last.id)
    this.#shipped += batch.length - refused.length
    this.#markHealthy()
    if (refused.length > 0) this.#post({ kind: 'refused', requestIds: refused.map(({ request_id: id }) => String(id)) })
    return outbox.size > 0 ? (performance.now() - started) * PAUSE_SHARE : POLL_MS
  }

  async #register({ journalId }: Outbox): Promise<number> {
    await migrate(this.#database)
    return this.#ledger.register(journalId, this.#options.instance)
  }

  async #maintain(): Promise<void> {
    const now = Date.now()
    if (now < this.#maintainAt) return
    await this.#ledger.expire(this.#options.keep, now)
    this.#maintainAt = now + MAINTENANCE_MS
  }

  #acquireLock(): boolean {
    if (this.#releaseLock !== null) return true
    try {
      this.#releaseLock = acquireLock(`${this.#options.file}-shipping`, 0)
      return true
    } catch (error) {
      if (toLedgerFailure(error).code === 'locked') return false
      throw error
    }
  }

  #openOutbox(): Outbox | null {
    if (this.#outbox?.isCurrent() === true) return this.#outbox
    // Open the file at the path, because the open file was moved. The new file is another journal.
    this.#closeOutbox()
    return this.#outbox = Outbox.open(this.#options.file)
  }

  #closeOutbox(): void {
    this.#outbox?.close()
    this.#outbox = null
    this.#journal = null
  }

  #fail(error: unknown): number {
    this.#isHealthy = false
    // Report the number of waiting rows before reporting the failure.
    this.#report()
    const failure: LedgerFailure = error instanceof DatabaseError
      ? { code: 'unshipped', message: messageOf(error) } : toLedgerFailure(error)
    this.#post({ kind: 'failed', failure })
    // Register the journal again, because the next connection can lead to another or a restored server.
    this.#journal = null
    const pause = this.#retryMs
    this.#retryMs = Math.min(this.#retryMs * 2, MAX_RETRY_MS)
    return pause
  }

  #markHealthy(): void {
    if (!this.#isHealthy) this.#post({ kind: 'recovered' })
    this.#isHealthy = true
  }

  #report(): void {
    const state = { pending: this.#pending(), shipped: this.#shipped }
    const text = JSON.stringify(state)
    if (text !== this.#reported) this.#post({ kind: 'state', ...state })
    this.#reported = text
  }

  #pending(): number {
    try {
      return this.#outbox?.size ?? 0
    } catch {
      // Ignore the error, because the next attempt reports the same error.
      return 0
    }
  }
}
