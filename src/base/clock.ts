declare const clockName: unique symbol

/**
 * Milliseconds since 1970, for people. The clock can jump. The type does not accept a MonotonicTime, which would be shown as a day in 1970.
 */
export type WallTime = number & { readonly [clockName]?: 'wall' }

/** Milliseconds that never decrease, for durations and deadlines. */
export type MonotonicTime = number & { readonly [clockName]?: 'monotonic' }

/** Formats a time as ISO 8601 in UTC. */
export function isoTime(at: WallTime): string {
  return new Date(at).toISOString()
}

/** The source of time. It is passed where time matters, so that tests need not wait. */
export interface Clock {
  monotonic(): MonotonicTime
  wall(): WallTime
  setTimeout(callback: () => void, ms: number): Timer
}

export interface Timer { cancel(): void }

/** Resolves when the promise resolves, or after `ms`. */
export function within(clock: Pick<Clock, 'setTimeout'>, ms: number, promise: Promise<void>): Promise<void> {
  const { promise: timeout, resolve } = Promise.withResolvers<void>()
  const deadline = clock.setTimeout(resolve, ms)
  return Promise.race([promise, timeout]).finally(() => deadline.cancel())
}

/** The clock of the machine. Its timers do not keep the process alive. */
export const systemClock: Clock = {
  // Bound instead of wrapped, because no other function of the process is called as often.
  monotonic: performance.now.bind(performance),
  wall: Date.now,
  setTimeout: (callback, ms) => {
    // Node turns a delay above 2^31-1 ms into 1 ms, so the delay is limited to 24 days. Timers with equal delays share a list, so delays
    // are rounded up: fractions of a ms would create a list for each timer.
    const handle = setTimeout(callback, Math.min(Math.ceil(ms), 0x7fffffff)).unref()
    return { cancel: () => clearTimeout(handle) }
  },
}
