/** Bytes that exchanges hold in memory, all together: what one of them may take depends on what the others have. */
export class HeldBytes {
  #held = 0

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
}
