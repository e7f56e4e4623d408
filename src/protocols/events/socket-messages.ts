import type { Writable } from 'node:stream'
import * as ws from 'ws'
import { MemoryReservation, type ReserveMemory } from '../../base/memory-reservation.ts'
import { MAX_EVENT } from './sse.ts'

/** The parts of ws that read frames. The type declarations of ws lack them. */
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

/** Bytes of a control frame before the payload. Frames of clients are longer, because they have a mask. */
const CONTROL_HEADER_BYTES = { server: 2, client: 6 } as const

const { Receiver, PerMessageDeflate, extension } = ws as unknown as WsInternals

/** Reads the messages of one side of a WebSocket (RFC 6455) from bytes that the gateway forwards. */
export class SocketMessages {
  /** true if bytes could not be read, or memory was full. No later message is read. */
  unreadable = false
  /** The code with which the side closed (RFC 6455 section 7.4); null = the side has not closed. */
  closeCode: number | null = null
  readonly #receiver: Writable
  readonly #inflate: Inflate | null
  readonly #memory: MemoryReservation
  readonly #isMasked: boolean
  /** Bytes passed to the receiver since the last message. */
  #pending = 0

  /**
   * @param extensions the extensions on which client and server agreed in the handshake; null = none
   * @param room reserves memory for incomplete messages
   * @param onMessage called with each message, for the last message before the promise of `end` resolves
   */
  constructor(by: 'server' | 'client', extensions: string | null, room: ReserveMemory, onMessage: (message: Buffer) => void) {
    const isServer = by === 'client'
    this.#isMasked = isServer
    this.#memory = new MemoryReservation(room)
    this.#inflate = this.#createInflate(extensions, isServer)
    this.#receiver = new Receiver({
      isServer,
      extensions: this.#inflate ? { [PerMessageDeflate.extensionName]: this.#inflate } : {},
      maxPayload: MAX_EVENT,
      // The same limits as the defaults of a server of ws.
      maxFragments: 16 * 1024,
      maxBufferedChunks: 256 * 1024,
      skipUTF8Validation: true,
    })
    const control = (payload: Buffer) => (this.#pending -= payload.length + CONTROL_HEADER_BYTES[by])
    this.#receiver.on('message', (message: Buffer) => {
      // zlib may still deliver a message after a failure.
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
    // Bytes that wait for decompression also use memory.
    const kept = Math.max(0, this.#pending) + this.#receiver.writableLength + length
    if (!this.#memory.resize(kept)) this.#fail()
    else this.#receiver.write(this.#writableCopy(chunk), () => (this.#pending += length))
  }

  /** Copies bytes that have a mask: the receiver removes the mask in place, but the original bytes are still to be forwarded. */
  #writableCopy(chunk: Buffer): Buffer {
    return this.#isMasked ? Buffer.from(chunk) : chunk
  }

  /** Ends the input. @returns resolves when all bytes that arrived are read */
  end(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    if (this.#receiver.destroyed) resolve()
    else this.#receiver.once('close', resolve).end()
    return promise.finally(() => {
      this.#memory.resize(0)
      // After a failure, zlib may still deliver a message and needs its state to do so.
      if (!this.unreadable) this.#inflate?.cleanup()
    })
  }

  #fail(): void {
    this.unreadable = true
    this.#receiver.destroy()
    this.#memory.resize(0)
  }

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
