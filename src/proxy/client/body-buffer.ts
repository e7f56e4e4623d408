import { ChunkList } from '../http/chunk-list.ts'

/** Bytes of a declared length from which memory is allocated up front: joining the pieces at the end would block the event loop. */
const PREALLOCATE_FROM = 1024 * 1024
/** The memory is allocated when 1/32 of the declared length has arrived. */
const PREALLOCATE_DIVISOR = 32

/** Collects a body. A large one of declared length is copied into one buffer as it arrives, so nothing is left to copy at the end. */
export class BodyBuffer {
  readonly #declared: number
  readonly #pieces = new ChunkList()
  /** Of the declared length, filled up to `size`; null = not needed, or not yet. */
  #preallocated: Buffer | null = null
  size = 0

  /** 0 = unknown. */
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
    // Memory outside of node's pool gets its pages from the system only as they are written.
    this.#preallocated = Buffer.allocUnsafeSlow(this.#declared)
    let at = 0
    for (const piece of this.#pieces.list) at += piece.copy(this.#preallocated, at)
    this.#pieces.clear()
  }
}
