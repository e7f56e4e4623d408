/** Bytes that exchanges hold in memory, all together: what one of them may take depends on what the others have. */
export class HeldBytes {
  #held = 0
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

  /** For work that has to be done though there is no room for what it holds: one after the other. */
  inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work)
    this.#turn = done.then(noop, noop)
    return done
  }
}

function noop(): void {}
