import type { MemoryBudget } from '../base/memory-budget.ts'

/** What one exchange holds of the memory for bodies (`server.body_memory`). What is not released is when it ends. */
export class ExchangeMemory {
  /** Bytes of what is kept of its responses to be read at the end, as far as they count. */
  responseBytes = 0
  readonly #budget: MemoryBudget
  readonly #limit: number
  /** Bytes of its body, and of a response that is held. */
  #bytes = 0

  /** @param limit bytes of all exchanges together */
  constructor(budget: MemoryBudget, limit: number) {
    this.#budget = budget
    this.#limit = limit
  }

  /** @returns false where there is not so much left: nothing was reserved then */
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
   * Memory for what is kept of its responses until it ends; below 0 gives it back.
   *
   * @returns false where there is not so much left: nothing was reserved then
   */
  readonly reserveForResponse = (bytes: number): boolean => {
    if (bytes < 0) this.#budget.releaseForResponse(-bytes)
    else if (!this.#budget.reserveForResponse(bytes, this.#limit)) return false
    this.responseBytes += bytes
    return true
  }

  /** The exchange has ended. */
  releaseAll(): void {
    this.release(this.#bytes)
    this.#budget.releaseForResponse(this.responseBytes)
    this.responseBytes = 0
  }
}
