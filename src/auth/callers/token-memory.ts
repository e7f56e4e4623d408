/** Values by key, at most `max`; the oldest is forgotten first. */
export class TokenMemory<T> {
  readonly #max: number
  readonly #entries = new Map<string, T>()

  constructor(max: number) {
    this.#max = max
  }

  get(at: string): T | undefined {
    return this.#entries.get(at)
  }

  set(at: string, value: T): void {
    this.#entries.delete(at)
    if (this.#entries.size >= this.#max) {
      const [oldest] = this.#entries.keys()
      if (oldest !== undefined) this.#entries.delete(oldest)
    }
    this.#entries.set(at, value)
  }

  delete(at: string): void {
    this.#entries.delete(at)
  }
}
