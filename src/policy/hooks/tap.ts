import type { Hook, HookQuestion } from './hook.ts'
import type { FailureLog } from './failure-log.ts'

/** Copies that wait, and their bytes, at most. Further ones are dropped. */
export const MAX_WAITING = 1_000
export const MAX_WAITING_BYTES = 16 * 1024 * 1024

/** Sends copies to a hook with `tap: true`, after the request. No request waits for it, and it never throws. */
export class Tap {
  readonly #hook: Hook
  readonly #failures: FailureLog
  readonly #onDrop: (on: HookQuestion['on']) => void
  /** In their order; a Set deletes the first in constant time. */
  readonly #waiting = new Set<HookQuestion>()
  /** Bytes of the copies that wait or are being sent. */
  #bytes = 0
  #running = 0
  #dropped = 0

  constructor(hook: Hook, failures: FailureLog, onDrop: (on: HookQuestion['on']) => void) {
    this.#hook = hook
    this.#failures = failures
    this.#onDrop = onDrop
  }

  get dropped(): number {
    return this.#dropped
  }

  get waiting(): number {
    return this.#waiting.size
  }

  add(question: HookQuestion): void {
    const length = question.body?.length ?? 0
    if (this.waiting >= MAX_WAITING || this.#bytes + length > MAX_WAITING_BYTES) {
      this.#dropped++
      this.#onDrop(question.on)
      this.#failures.note(`dropped: ${this.waiting} copies wait`)
      return
    }
    this.#waiting.add(question)
    this.#bytes += length
    this.#sendNext()
  }

  #sendNext(): void {
    if (this.#running >= this.#hook.config.concurrency) return
    const [question] = this.#waiting
    if (question === undefined) return
    this.#waiting.delete(question)
    this.#running++
    void this.#send(question)
  }

  async #send(question: HookQuestion): Promise<void> {
    const result = await this.#hook.ask(question)
    this.#bytes -= question.body?.length ?? 0
    this.#running--
    if (!result.ok) {
      this.#dropped++
      this.#failures.note(`${result.failure}: ${result.detail}`)
    }
    this.#sendNext()
  }
}
