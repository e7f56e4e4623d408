/** Waiting calls for each running call at most. */
const WAITING_PER_RUNNING = 4

/** Bounds the running calls of a hook, and those that wait, first come first served. */
export class CallQueue {
  readonly #concurrency: number
  /** A Set keeps the order, and deletes from the middle in constant time. */
  readonly #waiting = new Set<() => void>()
  #running = 0

  constructor(concurrency: number) {
    this.#concurrency = concurrency
  }

  get running(): number {
    return this.#running
  }

  get waiting(): number {
    return this.#waiting.size
  }

  /**
   * Call `leave` after each call of `start`.
   * @param start called when there is room: now, or later
   * @returns null = the queue is full; otherwise a function that gives up waiting
   */
  enter(start: () => void): (() => void) | null {
    if (this.#running < this.#concurrency) {
      this.#running++
      start()
      return () => undefined
    }
    if (this.#waiting.size >= this.#concurrency * WAITING_PER_RUNNING) return null
    this.#waiting.add(start)
    return () => this.#waiting.delete(start)
  }

  leave(): void {
    const [next] = this.#waiting
    if (next === undefined) {
      this.#running--
      return
    }
    this.#waiting.delete(next)
    next()
  }
}
