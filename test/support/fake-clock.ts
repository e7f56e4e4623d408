import type { Clock, Timer } from '../../src/base/clock.ts'

/** A clock that stands still until the test moves it. */
export class FakeClock implements Clock {
  #now: number
  /** Date minus monotonic time, ms. */
  #dateOffset: number
  #timers: { at: number; callback: () => void }[] = []

  /** @param monotonic start of the monotonic clock, ms; that of a real clock is a fraction */
  constructor(date = '2026-01-01T00:00:00Z', monotonic = 0) {
    this.#now = monotonic
    this.#dateOffset = Date.parse(date) - monotonic
  }

  monotonic(): number {
    return this.#now
  }

  wall(): number {
    return this.#dateOffset + this.#now
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

  /** Number of timers that have not fired. */
  get pending(): number {
    return this.#timers.length
  }

  /** Sets the date, as a user or a time server does; the monotonic time stays the same. */
  setDate(date: string | number): void {
    this.#dateOffset = new Date(date).getTime() - this.#now
  }

  /** Advances the time; the timers that become due fire in order. */
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
