import type { Clock } from '../base/clock.ts'
import { networkOf } from '../base/network-of.ts'
import { Bucket } from './bucket.ts'

/** Wrong keys that one address can send at once. After them, the address can send one every 0.6 s. */
const PER_MINUTE = 100
/** If more addresses send wrong keys, the oldest address is forgotten. */
const MAX_ADDRESSES = 10_000
/** Minimum ms between two reports about one address. */
const REPORT_INTERVAL = 60_000

export interface GuessLimitOptions {
  readonly clock: Pick<Clock, 'monotonic'>
  onLimited(address: string): void
}

interface AddressState {
  readonly wrongKeys: Bucket
  /** When the address was last reported, ms on the monotonic clock. */
  reportedAt: number
}

/** Limits how many wrong keys one address can send. All IPv6 addresses of a /64 network count as one address. */
export class GuessLimit {
  readonly #options: GuessLimitOptions
  readonly #states = new Map<string, AddressState>()

  constructor(options: GuessLimitOptions) {
    this.#options = options
  }

  /** @returns ms until the address may send another wrong key; 0 = now */
  wait(address: string): number {
    if (this.#states.size === 0) return 0
    return this.#states.get(networkOf(address))?.wrongKeys.wait(1, this.#now()) ?? 0
  }

  /** Counts wrong keys. @returns ms until the address may send another wrong key; 0 = now */
  count(address: string, keys: number): number {
    if (address === '') return 0
    const now = this.#now()
    const state = this.#stateOf(networkOf(address), now)
    const wait = state.wrongKeys.wait(1, now)
    if (wait === 0) {
      state.wrongKeys.add(keys, now)
    } else if (now - state.reportedAt >= REPORT_INTERVAL) {
      state.reportedAt = now
      this.#options.onLimited(address)
    }
    return wait
  }

  #now(): number {
    return Math.floor(this.#options.clock.monotonic())
  }

  #stateOf(network: string, now: number): AddressState {
    let state = this.#states.get(network)
    if (state === undefined) {
      const [oldest] = this.#states.keys()
      if (oldest !== undefined && this.#states.size >= MAX_ADDRESSES) this.#states.delete(oldest)
      state = { wrongKeys: new Bucket(PER_MINUTE, now), reportedAt: -Infinity }
      this.#states.set(network, state)
    }
    return state
  }
}
