/** Bytes that exchanges hold in memory, together: what one may take depends on what the others have. */
export class HeldBytes {
  #held = 0
  /** Those of them that are copies of answers. */
  #answers = 0
  /** The last that has or waits for its turn. */
  #turn: Promise<unknown> = Promise.resolve()

  get held(): number {
    return this.#held
  }

  /** @returns false where that would be more than `limit`: nothing was taken then */
  take(bytes: number, limit: number): boolean {
    if (this.#held + bytes > limit) return false
    this.#held += bytes
    return true
  }

  give(bytes: number): void {
    this.#held -= bytes
  }

  /**
   * For a copy of an answer, which can be done without: all of these together take
   * half of `limit` at most, so that there is room for requests whoever reads slowly.
   *
   * @returns false where there is no room: nothing was taken then
   */
  takeForAnswer(bytes: number, limit: number): boolean {
    if (this.#answers + bytes > limit / 2 || !this.take(bytes, limit)) return false
    this.#answers += bytes
    return true
  }

  giveForAnswer(bytes: number): void {
    this.#answers -= bytes
    this.give(bytes)
  }

  /** For work that has to be done though there is no room for what it holds: one after the other. */
  inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work)
    this.#turn = done.then(noop, noop)
    return done
  }
}

function noop(): void {}
