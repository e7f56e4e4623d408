import { ChunkList } from './chunk-list.ts'

/** Bytes of a body from which joining its pieces at the end would hold everybody else up. */
const PREALLOCATE_FROM = 1024 * 1024
/** How much of what was declared has to come, as a divisor, before there is memory for all of it. */
const PREALLOCATE_DIVISOR = 32

/**
 * The bytes of a body that come in pieces. A large one whose length was declared is
 * put in its place as it comes: at its end nothing is left to copy, and it is never
 * in memory twice.
 */
export class BodyBuffer {
  readonly #declared: number
  readonly #pieces = new ChunkList()
  /** As long as was declared; filled up to `size`. null = there is no reason to have it, or not yet. */
  #preallocated: Buffer | null = null
  #size = 0

  /** @param declared bytes that are to come; 0 = unknown */
  constructor(declared: number) {
    this.#declared = declared
  }

  /** Bytes that have come. */
  get size(): number {
    return this.#size
  }

  push(piece: Buffer): void {
    const before = this.#size
    this.#size += piece.length
    if (this.#preallocated !== null && this.#size <= this.#preallocated.length) {
      this.#preallocated.set(piece, before)
      return
    }
    this.#pieces.push(piece)
    const isInEarnest = this.#declared >= PREALLOCATE_FROM && this.#size * PREALLOCATE_DIVISOR >= this.#declared
    if (this.#preallocated === null && isInEarnest) this.#preallocate()
  }

  /** All of it in one. */
  whole(): Buffer {
    if (this.#preallocated === null) return this.#pieces.concat()
    const placed = this.#preallocated.subarray(0, this.#size - this.#pieces.size)
    return this.#pieces.size === 0 ? placed : Buffer.concat([placed, this.#pieces.concat()])
  }

  #preallocate(): void {
    if (this.#size > this.#declared) return
    // Not of node's pool; its pages are the system's to give as they are written to.
    this.#preallocated = Buffer.allocUnsafeSlow(this.#declared)
    let at = 0
    for (const piece of this.#pieces.list) at += piece.copy(this.#preallocated, at)
    this.#pieces.clear()
  }
}
