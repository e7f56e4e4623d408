/** Pieces after which it is looked how large they are. */
const JOIN_AFTER = 1_024
/** Bytes of a piece, on average, below which the object is more than what it holds. */
const SMALL_CHUNK = 1_024

/**
 * Bytes that arrive in pieces and are needed whole. A client that sends them one by one
 * must not cost an object for each: small pieces are joined as they come.
 */
export class ChunkList {
  #pieces: Buffer[] = []
  /** Pieces and bytes since they were last joined, or found large. */
  #loose = 0
  #looseBytes = 0
  #size = 0

  /** Bytes of all pieces. */
  get size(): number {
    return this.#size
  }

  /** The pieces, in their order; some may have been joined. */
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

  /** All of it in one; a single piece as it came. */
  concat(): Buffer {
    return this.#pieces.length === 1 ? (this.#pieces[0] as Buffer) : Buffer.concat(this.#pieces, this.#size)
  }

  /** Lets go of all. */
  clear(): void {
    this.#pieces = []
    this.#loose = this.#looseBytes = this.#size = 0
  }
}
