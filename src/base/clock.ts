declare const clockName: unique symbol

/**
 * Milliseconds since 1970; for what people read. It can jump. A plain number is accepted, a MonotonicTime is not: one that is
 * printed as a date is a day in 1970.
 */
export type WallTime = number & { readonly [clockName]?: 'wall' }

/** Milliseconds that only grow; for durations and deadlines. */
export type MonotonicTime = number & { readonly [clockName]?: 'monotonic' }

/** ISO 8601, UTC. */
export function isoTime(at: WallTime): string {
  return new Date(at).toISOString()
}

/**
 * Time as the gateway sees it. Passed in where it matters, so that a test can
 * let thirty minutes pass without waiting for them.
 */
export interface Clock {
  monotonic(): MonotonicTime
  wall(): WallTime
  setTimeout(callback: () => void, ms: number): Timer
}

export interface Timer {
  cancel(): void
}

/** The machine's clock. Its timers do not keep the process alive. */
export const systemClock: Clock = {
  monotonic: () => performance.now(),
  wall: () => Date.now(),
  setTimeout: (callback, ms) => {
    // Node turns a delay above 2^31-1 ms into 1 ms: 24 days is as good as never here. Timers of one
    // delay share a list, which fractions of a millisecond would have made anew for each.
    const handle = setTimeout(callback, Math.min(Math.ceil(ms), 0x7fffffff)).unref()
    return { cancel: () => clearTimeout(handle) }
  },
}
