import type { Clock, Timer } from '../../src/base/clock.ts'

/** A clock that stands still until the test moves it. */
export class FakeClock implements Clock {
  #now = 0
  #timers: { at: number; callback: () => void }[] = []

  monotonic(): number {
    return this.#now
  }

  wall(): number {
    return Date.UTC(2026, 0, 1) + this.#now
  }

  setTimeout(callback: () => void, ms: number): Timer {
    const timer = { at: this.#now + ms, callback }
    this.#timers.push(timer)
    return {
      cancel: () => {
        this.#timers = this.#timers.filter(other => other !== timer)
      },
    }
  }

  /** Timers that have not fired. */
  get pending(): number {
    return this.#timers.length
  }

  /** Lets time pass; the timers that are due on the way fire in their order. */
  advance(ms: number): void {
    const until = this.#now + ms
    for (;;) {
      const due = this.#timers.filter(timer => timer.at <= until).sort((a, b) => a.at - b.at)[0]
      if (!due) break
      this.#timers = this.#timers.filter(timer => timer !== due)
      this.#now = Math.max(this.#now, due.at)
      due.callback()
    }
    this.#now = until
  }
}
