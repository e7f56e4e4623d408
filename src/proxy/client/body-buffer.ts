import { ChunkList } from '../http/chunk-list.ts'

/** Bytes from which a body gets its memory up front: joining its pieces at the end would block the event loop. */
const PREALLOCATE_FROM = 1024 * 1024
/** Memory for the whole body is allocated once 1/32 of the declared length has arrived. */
const PREALLOCATE_DIVISOR = 32

/**
 * Collects the pieces of a body. A large body with a declared length is copied into one buffer as it arrives: nothing
 * is left to copy at its end, and it is never in memory twice.
 */
export class BodyBuffer {
  readonly #declared: number
  readonly #pieces = new ChunkList()
  /** Of the declared length, filled up to `size`; null = not needed, or not yet. */
  #preallocated: Buffer | null = null
  /** Bytes received so far. */
  size = 0

  /** @param declared bytes of the body; 0 = unknown */
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

  /** The whole body in one buffer. */
  whole(): Buffer {
    if (this.#preallocated === null) return this.#pieces.concat()
    const placed = this.#preallocated.subarray(0, this.size - this.#pieces.size)
    return this.#pieces.size === 0 ? placed : Buffer.concat([placed, this.#pieces.concat()])
  }

  #preallocate(): void {
    if (this.size > this.#declared) return
    // Not from node's pool: the system then provides pages only as they are written.
    this.#preallocated = Buffer.allocUnsafeSlow(this.#declared)
    let at = 0
    for (const piece of this.#pieces.list) at += piece.copy(this.#preallocated, at)
    this.#pieces.clear()
  }
}
