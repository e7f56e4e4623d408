/**
 * Takes memory for what is kept of a response until more of it comes, or, below 0, gives it back.
 *
 * @returns false where there is none left: nothing was taken then
 */
export type ReserveMemory = (bytes: number) => boolean

/** Bytes that are kept without counting them. */
const UNCOUNTED_BYTES = 64 * 1024

/** What one reader keeps of a response. */
export class MemoryReservation {
  readonly #reserve: ReserveMemory
  #reserved = 0

  constructor(take: ReserveMemory = () => true) {
    this.#reserve = take
  }

  /**
   * @param bytes all that is kept from now on
   * @returns false where there is no room for so much: what was counted still is
   */
  resize(bytes: number): boolean {
    const counted = bytes > UNCOUNTED_BYTES ? bytes : 0
    if (counted === this.#reserved) return true
    if (!this.#reserve(counted - this.#reserved)) return false
    this.#reserved = counted
    return true
  }
}
