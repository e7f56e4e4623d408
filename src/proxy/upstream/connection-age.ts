/** Each maximum age is shortened at random by up to this share, so that connections opened together do not close together. */
const SPREAD = 0.2

export class ConnectionAge {
  readonly #maxAge: number
  readonly #random: () => number

  /** @param maxAge ms; Infinity = no limit @param random between 0 and 1 */
  constructor(maxAge: number, random: () => number = Math.random) {
    this.#maxAge = maxAge
    this.#random = random
  }

  /** @returns when a connection that is opened now becomes too old for requests, in ms of `performance.now()` */
  expiry(): number {
    return performance.now() + this.#maxAge * (1 - SPREAD * this.#random())
  }
}
