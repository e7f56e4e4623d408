import type { Clock, Timer } from '../../base/clock.ts'
import type { ClientFormat } from '../../protocols/endpoint/protocol.ts'
import type { Relay } from './relay.ts'

/** Milliseconds before the first event and between events. An error before the first event still gets its own HTTP status. */
const KEEP_ALIVE_INTERVAL = 10_000

/** Sends keep-alive events to a client that waits for a stream or for the rest of a stream. */
export class KeepAliveTimer {
  readonly #clock: Clock
  readonly #relay: Relay
  readonly #format: ClientFormat
  #timer: Timer | null = null

  constructor(clock: Clock, relay: Relay, format: ClientFormat) {
    this.#clock = clock
    this.#relay = relay
    this.#format = format
  }

  get isRunning(): boolean {
    return this.#timer !== null
  }

  start(): void {
    this.#timer ??= this.#clock.setTimeout(this.#send, KEEP_ALIVE_INTERVAL)
  }

  stop(): void {
    this.#timer?.cancel()
    this.#timer = null
  }

  readonly #send = (): void => {
    this.#relay.openEventStream()
    this.#relay.sendEvents(this.#format.keepAlive)
    this.#timer = this.#clock.setTimeout(this.#send, KEEP_ALIVE_INTERVAL)
  }
}
