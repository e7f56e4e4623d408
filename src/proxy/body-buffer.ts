import { Pieces } from './chunk-list.ts'

/** Bytes of a body from which joining its pieces at the end would hold everybody else up. */
const LARGE = 1024 * 1024
/** How much of what was declared has to come, as a divisor, before there is memory for all of it. */
const IN_EARNEST = 32

/**
 * The bytes of a body that come in pieces. A large one whose length was declared is
 * put in its place as it comes: at its end nothing is left to copy, and it is never
 * in memory twice.
 */
export class BodyBytes {
  readonly #declared: number
  readonly #pieces = new Pieces()
  /** As long as was declared; filled up to `size`. null = there is no reason to have it, or not yet. */
  #place: Buffer | null = null
  #size = 0

  /** @param declared bytes that are to come; 0 = nobody knows */
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
    if (this.#place !== null && this.#size <= this.#place.length) {
      this.#place.set(piece, before)
      return
    }
    this.#pieces.push(piece)
    const isInEarnest = this.#declared >= LARGE && this.#size * IN_EARNEST >= this.#declared
    if (this.#place === null && isInEarnest) this.#settleIn()
  }

  /** All of it in one. */
  whole(): Buffer {
    if (this.#place === null) return this.#pieces.whole()
    const placed = this.#place.subarray(0, this.#size - this.#pieces.size)
    return this.#pieces.size === 0 ? placed : Buffer.concat([placed, this.#pieces.whole()])
  }

  #settleIn(): void {
    if (this.#size > this.#declared) return
    // Not of node's pool; its pages are the system's to give as they are written to.
    this.#place = Buffer.allocUnsafeSlow(this.#declared)
    let at = 0
    for (const piece of this.#pieces.list) at += piece.copy(this.#place, at)
    this.#pieces.clear()
  }
}
