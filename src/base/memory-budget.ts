/** Counts the bytes that all exchanges together have in memory. */
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

  /** @returns false = the sum would exceed `limit`, so nothing was reserved */
  reserve(bytes: number, limit: number): boolean {
    if (!this.hasRoom(bytes, limit)) return false
    this.#reservedBytes += bytes
    return true
  }

  release(bytes: number): void {
    this.#reservedBytes -= bytes
  }

  /**
   * Reserves memory for optional copies of responses. All such copies together get at most half of `limit`, so that slow clients leave
   * memory for requests.
   */
  reserveForResponse(bytes: number, limit: number): boolean {
    if (this.#responseBytes + bytes > limit / 2 || !this.reserve(bytes, limit)) return false
    this.#responseBytes += bytes
    return true
  }

  releaseForResponse(bytes: number): void {
    this.#responseBytes -= bytes
    this.release(bytes)
  }

  /** Runs work that must be done although no memory can be reserved for it. Only one such task runs at a time. */
  runExclusive<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#queue.then(work)
    this.#queue = done.then(noop, noop)
    return done
  }
}

function noop(): void {}
