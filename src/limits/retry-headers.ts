import type { LimitRefusal } from './types.ts'

/**
 * When a client should retry: `retry-after` (seconds, rounded up;
 * RFC 9110, section 10.2.3) and `retry-after-ms`, which the vendors' SDKs prefer,
 * unless waiting is of no use; `x-should-retry: false` unless it is a short wait.
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
