import type { Clock, Timer } from '../../base/clock.ts'
import { keepAlive } from '../../protocols/keep-alive.ts'
import type { ProtocolName } from '../../protocols/shared/names.ts'
import type { Relay } from '../../proxy/relay.ts'

/** Milliseconds before the first sign, and between two: a quick failure still gets its own status. */
const EVERY = 10_000

/** Shows a client that waits for a stream, or for the rest of one, now and again that it is not forgotten. */
export class SignsOfLife {
  #timer: Timer | null = null

  begin(clock: Clock, relay: Relay, protocol: ProtocolName): void {
    this.#timer = clock.setTimeout(() => {
      relay.open()
      relay.say(keepAlive(protocol))
      this.begin(clock, relay, protocol)
    }, EVERY)
  }

  end(): void {
    this.#timer?.cancel()
  }
}
