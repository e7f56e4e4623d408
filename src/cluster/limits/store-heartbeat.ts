import type { Clock, Timer } from '../../base/clock.ts'
import { messageOf } from '../../base/message-of.ts'
import { noteEpochs, type SharedStore } from './shared-store.ts'

export interface StoreHeartbeatOptions {
  readonly clock: Clock
  readonly store: SharedStore
  /** Called with the cause when the store becomes unreachable, and with null when it is reachable again. */
  readonly onState: (why: string | null) => void
}

/** Milliseconds between two reports. An instance counts as dead if ten reports are missing. */
const BEAT_MS = 2_000
/** Milliseconds between two probes of an unreachable store. */
const PROBE_MS = 250

/** Reports this instance's state to the store, and detects whether the store is reachable. */
export class StoreHeartbeat {
  /** Resolves at the first response of the store, or after a timeout. */
  readonly started: Promise<void>
  readonly #options: StoreHeartbeatOptions
  readonly #report: () => Promise<void>
  /** Written by this class. */
  isReachable = true
  isStopped = false
  #timer: Timer | null = null

  /** @param report rejects if the store does not respond */
  constructor(options: StoreHeartbeatOptions, report: () => Promise<void>) {
    this.#options = options
    this.#report = report
    this.started = this.#start()
  }

  /** Call this when a call to the store has failed: the store counts as unreachable from then on. */
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
        // Record the time again, because the store may have lost its data.
        await noteEpochs(this.#options.store)
        this.isReachable = true
        this.#options.onState(null)
      } catch {
        // The store is still unreachable, which was reported already.
      }
    }
    if (this.isReachable) await this.#report().catch((error: unknown) => this.lost(error))
    this.#schedule()
  }

  #schedule(): void {
    // Cancel the timer, because a failure during a beat has scheduled the next beat already.
    this.#timer?.cancel()
    if (!this.isStopped) this.#timer = this.#options.clock.setTimeout(() => void this.#beat(), this.isReachable ? BEAT_MS : PROBE_MS)
  }
}
