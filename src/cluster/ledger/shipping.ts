import { SupervisedThread } from '../../base/threads/supervised-thread.ts'
import { threadUrl } from '../../base/threads/thread-url.ts'
import { Alarm } from '../../ledger/write/alarm.ts'
import type { LedgerFailure } from '../../ledger/ledger-failure.ts'
import type { FromShipper, ShipperOptions } from './shipper.ts'

/** The state of shipping to PostgreSQL. */
export interface ShippingStats {
  /** Rows that PostgreSQL does not have yet. */
  readonly pending: number
  /** Rows that this process has sent. */
  readonly shipped: number
  /** Failed attempts. */
  readonly failures: number
  /** False while rows cannot be sent. */
  readonly healthy: boolean
  /** The last failure, with its time (ms since 1970); it may be over. */
  readonly lastError: (LedgerFailure & { readonly at: number }) | null
}

export interface ShippingEvents {
  /** Called when rows cannot be sent: at each change of the cause, and once a minute. */
  onFailure(failure: LedgerFailure, stats: ShippingStats): void
  /** Called when rows are sent again. */
  onRecovered(stats: ShippingStats): void
  /** Called with the ids of requests whose rows PostgreSQL refused: they stay in the file. */
  onRefused(requestIds: readonly string[]): void
}

/** ms at shutdown in which the last rows are sent. */
const CLOSE_TIMEOUT_MS = 5_000
const RESTART_DELAY_MS = 1_000

/** Sends the rows of the ledger to PostgreSQL in a thread, which is restarted when it dies. */
export class Shipping {
  readonly #events: ShippingEvents
  readonly #alarm: Alarm
  readonly #thread: SupervisedThread<FromShipper>
  #stats: ShippingStats = { pending: 0, shipped: 0, failures: 0, healthy: true, lastError: null }
  /** Rows that dead threads shipped. */
  #shippedBefore = 0

  constructor(options: ShipperOptions, events: ShippingEvents) {
    this.#events = events
    this.#alarm = new Alarm(failure => events.onFailure(failure, this.#stats))
    this.#thread = new SupervisedThread({
      name: 'ledger shipping',
      script: threadUrl('shipping-thread', import.meta.url),
      workerData: options,
      restartDelayMs: [RESTART_DELAY_MS, RESTART_DELAY_MS],
      onMessage: message => this.#handle(message),
      onDeath: cause => {
        this.#shippedBefore = this.#stats.shipped
        this.#fail({ code: 'crash', message: `the shipping thread died: ${cause}` })
      },
    })
  }

  stats(): ShippingStats {
    return this.#stats
  }

  /** Sends waiting rows for a few seconds, and ends. Unsent rows stay in the file. */
  close(): Promise<void> {
    return this.#thread.close(CLOSE_TIMEOUT_MS)
  }

  #handle(message: FromShipper): void {
    switch (message.kind) {
      case 'state':
        this.#stats = { ...this.#stats, pending: message.pending, shipped: this.#shippedBefore + message.shipped }
        return
      case 'failed':
        return this.#fail(message.failure)
      case 'recovered':
        this.#alarm.end()
        if (this.#stats.healthy) return
        this.#stats = { ...this.#stats, healthy: true }
        return this.#events.onRecovered(this.#stats)
      case 'refused':
        return this.#events.onRefused(message.requestIds)
    }
  }

  #fail(failure: LedgerFailure): void {
    const lastError = { ...failure, at: Date.now() }
    this.#stats = { ...this.#stats, failures: this.#stats.failures + 1, healthy: false, lastError }
    this.#alarm.raise(failure)
  }
}
