/** Bytes that exchanges hold in memory, together: what one may take depends on what the others have. */
export class MemoryBudget {
  #reservedBytes = 0
  /** Those of them that are copies of responses. */
  #responseBytes = 0
  /** The last that has or waits for its turn. */
  #queue: Promise<unknown> = Promise.resolve()

  get reservedBytes(): number {
    return this.#reservedBytes
  }

  /** Could so much be reserved? */
  hasRoom(bytes: number, limit: number): boolean {
    return this.#reservedBytes + bytes <= limit
  }

  /** @returns false where that would be more than `limit`: nothing was taken then */
  reserve(bytes: number, limit: number): boolean {
    if (!this.hasRoom(bytes, limit)) return false
    this.#reservedBytes += bytes
    return true
  }

  release(bytes: number): void {
    this.#reservedBytes -= bytes
  }

  /**
   * For a copy of a response, which can be done without: all of these together take
   * half of `limit` at most, so that slow readers leave room for requests.
   *
   * @returns false where there is no room: nothing was taken then
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

  /** For work that has to be done though there is no room for what it holds: one after the other. */
  runExclusive<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#queue.then(work)
    this.#queue = done.then(noop, noop)
    return done
  }
}

function noop(): void {}
