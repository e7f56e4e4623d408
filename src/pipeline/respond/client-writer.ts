import { write } from '../../proxy/http/chunks.ts'
import { end, writeFirst, type ClientResponse } from '../../proxy/client/client.ts'

/** Bytes per write. The client is considered active each time it has read that many bytes. */
const SLICE = 64 * 1024

/** Writes large chunks in slices, which distinguishes a slow client from a client that does not read. */
export class ClientWriter {
  readonly #res: ClientResponse
  readonly #onDrain: () => void
  /** Bytes to write, from index `next` on. */
  #queue: Buffer[] = []
  #next = 0
  /** The connection's buffer is full: nothing is written until the client reads. */
  blocked = false
  #hasWritten = false
  #unsentAtStop = 0
  /** The response ends when the queue is written. */
  #ending = false

  /** @param onDrain called when the client has read the bytes on its connection */
  constructor(res: ClientResponse, onDrain: () => void) {
    this.#res = res
    this.#onDrain = onDrain
  }

  /** Bytes that are not written yet; after `stop`, bytes that are never written. */
  get unsent(): number {
    let bytes = this.#unsentAtStop
    for (let n = this.#next; n < this.#queue.length; n++) bytes += (this.#queue[n] as Buffer).length
    return bytes
  }

  /** @returns false = wait until the client has read */
  write(bytes: Buffer): boolean {
    const writeNow = this.#hasWritten ? write : writeFirst
    this.#hasWritten = true
    if (!this.blocked && bytes.length <= SLICE) return writeNow(this.#res, bytes) || this.#block()
    this.#queue.push(bytes)
    return !this.blocked && this.#send()
  }

  end(): void {
    if (this.#next === this.#queue.length) end(this.#res)
    else this.#ending = true
  }

  /** Writes the whole queue at once, even if the client does not read. */
  flush(): void {
    for (const bytes of this.#queue.splice(0).slice(this.#next)) write(this.#res, bytes)
    this.#next = 0
  }

  stop(): void {
    this.#res.off('drain', this.#drained)
    this.#unsentAtStop = this.unsent
    this.#queue = []
    this.#next = 0
  }

  /** @returns false = a part of the queue is left */
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
    this.blocked = true
    this.#res.once('drain', this.#drained)
    return false
  }

  readonly #drained = (): void => {
    this.blocked = false
    const isSent = this.#send()
    if (isSent && this.#ending) end(this.#res)
    this.#onDrain()
  }
}
