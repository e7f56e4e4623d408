/**
 * Takes memory for what is kept of an answer until more of it comes, or, below 0, gives it back.
 *
 * @returns false where there is none left: nothing was taken then
 */
export type TakeRoom = (bytes: number) => boolean

/** Bytes that are kept without counting them. */
const UNCOUNTED = 64 * 1024

/** What one reader keeps of an answer. */
export class Room {
  readonly #take: TakeRoom
  #counted = 0

  constructor(take: TakeRoom = () => true) {
    this.#take = take
  }

  /**
   * @param bytes all that is kept from now on
   * @returns false where there is no room for so much: what was counted still is
   */
  hold(bytes: number): boolean {
    const counted = bytes > UNCOUNTED ? bytes : 0
    if (counted === this.#counted) return true
    if (!this.#take(counted - this.#counted)) return false
    this.#counted = counted
    return true
  }
}
