import type { LimitRefusal } from './types.ts'

/**
 * Headers that tell a client when to retry. If waiting can help: `retry-after` (s, rounded up; RFC 9110, section 10.2.3) and
 * `retry-after-ms` (which the vendors' SDKs prefer). If the wait is not short: `x-should-retry: false`.
 */
export function retryHeaders({ retryAfterMs, renewsSoon }: LimitRefusal): Record<string, string> {
  return {
    ...retryAfterMs !== null && {
      'retry-after': String(Math.ceil(retryAfterMs / 1000)),
      'retry-after-ms': String(Math.ceil(retryAfterMs)),
    },
    ...!renewsSoon && { 'x-should-retry': 'false' },
  }
}
