/** The bytes that all exchanges hold in memory together. */
export class MemoryBudget {
  #reservedBytes = 0
  #responseBytes = 0
  #queue: Promise<unknown> = Promise.resolve()

  get reservedBytes(): number {
    return this.#reservedBytes
  }

  hasRoom(bytes: number, limit: number): boolean {
    return this.#reservedBytes + bytes <= limit
  }

  /** @returns false without a reservation if the sum would exceed `limit` */
  reserve(bytes: number, limit: number): boolean {
    if (!this.hasRoom(bytes, limit)) return false
    this.#reservedBytes += bytes
    return true
  }

  release(bytes: number): void {
    this.#reservedBytes -= bytes
  }

  /** For optional copies of responses: all together use at most half of `limit`, so that slow readers leave memory for requests. */
  reserveForResponse(bytes: number, limit: number): boolean {
    if (this.#responseBytes + bytes > limit / 2 || !this.reserve(bytes, limit)) return false
    this.#responseBytes += bytes
    return true
  }

  releaseForResponse(bytes: number): void {
    this.#responseBytes -= bytes
    this.release(bytes)
  }

  /** For work that must be done although its memory is not available: one task after the other. */
  runExclusive<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#queue.then(work)
    this.#queue = done.then(noop, noop)
    return done
  }
}

function noop(): void {}
