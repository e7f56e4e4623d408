import type { PartEndEvent, ResponseEvent } from './response.ts'

/** Maximum characters of the parts that wait. */
const MAX_HELD = 16 * 1024 * 1024

/** Puts parts that are open at the same time in sequence. The first part passes at once; all other parts wait until it ends. */
export class PartSequencer {
  /** The index of the part that passes at once; null = none. */
  #current: number | null = null
  readonly #waiting = new Map<number, ResponseEvent[]>()
  /** Indexes of the waiting parts in the order of their start. `#next` is the position of the first waiting part. */
  #order: number[] = []
  #next = 0
  #held = 0

  /** @returns the events that can be written now */
  next(event: ResponseEvent): readonly ResponseEvent[] {
    switch (event.type) {
      case 'part_start':
        if (this.#current !== null) {
          this.#waiting.set(event.index, [event])
          this.#order.push(event.index)
          return []
        }
        this.#current = event.index
        return [event]
      case 'delta':
        if (event.index === this.#current) return [event]
        this.#hold(event.index, event, event.text.length)
        return []
      case 'part_end':
        if (event.index === this.#current) return this.#end(event)
        this.#hold(event.index, event, 0)
        return []
      default:
        return [event]
    }
  }

  #hold(index: number, event: ResponseEvent, characters: number): void {
    this.#held += characters
    if (this.#held > MAX_HELD) throw new Error('too much of a response is out of order')
    this.#waiting.get(index)?.push(event)
  }

  /** Ends the current part. @returns the events that can be written now, up to the next part that is still open */
  #end(event: PartEndEvent): readonly ResponseEvent[] {
    const ready: ResponseEvent[] = [event]
    this.#current = null
    // Use the list: an iterator of the map would skip all deleted entries each time.
    while (this.#next < this.#order.length) {
      const index = this.#order[this.#next++] as number
      const events = this.#waiting.get(index)!
      this.#waiting.delete(index)
      for (const held of events) {
        if (held.type === 'delta') this.#held -= held.text.length
        ready.push(held)
      }
      if (events.at(-1)?.type === 'part_end') continue
      this.#current = index
      return ready
    }
    this.#order = []
    this.#next = 0
    return ready
  }
}
