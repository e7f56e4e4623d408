import type { Clock } from '../../base/clock.ts'
import { networkOf } from '../../base/network-of.ts'
import { Bucket } from '../../limits/bucket.ts'

/** Streams that the clients of one address may reset per minute: all at once, or 50 a second. */
const PER_MINUTE = 3_000
const BLOCK_TIME_MS = 60_000
/** Above this number, the address that was added first is dropped. */
const MAX_ADDRESSES = 10_000

export interface ResetLimitOptions {
  readonly clock: Clock
  /** Resets per minute and address; default 3,000. */
  readonly perMinute?: number
  /** A proxy in front of the gateway forwards for many clients: it is never blocked. */
  isExempt(address: string): boolean
  /** The address gets no new connections for this many seconds. */
  onBlocked(address: string, seconds: number): void
}

interface AddressState {
  readonly abandoned: Bucket
  /** On the monotonic clock; 0 = not blocked. */
  blockedUntil: number
}

/**
 * Limits how many HTTP/2 streams the clients of one address reset, over all its connections: resetting a stream after opening
 * it costs a client nothing, and the gateway a request (CVE-2023-44487, "rapid reset").
 */
export class ResetLimit {
  readonly #options: ResetLimitOptions
  readonly #perMinute: number
  /** By network. */
  readonly #states = new Map<string, AddressState>()

  constructor(options: ResetLimitOptions) {
    this.#options = options
    this.#perMinute = options.perMinute ?? PER_MINUTE
  }

  /** Counts a reset stream. @returns false = above the limit: the connection must end */
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

  /** Must new connections of the address be refused? */
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
