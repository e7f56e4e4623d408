import * as ws from 'ws'
import type { Writable } from 'node:stream'
import { Room } from './room.ts'
import type { TakeRoom } from './room.ts'
import { MAX_EVENT } from './sse.ts'

/** What ws reads frames with (fragments, control frames between them, compression), which its types leave out. */
interface Library {
  readonly Receiver: new (options: {
    extensions: Record<string, Inflate>
    maxPayload: number
    skipUTF8Validation: boolean
  }) => Writable
  readonly PerMessageDeflate: {
    new (options: { isServer: boolean, maxPayload: number }): Inflate
    readonly extensionName: string
  }
  readonly extension: { parse(header: string): Record<string, unknown[]> }
}

interface Inflate {
  accept(params: unknown[]): void
  cleanup(): void
}

const { Receiver, PerMessageDeflate, extension } = ws as unknown as Library

/** The messages that a server says over a WebSocket (RFC 6455), read from the bytes that pass by. */
export class SocketMessages {
  /** Something cannot be read, or found no room: from there on nothing is. */
  lost = false
  readonly #receiver: Writable
  readonly #inflate: Inflate | null
  readonly #room: Room
  /** Bytes that were taken in since the last message. */
  #pending = 0

  /**
   * @param extensions what the handshake agreed on; null = nothing
   * @param room memory for messages that are not whole yet
   * @param onMessage called with each message, the last before `end` has settled
   */
  constructor(extensions: string | null, room: TakeRoom, onMessage: (message: Buffer) => void) {
    this.#room = new Room(room)
    this.#inflate = this.#inflateFor(extensions)
    this.#receiver = new Receiver({
      extensions: this.#inflate ? { [PerMessageDeflate.extensionName]: this.#inflate } : {},
      maxPayload: MAX_EVENT,
      skipUTF8Validation: true,
    })
    this.#receiver.on('message', (message: Buffer) => {
      this.#pending = 0
      this.#room.hold(this.#receiver.writableLength)
      onMessage(message)
    })
    this.#receiver.on('error', () => this.#lose())
  }

  push(chunk: Buffer): void {
    if (this.lost) return
    const { length } = chunk
    // What waits to be inflated is kept, too.
    if (!this.#room.hold(this.#pending + this.#receiver.writableLength + length)) this.#lose()
    else this.#receiver.write(chunk, () => (this.#pending += length))
  }

  /** No more will come. Resolves once all that came is read. */
  end(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    if (this.#receiver.destroyed) resolve()
    else this.#receiver.once('close', resolve).end(() => this.#receiver.destroy())
    return promise.finally(() => {
      this.#room.hold(0)
      this.#inflate?.cleanup()
    })
  }

  #lose(): void {
    this.lost = true
    this.#receiver.destroy()
    this.#room.hold(0)
  }

  /** What inflates messages, where the two sides agreed on that. */
  #inflateFor(extensions: string | null): Inflate | null {
    if (extensions === null) return null
    try {
      const agreed = extension.parse(extensions)[PerMessageDeflate.extensionName]
      if (agreed === undefined) return null
      const inflate = new PerMessageDeflate({ isServer: false, maxPayload: MAX_EVENT })
      inflate.accept(agreed)
      return inflate
    } catch {
      this.lost = true
      return null
    }
  }
}
