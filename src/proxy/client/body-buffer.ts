import { ChunkList } from '../http/chunk-list.ts'

/** Bytes. A body of this declared length or more gets one buffer early, because joining its pieces at the end blocks the event loop. */
const PREALLOCATE_FROM = 1024 * 1024
/** The buffer is allocated when this fraction (1/32) of the declared length has arrived. */
const PREALLOCATE_DIVISOR = 32

/** Collects a body. Copies a large body of declared length into one buffer as it arrives, so that the end needs no copying. */
export class BodyBuffer {
  readonly #declared: number
  readonly #pieces = new ChunkList()
  /** A buffer of the declared length, filled up to `size`; null = not needed, or not allocated yet. */
  #preallocated: Buffer | null = null
  size = 0

  /** @param declared bytes by Content-Length; 0 = unknown */
  constructor(declared: number) {
    this.#declared = declared
  }

  push(piece: Buffer): void {
    const before = this.size
    this.size += piece.length
    if (this.#preallocated !== null && this.size <= this.#preallocated.length) {
      this.#preallocated.set(piece, before)
      return
    }
    this.#pieces.push(piece)
    const isInEarnest = this.#declared >= PREALLOCATE_FROM && this.size * PREALLOCATE_DIVISOR >= this.#declared
    if (this.#preallocated === null && isInEarnest) this.#preallocate()
  }

  whole(): Buffer {
    if (this.#preallocated === null) return this.#pieces.concat()
    const placed = this.#preallocated.subarray(0, this.size - this.#pieces.size)
    return this.#pieces.size === 0 ? placed : Buffer.concat([placed, this.#pieces.concat()])
  }

  #preallocate(): void {
    if (this.size > this.#declared) return
    // `allocUnsafeSlow` does not use node's pool: the system provides its memory only as it is written.
    this.#preallocated = Buffer.allocUnsafeSlow(this.#declared)
    let at = 0
    for (const piece of this.#pieces.list) at += piece.copy(this.#preallocated, at)
    this.#pieces.clear()
  }
}
