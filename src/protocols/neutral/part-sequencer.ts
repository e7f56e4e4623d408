import type { PartEndEvent, ResponseEvent } from './response.ts'

/** Maximum characters held of parts that have to wait. */
const MAX_HELD = 16 * 1024 * 1024

interface WaitingPart {
  readonly events: ResponseEvent[]
}

/**
 * Puts parts that are open at the same time one after the other: the first passes as it arrives, and the others wait
 * until it has ended.
 */
export class PartSequencer {
  /** The part that passes as it arrives; null = none. */
  #current: number | null = null
  /** The waiting parts, and the order of their start, from `next` on. */
  readonly #waiting = new Map<number, WaitingPart>()
  #order: number[] = []
  #next = 0
  #held = 0

  /** @returns the events that can be written now */
  next(event: ResponseEvent): readonly ResponseEvent[] {
    switch (event.type) {
      case 'part_start':
        if (this.#current !== null) {
          this.#waiting.set(event.index, { events: [event] })
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
    this.#waiting.get(index)?.events.push(event)
  }

  /** The current part has ended: passes the waiting parts, up to one that is still open. */
  #end(event: PartEndEvent): readonly ResponseEvent[] {
    const ready: ResponseEvent[] = [event]
    this.#current = null
    // Iterating over the map would skip all deleted entries each time.
    while (this.#next < this.#order.length) {
      const index = this.#order[this.#next++] as number
      const { events } = this.#waiting.get(index) as WaitingPart
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
