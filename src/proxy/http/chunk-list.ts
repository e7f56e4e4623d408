/** Pieces after which the average size is checked. */
const JOIN_AFTER = 1_024
/** Average bytes of a piece below which the Buffer object costs more than its bytes. */
const SMALL_CHUNK = 1_024

/** Collects pieces, and joins small ones, so that a client that sends single bytes does not cost an object for each. */
export class ChunkList {
  #pieces: Buffer[] = []
  /** Since the last check. */
  #loose = 0
  #looseBytes = 0
  #size = 0

  get size(): number {
    return this.#size
  }

  /** In order; some pieces may have been joined. */
  get list(): readonly Buffer[] {
    return this.#pieces
  }

  push(piece: Buffer): void {
    this.#pieces.push(piece)
    this.#size += piece.length
    this.#looseBytes += piece.length
    if (++this.#loose < JOIN_AFTER) return
    if (this.#looseBytes < JOIN_AFTER * SMALL_CHUNK) this.#pieces.push(Buffer.concat(this.#pieces.splice(-JOIN_AFTER)))
    this.#loose = this.#looseBytes = 0
  }

  /** A single piece is not copied. */
  concat(): Buffer {
    return this.#pieces.length === 1 ? (this.#pieces[0] as Buffer) : Buffer.concat(this.#pieces, this.#size)
  }

  clear(): void {
    this.#pieces = []
    this.#loose = this.#looseBytes = this.#size = 0
  }
}
