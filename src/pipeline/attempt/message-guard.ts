import { GatewayError, asGatewayError } from '../../base/errors.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { MessageCheck } from '../respond/session-reservations.ts'
import { SocketMessages } from '../../protocols/events/socket-messages.ts'

/** Checks each message of a WebSocket's client before the upstream gets its last bytes. The messages must not be compressed. */
export class MessageGuard {
  readonly #messages: SocketMessages
  readonly #refuse: (error: GatewayError) => void
  #undecided: Promise<void>[] = []

  /** @param check throws or rejects if the upstream must not get a message @param refuse ends the connection at once */
  constructor(exchange: Exchange, check: MessageCheck, refuse: (error: GatewayError) => void) {
    this.#refuse = refuse
    this.#messages = new SocketMessages('client', null, exchange.memory.reserveForResponse, message => {
      try {
        const deciding = check(message)
        if (deciding !== null) this.#undecided.push(deciding)
      } catch (error) {
        refuse(asGatewayError(error))
      }
    })
  }

  /** Call this before forwarding the chunk. @returns null = forward the chunk now; a promise = forward it when the promise is resolved */
  push(chunk: Buffer): Promise<void> | null {
    this.#messages.push(chunk)
    if (this.#messages.unreadable) this.#refuse(new GatewayError('bad_framing', 'a message of the client cannot be read, or is too large'))
    if (this.#undecided.length === 0) return null
    const undecided = this.#undecided
    this.#undecided = []
    return Promise.all(undecided).then(() => undefined, error => this.#refuse(asGatewayError(error)))
  }
}
