import type { RateLimitStates, Refusal } from './types.ts'

/** The last second of the year 9999, the end of what RFC 3339 can write; ms since 1970. */
const LAST_SECOND = 253_402_300_799_000

const RATES = ['requests', 'tokens'] as const

const OPENAI = {
  requests: {
    limit: 'x-ratelimit-limit-requests',
    remaining: 'x-ratelimit-remaining-requests',
    reset: 'x-ratelimit-reset-requests',
  },
  tokens: {
    limit: 'x-ratelimit-limit-tokens',
    remaining: 'x-ratelimit-remaining-tokens',
    reset: 'x-ratelimit-reset-tokens',
  },
} as const

const ANTHROPIC = {
  requests: {
    limit: 'anthropic-ratelimit-requests-limit',
    remaining: 'anthropic-ratelimit-requests-remaining',
    reset: 'anthropic-ratelimit-requests-reset',
  },
  tokens: {
    limit: 'anthropic-ratelimit-tokens-limit',
    remaining: 'anthropic-ratelimit-tokens-remaining',
    reset: 'anthropic-ratelimit-tokens-reset',
  },
} as const

/**
 * OpenAI's convention: `x-ratelimit-{limit,remaining,reset}-{requests,tokens}`,
 * reset as a duration such as `120ms`, `1s` or `6m0s`. A flat list of names and values.
 *
 * Source: OpenAI API documentation, guide "Rate limits", "Rate limits in headers".
 */
export function openaiRateHeaders(figures: RateLimitStates): string[] {
  const headers: string[] = []
  for (const rate of RATES) {
    const figure = figures[rate]
    if (figure === null) continue
    const { limit, remaining, reset } = OPENAI[rate]
    headers.push(
      limit, String(figure.limit), remaining, String(figure.remaining), reset, duration(figure.resetMs),
    )
  }
  return headers
}

/**
 * Anthropic's convention: `anthropic-ratelimit-{requests,tokens}-{limit,remaining,reset}`,
 * reset as an RFC 3339 time in UTC, rounded up to the second. A flat list of names and values.
 *
 * Source: Anthropic API documentation, "Rate limits", "Response headers".
 *
 * @param nowMs - ms since 1970
 */
export function anthropicRateHeaders(figures: RateLimitStates, nowMs: number): string[] {
  const headers: string[] = []
  for (const rate of RATES) {
    const figure = figures[rate]
    if (figure === null) continue
    const { limit, remaining, reset } = ANTHROPIC[rate]
    headers.push(
      limit, String(figure.limit), remaining, String(figure.remaining), reset,
      instant(nowMs + figure.resetMs),
    )
  }
  return headers
}

/**
 * What tells a client when to come back: `retry-after` (seconds, rounded up;
 * RFC 9110, section 10.2.3) and `retry-after-ms`, which the vendors' SDKs prefer,
 * unless waiting is of no use; `x-should-retry: false` unless it is a short wait.
 */
export function retryHeaders({ retryAfterMs, renewsSoon }: Refusal): Record<string, string> {
  return {
    ...retryAfterMs !== null && {
      'retry-after': String(Math.ceil(retryAfterMs / 1000)),
      'retry-after-ms': String(Math.ceil(retryAfterMs)),
    },
    ...!renewsSoon && { 'x-should-retry': 'false' },
  }
}

/** As Go's time.Duration writes whole milliseconds: `0s`, `120ms`, `8.64s`, `6m0s`, `1h0m0.5s`. */
function duration(ms: number): string {
  if (ms > 0 && ms < 1000) return `${ms}ms`
  const hours = Math.floor(ms / 3_600_000)
  const minutes = Math.floor(ms / 60_000) % 60
  const seconds = `${(ms % 60_000) / 1000}s`
  if (hours > 0) return `${hours}h${minutes}m${seconds}`
  return minutes > 0 ? `${minutes}m${seconds}` : seconds
}

function instant(ms: number): string {
  const seconds = Math.min(Math.ceil(ms / 1000) * 1000, LAST_SECOND)
  return new Date(seconds).toISOString().replace('.000Z', 'Z')
}
