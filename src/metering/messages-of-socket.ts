import * as ws from 'ws'
import type { Writable } from 'node:stream'
import { Room } from './room.ts'
import type { TakeRoom } from './room.ts'
import { MAX_EVENT } from './sse.ts'

/** What ws reads frames with, fragments, control frames and compression; its types leave it out. */
interface Library {
  readonly Receiver: new (options: {
    extensions: Record<string, Inflate>
    maxPayload: number
    maxFragments: number
    maxBufferedChunks: number
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

/** Bytes in front of a control frame's payload, which nobody masked. */
const CONTROL_HEAD = 2

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
  /** It has said that it says no more. */
  #concluded = false

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
      // The defaults of a server of ws.
      maxFragments: 16 * 1024,
      maxBufferedChunks: 256 * 1024,
      skipUTF8Validation: true,
    })
    const control = (payload: Buffer) => (this.#pending -= payload.length + CONTROL_HEAD)
    this.#receiver.on('message', (message: Buffer) => {
      // One may have been on its way out of zlib.
      if (this.lost) return
      this.#pending = 0
      this.#room.hold(this.#receiver.writableLength)
      onMessage(message)
    })
    this.#receiver.on('ping', control).on('pong', control)
    this.#receiver.on('conclude', () => (this.#concluded = true)).on('error', () => this.#lose())
  }

  push(chunk: Buffer): void {
    if (this.lost || this.#concluded) return
    const { length } = chunk
    // What waits to be inflated is kept, too.
    const kept = Math.max(0, this.#pending) + this.#receiver.writableLength + length
    if (!this.#room.hold(kept)) this.#lose()
    else this.#receiver.write(chunk, () => (this.#pending += length))
  }

  /** No more will come. Resolves once all that came is read. */
  end(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    if (this.#receiver.destroyed) resolve()
    else this.#receiver.once('close', resolve).end()
    return promise.finally(() => {
      this.#room.hold(0)
      // Something may be on its way out of it, which would miss it.
      if (!this.lost) this.#inflate?.cleanup()
    })
  }

  #lose(): void {
    this.lost = true
    this.#receiver.destroy()
    this.#room.hold(0)
  }

  /** What inflates messages, where the two sides agreed on that. */
  #inflateFor(extensions: string | null): Inflate | null {
    if (!extensions) return null
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
