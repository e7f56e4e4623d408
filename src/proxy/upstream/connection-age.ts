/**
 * The largest random share by which the age of a connection is shortened, so that connections opened together do not
 * all close together.
 */
const SPREAD = 0.2

/** Decides when connections of a pool are too old to be used again. */
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

  /** @returns ms of `performance.now()` from which a connection opened now takes no more requests */
  expiry(): number {
    return performance.now() + this.#maxAge * (1 - SPREAD * this.#random())
  }
}
