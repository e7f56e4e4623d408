import { SupervisedThread } from '../../base/threads/supervised-thread.ts'
import { threadUrl } from '../../base/threads/thread-url.ts'
import { Alarm } from '../../ledger/write/alarm.ts'
import type { LedgerFailure } from '../../ledger/ledger-failure.ts'
import type { FromShipper, ShipperOptions } from './shipper.ts'

export interface ShippingStats {
  /** Number of rows that PostgreSQL does not have yet. */
  readonly pending: number
  /** Number of rows that this process has sent. */
  readonly shipped: number
  readonly failures: number
  readonly healthy: boolean
  /** The last failure, which may be over; null = none. `at`: ms since 1970. */
  readonly lastError: (LedgerFailure & { readonly at: number }) | null
}

export interface ShippingEvents {
  /** Called when the cause of the failure changes, and once a minute while shipping fails. */
  onFailure(failure: LedgerFailure, stats: ShippingStats): void
  onRecovered(stats: ShippingStats): void
  /** Called when PostgreSQL has refused the rows of these requests, which stay in the file. */
  onRefused(requestIds: readonly string[]): void
}

/** Milliseconds to send the last rows at shutdown. */
const CLOSE_TIMEOUT_MS = 5_000
const RESTART_DELAY_MS = 1_000

/** Sends the rows of the ledger to PostgreSQL in a thread. Restarts the thread when it dies. */
export class Shipping {
  readonly #events: ShippingEvents
  readonly #alarm: Alarm
  readonly #thread: SupervisedThread<FromShipper>
  #stats: ShippingStats = { pending: 0, shipped: 0, failures: 0, healthy: true, lastError: null }
  /** Number of rows that earlier, dead threads have sent. */
  #shippedBefore = 0

  constructor(options: ShipperOptions, events: ShippingEvents) {
    this.#events = events
    this.#alarm = new Alarm(failure => events.onFailure(failure, this.#stats))
    this.#thread = new SupervisedThread({
      name: 'ledger shipping', script: threadUrl('shipping-thread', import.meta.url), workerData: options,
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

  /** Sends waiting rows for up to `CLOSE_TIMEOUT_MS`. Unsent rows stay in the file. */
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
