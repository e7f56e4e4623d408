import type { Clock, Timer } from '../../base/clock.ts'
import { messageOf } from '../../base/message-of.ts'
import { noteEpochs } from './shared-store.ts'
import type { SharedStore } from './shared-store.ts'

export interface StoreHeartbeatOptions {
  readonly clock: Clock
  readonly store: SharedStore
  /** Called with the reason when the store becomes unreachable, and with null when it is reachable again. */
  readonly onState: (why: string | null) => void
}

/** ms between two reports of this instance. After ten missing ones it counts as dead. */
const BEAT_MS = 2_000
/** ms between two probes of an unreachable store. */
const PROBE_MS = 250

/** Reports to the store, and knows whether it is reachable. */
export class StoreHeartbeat {
  /** Resolves when the store has responded for the first time, or after a while without a response. */
  readonly started: Promise<void>
  readonly #options: StoreHeartbeatOptions
  readonly #report: () => Promise<void>
  #isReachable = true
  #isStopped = false
  #timer: Timer | null = null

  /** @param report rejects when the store does not respond */
  constructor(options: StoreHeartbeatOptions, report: () => Promise<void>) {
    this.#options = options
    this.#report = report
    this.started = this.#start()
  }

  get isReachable(): boolean {
    return this.#isReachable
  }

  get isStopped(): boolean {
    return this.#isStopped
  }

  /** A call has failed: the store is unreachable. */
  lost(error: unknown): void {
    if (!this.#isReachable) return
    this.#isReachable = false
    this.#options.onState(messageOf(error))
    this.#schedule()
  }

  stop(): void {
    this.#isStopped = true
    this.#timer?.cancel()
  }

  async #start(): Promise<void> {
    const { store } = this.#options
    await store.connected()
    if (this.#isStopped) return
    await noteEpochs(store).catch((error: unknown) => this.lost(error))
    await this.#beat()
  }

  async #beat(): Promise<void> {
    if (!this.#isReachable) {
      try {
        // It may have lost its data in between.
        await noteEpochs(this.#options.store)
        this.#isReachable = true
        this.#options.onState(null)
      } catch {
        // Already reported.
      }
    }
    if (this.#isReachable) await this.#report().catch((error: unknown) => this.lost(error))
    this.#schedule()
  }

  #schedule(): void {
    // A store that fails during a beat has already scheduled the next one.
    this.#timer?.cancel()
    if (!this.#isStopped) this.#timer = this.#options.clock.setTimeout(() => void this.#beat(), this.#isReachable ? BEAT_MS : PROBE_MS)
  }
}
