/** After this number of new pieces, their average size is checked. */
const JOIN_AFTER = 1_024
/** Bytes. Pieces with a smaller average size are joined, because each Buffer object takes more memory than its bytes. */
const SMALL_CHUNK = 1_024

/** Collects pieces. Joins small pieces, so that a client that sends single bytes does not fill the memory with Buffer objects. */
export class ChunkList {
  #pieces: Buffer[] = []
  /** Pieces since the last check of the average size. */
  #loose = 0
  #looseBytes = 0
  #size = 0

  get size(): number {
    return this.#size
  }

  /** The pieces in order, some of them joined. */
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

  /** @returns all bytes; a single piece itself, not a copy */
  concat(): Buffer {
    return this.#pieces.length === 1 ? (this.#pieces[0] as Buffer) : Buffer.concat(this.#pieces, this.#size)
  }

  clear(): void {
    this.#pieces = []
    this.#loose = this.#looseBytes = this.#size = 0
  }
}
