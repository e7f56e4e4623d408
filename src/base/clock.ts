declare const clockName: unique symbol

/** Milliseconds since 1970, for people; can jump. Accepts a number, but not a MonotonicTime, which would print as a day in 1970. */
export type WallTime = number & { readonly [clockName]?: 'wall' }

/** Milliseconds that only grow; for durations and deadlines. */
export type MonotonicTime = number & { readonly [clockName]?: 'monotonic' }

/** ISO 8601, UTC. */
export function isoTime(at: WallTime): string {
  return new Date(at).toISOString()
}

/** Passed in where time matters, so that tests need not wait. */
export interface Clock {
  monotonic(): MonotonicTime
  wall(): WallTime
  setTimeout(callback: () => void, ms: number): Timer
}

export interface Timer { cancel(): void }

/** Resolves with the promise, or after `ms`. */
export function within(clock: Pick<Clock, 'setTimeout'>, ms: number, promise: Promise<void>): Promise<void> {
  const { promise: timeout, resolve } = Promise.withResolvers<void>()
  const deadline = clock.setTimeout(resolve, ms)
  return Promise.race([promise, timeout]).finally(() => deadline.cancel())
}

/** The machine's clock. Its timers do not keep the process alive. */
export const systemClock: Clock = {
  // No wrapper: it would be the most called function of the process.
  monotonic: performance.now.bind(performance),
  wall: Date.now,
  setTimeout: (callback, ms) => {
    // Node turns a delay above 2^31-1 ms into 1 ms, so cap it at 24 days. Timers with the same
    // delay share a list; fractions of a millisecond would create a list for each timer.
    const handle = setTimeout(callback, Math.min(Math.ceil(ms), 0x7fffffff)).unref()
    return { cancel: () => clearTimeout(handle) }
  },
}
