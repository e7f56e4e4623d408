import type { LimitClock } from '../../../src/limits/types.ts'

/** A clock that moves by hand. */
export interface HandClock extends LimitClock {
  /** Lets so many milliseconds pass on both clocks. */
  pass(ms: number): void
  /** Sets the date, as a person or a time server does; no time passes. */
  setDate(date: string | number): void
}

/** Starts at `date` with a monotonic clock at an odd fraction, as real ones have. */
export function handClock(date = '2026-11-21T12:00:00Z'): HandClock {
  let monotonic = 1234.567
  let wall = Date.parse(date)
  return {
    monotonic: () => monotonic,
    wall: () => wall,
    pass(ms) {
      monotonic += ms
      wall += ms
    },
    setDate(to) {
      wall = typeof to === 'number' ? to : Date.parse(to)
    },
  }
}
