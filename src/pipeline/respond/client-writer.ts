import { end, write } from '../../proxy/client.ts'
import type { ClientResponse } from '../../proxy/client.ts'

/** Bytes that are written at a time: a client that has taken so many has been seen to read. */
const SLICE = 64 * 1024

/**
 * The bytes on their way to one client. Its connection gets no more of them at a
 * time than it takes: so a client that reads a large answer slowly can be told
 * from one that does not read, however much of the answer was there at once.
 */
export class ClientWriter {
  readonly #res: ClientResponse
  readonly #onDrain: () => void
  /** What the connection was not given yet, from `next` on. */
  #queue: Buffer[] = []
  #next = 0
  #blocked = false
  /** Bytes that it was not given when it was stopped. */
  #unsentAtStop = 0
  /** The end was written, and waits behind the rest. */
  #ending = false

  /** @param onMoved called when the client has taken what its connection had */
  constructor(res: ClientResponse, onMoved: () => void) {
    this.#res = res
    this.#onDrain = onMoved
  }

  /** The client has to read before more is wanted. */
  get blocked(): boolean {
    return this.#blocked
  }

  /** Bytes that the connection was not given: not yet, or, once all is stopped, never. */
  get unsent(): number {
    let bytes = this.#unsentAtStop
    for (let n = this.#next; n < this.#queue.length; n++) bytes += (this.#queue[n] as Buffer).length
    return bytes
  }

  /** @returns false when no more should come until the client has read */
  write(bytes: Buffer): boolean {
    if (!this.#blocked && bytes.length <= SLICE) return write(this.#res, bytes) || this.#block()
    this.#queue.push(bytes)
    return !this.#blocked && this.#send()
  }

  /** The proper end, behind all that was written. */
  end(): void {
    if (this.#next === this.#queue.length) end(this.#res)
    else this.#ending = true
  }

  /** Gives the connection all that waits, whether or not it is taken. */
  flush(): void {
    for (const bytes of this.#queue.splice(0).slice(this.#next)) write(this.#res, bytes)
    this.#next = 0
  }

  /** Nothing more is sent. */
  stop(): void {
    this.#res.off('drain', this.#drained)
    this.#unsentAtStop = this.unsent
    this.#queue = []
    this.#next = 0
  }

  /** @returns false when some of what waits is left */
  #send(): boolean {
    while (this.#next < this.#queue.length) {
      const bytes = this.#queue[this.#next] as Buffer
      const slice = bytes.length <= SLICE ? bytes : bytes.subarray(0, SLICE)
      if (slice === bytes) this.#next++
      else this.#queue[this.#next] = bytes.subarray(SLICE)
      if (!write(this.#res, slice)) return this.#block()
    }
    this.#queue = []
    this.#next = 0
    return true
  }

  #block(): false {
    this.#blocked = true
    this.#res.once('drain', this.#drained)
    return false
  }

  readonly #drained = (): void => {
    this.#blocked = false
    const isSent = this.#send()
    if (isSent && this.#ending) end(this.#res)
    this.#onDrain()
  }
}
