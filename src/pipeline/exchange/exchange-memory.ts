import type { MemoryBudget } from '../../base/memory-budget.ts'

/** The part of `server.body_memory` that one exchange has reserved. */
export class ExchangeMemory {
  /** Bytes of responses that are kept until settlement reads them. */
  responseBytes = 0
  readonly #budget: MemoryBudget
  readonly #limit: number
  /** Bytes of the request body, and of a held response. */
  #bytes = 0

  /** @param limit bytes for all exchanges together */
  constructor(budget: MemoryBudget, limit: number) {
    this.#budget = budget
    this.#limit = limit
  }

  /** @returns false, and reserves nothing, if there is not enough memory */
  reserve(bytes: number): boolean {
    if (!this.#budget.reserve(bytes, this.#limit)) return false
    this.#bytes += bytes
    return true
  }

  release(bytes: number): void {
    this.#budget.release(bytes)
    this.#bytes -= bytes
  }

  /** Reserves memory until the exchange ends. @param bytes negative = release @returns false, and reserves nothing, if memory is short */
  readonly reserveForResponse = (bytes: number): boolean => {
    if (bytes < 0) this.#budget.releaseForResponse(-bytes)
    else if (!this.#budget.reserveForResponse(bytes, this.#limit)) return false
    this.responseBytes += bytes
    return true
  }

  releaseAll(): void {
    this.#budget.release(this.#bytes)
    this.#bytes = 0
    if (this.responseBytes !== 0) this.#budget.releaseForResponse(this.responseBytes)
    this.responseBytes = 0
  }
}
