import type { Clock, Timer } from '../../base/clock.ts'
import { GatewayError } from '../../base/errors.ts'

/** Limits, in ms and bytes, for the rest of a response that is read only to be dropped. */
const TIMEOUT = 1_000
const MAX_BYTES = 64 * 1024

/** A sink that reads and drops, for a short time, the bytes after the protocol's end. */
export class DiscardedRest {
  readonly #timer: Timer
  readonly #abort: (reason: GatewayError) => void
  #bytes = 0

  constructor(clock: Clock, abort: (reason: GatewayError) => void) {
    this.#abort = abort
    this.#timer = clock.setTimeout(() => this.#giveUp(), TIMEOUT)
  }

  data(chunk: Buffer): boolean {
    this.#bytes += chunk.length
    if (this.#bytes > MAX_BYTES) this.#giveUp()
    return true
  }

  end(): void {
    this.#timer.cancel()
  }

  broken(): void {
    this.#timer.cancel()
  }

  #giveUp(): void {
    this.#timer.cancel()
    this.#abort(new GatewayError('client_gone', 'the client has the whole response, and the upstream does not end it'))
  }
}
