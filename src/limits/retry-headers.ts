import type { LimitRefusal } from './types.ts'

/**
 * Headers that say when to retry: `retry-after` (s, rounded up; RFC 9110, section 10.2.3) and `retry-after-ms` (preferred by the
 * vendors' SDKs), unless waiting cannot help; `x-should-retry: false` unless the wait is short.
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
