import type { Clock, Timer } from '../../base/clock.ts'
import { messageOf } from '../../base/message-of.ts'
import { noteEpochs, type SharedStore } from './shared-store.ts'

export interface StoreHeartbeatOptions {
  readonly clock: Clock
  readonly store: SharedStore
  /** Called with the cause when the store becomes unreachable, and with null when it is reachable again. */
  readonly onState: (why: string | null) => void
}

/** ms between two reports. After ten missing ones an instance counts as dead. */
const BEAT_MS = 2_000
/** ms between two probes of an unreachable store. */
const PROBE_MS = 250

/** Reports to the store, and knows whether it is reachable. */
export class StoreHeartbeat {
  /** Resolves at the first response of the store, or after a timeout. */
  readonly started: Promise<void>
  readonly #options: StoreHeartbeatOptions
  readonly #report: () => Promise<void>
  /** Written by this class. */
  isReachable = true
  isStopped = false
  #timer: Timer | null = null

  /** @param report rejects without a response */
  constructor(options: StoreHeartbeatOptions, report: () => Promise<void>) {
    this.#options = options
    this.#report = report
    this.started = this.#start()
  }

  /** A call has failed, so the store is unreachable. */
  lost(error: unknown): void {
    if (!this.isReachable) return
    this.isReachable = false
    this.#options.onState(messageOf(error))
    this.#schedule()
  }

  stop(): void {
    this.isStopped = true
    this.#timer?.cancel()
  }

  async #start(): Promise<void> {
    const { store } = this.#options
    await store.connected()
    if (this.isStopped) return
    await noteEpochs(store).catch((error: unknown) => this.lost(error))
    await this.#beat()
  }

  async #beat(): Promise<void> {
    if (!this.isReachable) {
      try {
        // The store may have lost its data.
        await noteEpochs(this.#options.store)
        this.isReachable = true
        this.#options.onState(null)
      } catch {
        // Already reported.
      }
    }
    if (this.isReachable) await this.#report().catch((error: unknown) => this.lost(error))
    this.#schedule()
  }

  #schedule(): void {
    // A failure during a beat has already scheduled the next one.
    this.#timer?.cancel()
    if (!this.isStopped) this.#timer = this.#options.clock.setTimeout(() => void this.#beat(), this.isReachable ? BEAT_MS : PROBE_MS)
  }
}
