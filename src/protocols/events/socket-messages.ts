import type { Writable } from 'node:stream'
import * as ws from 'ws'
import { MemoryReservation } from '../../base/memory-reservation.ts'
import type { ReserveMemory } from '../../base/memory-reservation.ts'
import { MAX_EVENT } from './sse.ts'

/** What ws reads frames with, fragments, control frames and compression; its types leave it out. */
interface WsInternals {
  readonly Receiver: new (options: {
    isServer: boolean
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

/** Bytes in front of a control frame's payload; a client's has a mask, too. */
const CONTROL_HEADER_BYTES = { server: 2, client: 6 } as const

const { Receiver, PerMessageDeflate, extension } = ws as unknown as WsInternals

/** The messages that one side says over a WebSocket (RFC 6455), read from the bytes that pass by. */
export class SocketMessages {
  /** Something cannot be read, or found no room: from there on nothing is. */
  unreadable = false
  /** The code with which it has said that it says no more (RFC 6455 section 7.4); null = it has not. */
  closeCode: number | null = null
  readonly #receiver: Writable
  readonly #inflate: Inflate | null
  readonly #memory: MemoryReservation
  readonly #isMasked: boolean
  /** Bytes that were taken in since the last message. */
  #pending = 0

  /**
   * @param by whose messages they are
   * @param extensions what the handshake agreed on; null = nothing
   * @param room memory for messages that are not whole yet
   * @param onMessage called with each message, the last before `end` has settled
   */
  constructor(
    by: 'server' | 'client', extensions: string | null, room: ReserveMemory, onMessage: (message: Buffer) => void,
  ) {
    const isServer = by === 'client'
    this.#isMasked = isServer
    this.#memory = new MemoryReservation(room)
    this.#inflate = this.#createInflate(extensions, isServer)
    this.#receiver = new Receiver({
      isServer,
      extensions: this.#inflate ? { [PerMessageDeflate.extensionName]: this.#inflate } : {},
      maxPayload: MAX_EVENT,
      // The defaults of a server of ws.
      maxFragments: 16 * 1024,
      maxBufferedChunks: 256 * 1024,
      skipUTF8Validation: true,
    })
    const control = (payload: Buffer) => (this.#pending -= payload.length + CONTROL_HEADER_BYTES[by])
    this.#receiver.on('message', (message: Buffer) => {
      // One may have been on its way out of zlib.
      if (this.unreadable) return
      this.#pending = 0
      this.#memory.resize(this.#receiver.writableLength)
      onMessage(message)
    })
    this.#receiver.on('ping', control).on('pong', control)
    this.#receiver.on('conclude', (code: number) => (this.closeCode = code)).on('error', () => this.#fail())
  }

  push(chunk: Buffer): void {
    if (this.unreadable || this.closeCode !== null) return
    const { length } = chunk
    // What waits to be inflated is kept, too.
    const kept = Math.max(0, this.#pending) + this.#receiver.writableLength + length
    if (!this.#memory.resize(kept)) this.#fail()
    else this.#receiver.write(this.#writableCopy(chunk), () => (this.#pending += length))
  }

  /** The mask is taken off in place, of bytes that are on their way to somebody. */
  #writableCopy(chunk: Buffer): Buffer {
    return this.#isMasked ? Buffer.from(chunk) : chunk
  }

  /** No more will come. Resolves once all that came is read. */
  end(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    if (this.#receiver.destroyed) resolve()
    else this.#receiver.once('close', resolve).end()
    return promise.finally(() => {
      this.#memory.resize(0)
      // Something may be on its way out of it, which would miss it.
      if (!this.unreadable) this.#inflate?.cleanup()
    })
  }

  #fail(): void {
    this.unreadable = true
    this.#receiver.destroy()
    this.#memory.resize(0)
  }

  /** What inflates messages, where the two sides agreed on that. */
  #createInflate(extensions: string | null, isServer: boolean): Inflate | null {
    if (!extensions) return null
    try {
      const agreed = extension.parse(extensions)[PerMessageDeflate.extensionName]
      if (agreed === undefined) return null
      const inflate = new PerMessageDeflate({ isServer, maxPayload: MAX_EVENT })
      inflate.accept(agreed)
      return inflate
    } catch {
      this.unreadable = true
      return null
    }
  }
}
