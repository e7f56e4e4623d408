/** The share of the largest age by which one connection lives shorter, at most: so those of a moment do not all end at another. */
const SPREAD = 0.2

/** When connections of a pool are too old to be used again. */
export class ConnectionAge {
  readonly #maxAge: number
  readonly #random: () => number

  /**
   * @param maxAge ms; Infinity = connections do not age
   * @param random between 0 and 1
   */
  constructor(maxAge: number, random: () => number = Math.random) {
    this.#maxAge = maxAge
    this.#random = random
  }

  /** @returns ms of `performance.now()` from which a connection that is opened now takes no requests */
  expiry(): number {
    return performance.now() + this.#maxAge * (1 - SPREAD * this.#random())
  }
}
