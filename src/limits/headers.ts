import type { Figures, RateFigures, Refusal } from './types.ts'

/** The last second of the year 9999, the end of what RFC 3339 can write; ms since 1970. */
const LAST_SECOND = 253_402_300_799_000

const RATES = ['requests', 'tokens'] as const

/**
 * OpenAI's convention: `x-ratelimit-{limit,remaining,reset}-{requests,tokens}`,
 * reset as a duration such as `120ms`, `1s` or `6m0s`.
 *
 * Source: OpenAI API documentation, guide "Rate limits", "Rate limits in headers".
 */
export function openaiRateHeaders(figures: Figures): Record<string, string> {
  return headersOf(figures, (rate, { limit, remaining, resetMs }) => ({
    [`x-ratelimit-limit-${rate}`]: String(limit),
    [`x-ratelimit-remaining-${rate}`]: String(remaining),
    [`x-ratelimit-reset-${rate}`]: duration(resetMs),
  }))
}

/**
 * Anthropic's convention: `anthropic-ratelimit-{requests,tokens}-{limit,remaining,reset}`,
 * reset as an RFC 3339 time in UTC, rounded up to the second.
 *
 * Source: Anthropic API documentation, "Rate limits", "Response headers".
 *
 * @param nowMs - ms since 1970
 */
export function anthropicRateHeaders(figures: Figures, nowMs: number): Record<string, string> {
  return headersOf(figures, (rate, { limit, remaining, resetMs }) => ({
    [`anthropic-ratelimit-${rate}-limit`]: String(limit),
    [`anthropic-ratelimit-${rate}-remaining`]: String(remaining),
    [`anthropic-ratelimit-${rate}-reset`]: instant(nowMs + resetMs),
  }))
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

function headersOf(
  figures: Figures,
  render: (rate: 'requests' | 'tokens', figures: RateFigures) => Record<string, string>,
): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const rate of RATES) {
    const rateFigures = figures[rate]
    if (rateFigures !== null) Object.assign(headers, render(rate, rateFigures))
  }
  return headers
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
