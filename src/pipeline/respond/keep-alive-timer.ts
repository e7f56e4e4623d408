import type { Clock, Timer } from '../../base/clock.ts'
import type { ClientFormat } from '../../protocols/shared/protocol.ts'
import type { Relay } from './relay.ts'

/** Milliseconds before the first sign, and between two: a quick failure still gets its own status. */
const KEEP_ALIVE_INTERVAL = 10_000

/** Shows a client that waits for a stream, or for the rest of one, now and again that it is not forgotten. */
export class KeepAliveTimer {
  #timer: Timer | null = null

  start(clock: Clock, relay: Relay, format: ClientFormat): void {
    this.#timer = clock.setTimeout(() => {
      relay.openEventStream()
      relay.sendEvents(format.keepAlive)
      this.start(clock, relay, format)
    }, KEEP_ALIVE_INTERVAL)
  }

  stop(): void {
    this.#timer?.cancel()
  }
}
