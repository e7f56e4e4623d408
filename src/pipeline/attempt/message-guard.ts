import { GatewayError, asGatewayError } from '../../base/errors.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { SocketMessages } from '../../protocols/events/socket-messages.ts'

/** Checks the messages of a WebSocket's client before the upstream gets their last bytes. They are not compressed. */
export class MessageGuard {
  readonly #messages: SocketMessages
  readonly #refuse: (error: GatewayError) => void

  /**
   * @param check throws if the upstream must not get a message
   * @param refuse ends the connection at once
   */
  constructor(exchange: Exchange, check: (message: Buffer) => void, refuse: (error: GatewayError) => void) {
    this.#refuse = refuse
    this.#messages = new SocketMessages('client', null, exchange.memory.reserveForResponse, message => {
      try {
        check(message)
      } catch (error) {
        refuse(asGatewayError(error))
      }
    })
  }

  /** Call it before forwarding the chunk. */
  push(chunk: Buffer): void {
    this.#messages.push(chunk)
    if (this.#messages.unreadable) this.#refuse(new GatewayError('bad_framing', 'a message of the client cannot be read, or is too large'))
  }
}
