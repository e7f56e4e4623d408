/** Reserves memory for the kept part of a response; a negative number releases it. @returns false = none left, nothing reserved */
export type ReserveMemory = (bytes: number) => boolean

/** Bytes that are not counted. */
const UNCOUNTED_BYTES = 64 * 1024

export class MemoryReservation {
  readonly #reserve: ReserveMemory
  #reserved = 0

  constructor(take: ReserveMemory = () => true) {
    this.#reserve = take
  }

  /** @param bytes everything that is kept from now on @returns false = no room: the earlier reservation stays */
  resize(bytes: number): boolean {
    const counted = bytes > UNCOUNTED_BYTES ? bytes : 0
    if (counted === this.#reserved) return true
    if (!this.#reserve(counted - this.#reserved)) return false
    this.#reserved = counted
    return true
  }
}
