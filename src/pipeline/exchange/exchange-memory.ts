import type { MemoryBudget } from '../../base/memory-budget.ts'

/**
 * The memory for bodies that one exchange holds (`server.body_memory`). What is left is released when the exchange
 * ends.
 */
export class ExchangeMemory {
  /** Bytes of the exchange's responses that are kept to be read at the end. */
  responseBytes = 0
  readonly #budget: MemoryBudget
  readonly #limit: number
  /** Bytes of the exchange's request body, and of a held response. */
  #bytes = 0

  /** @param limit bytes for all exchanges together */
  constructor(budget: MemoryBudget, limit: number) {
    this.#budget = budget
    this.#limit = limit
  }

  /** @returns false if there is not enough memory: nothing was reserved then */
  reserve(bytes: number): boolean {
    if (!this.#budget.reserve(bytes, this.#limit)) return false
    this.#bytes += bytes
    return true
  }

  /** Releases memory that `reserve` reserved. */
  release(bytes: number): void {
    this.#budget.release(bytes)
    this.#bytes -= bytes
  }

  /**
   * Reserves memory for kept bytes of the exchange's responses until it ends; a negative number releases memory.
   *
   * @returns false if there is not enough memory: nothing was reserved then
   */
  readonly reserveForResponse = (bytes: number): boolean => {
    if (bytes < 0) this.#budget.releaseForResponse(-bytes)
    else if (!this.#budget.reserveForResponse(bytes, this.#limit)) return false
    this.responseBytes += bytes
    return true
  }

  /** The exchange has ended. */
  releaseAll(): void {
    this.#budget.release(this.#bytes)
    this.#bytes = 0
    if (this.responseBytes !== 0) this.#budget.releaseForResponse(this.responseBytes)
    this.responseBytes = 0
  }
}
