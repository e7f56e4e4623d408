import type { Clock } from '../../base/clock.ts'
import { networkOf } from '../../base/network-of.ts'
import { Bucket } from '../../limits/bucket.ts'

/** Streams that the clients of one address may reset per minute, at any rate within the minute: an average of 50 per second. */
const PER_MINUTE = 3_000
const BLOCK_TIME_MS = 60_000
/** Maximum number of addresses. If there are more, the address that was added first is dropped. */
const MAX_ADDRESSES = 10_000

export interface ResetLimitOptions {
  readonly clock: Clock
  /** Maximum resets per minute of one address; default 3,000. */
  readonly perMinute?: number
  /** Tells whether the address is never blocked, such as a proxy that forwards for many clients. */
  isExempt(address: string): boolean
  /** Called when an address is blocked: it gets no new connections for this many seconds. */
  onBlocked(address: string, seconds: number): void
}

interface AddressState {
  readonly abandoned: Bucket
  /** Time on the monotonic clock; 0 = the address is not blocked. */
  blockedUntil: number
}

/**
 * Limits the number of HTTP/2 streams that the clients of one address reset, over all their connections. To open and reset a stream costs
 * the client nothing, but costs the gateway a request (CVE-2023-44487, "rapid reset").
 */
export class ResetLimit {
  readonly #options: ResetLimitOptions
  readonly #perMinute: number
  /** The states, by network. */
  readonly #states = new Map<string, AddressState>()

  constructor(options: ResetLimitOptions) {
    this.#options = options
    this.#perMinute = options.perMinute ?? PER_MINUTE
  }

  /** Counts a stream that was reset. @returns false = above the limit: the connection must end */
  allows(address: string): boolean {
    const { clock, isExempt, onBlocked } = this.#options
    if (address === '' || isExempt(address)) return true
    const now = Math.floor(clock.monotonic())
    const state = this.#stateOf(networkOf(address), now)
    if (state.abandoned.wait(1, now) === 0) {
      state.abandoned.add(1, now)
      return true
    }
    if (state.blockedUntil <= now) onBlocked(address, BLOCK_TIME_MS / 1_000)
    state.blockedUntil = now + BLOCK_TIME_MS
    return false
  }

  /** Tells whether new connections of the address must be refused. */
  blocks(address: string): boolean {
    if (this.#states.size === 0) return false
    return (this.#states.get(networkOf(address))?.blockedUntil ?? 0) > this.#options.clock.monotonic()
  }

  #stateOf(network: string, now: number): AddressState {
    let state = this.#states.get(network)
    if (state === undefined) {
      const [oldest] = this.#states.keys()
      if (oldest !== undefined && this.#states.size >= MAX_ADDRESSES) this.#states.delete(oldest)
      state = { abandoned: new Bucket(this.#perMinute, now), blockedUntil: 0 }
      this.#states.set(network, state)
    }
    return state
  }
}
