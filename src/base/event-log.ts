/** The latest events of one kind, and the listeners that get new events. */
export class EventLog<T> {
  readonly #kept: number
  readonly #events: T[] = []
  readonly #listeners = new Set<(event: T) => void>()

  constructor(kept: number) {
    this.#kept = kept
  }

  /** The events, the oldest first. */
  get events(): readonly T[] {
    return this.#events
  }

  add(event: T): void {
    this.#events.push(event)
    if (this.#events.length > this.#kept) this.#events.shift()
    for (const listener of this.#listeners) listener(event)
  }

  /** @param listener must not throw */
  subscribe(listener: (event: T) => void): void {
    this.#listeners.add(listener)
  }
}
