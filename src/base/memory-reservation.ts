/**
 * Reserves memory for the part of a response that is kept. A negative number releases memory.
 * @returns false = no memory is left, and nothing was reserved
 */
export type ReserveMemory = (bytes: number) => boolean

/** Up to this number of bytes, nothing is reserved. */
const UNCOUNTED_BYTES = 64 * 1024

export class MemoryReservation {
  readonly #reserve: ReserveMemory
  #reserved = 0

  constructor(take: ReserveMemory = () => true) {
    this.#reserve = take
  }

  /** @param bytes all bytes that are kept now @returns false = no memory is left, and the earlier reservation stays */
  resize(bytes: number): boolean {
    const counted = bytes > UNCOUNTED_BYTES ? bytes : 0
    if (counted === this.#reserved) return true
    if (!this.#reserve(counted - this.#reserved)) return false
    this.#reserved = counted
    return true
  }
}
