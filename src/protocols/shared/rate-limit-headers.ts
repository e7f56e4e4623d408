/** How much of one rate limit is left. */
interface RateLimitFigure {
  readonly limit: number
  readonly remaining: number
  /** Milliseconds until all of it is there again. */
  readonly resetMs: number
}

/** The rate limits of a key; null = there is none. */
export interface RateLimitFigures {
  readonly requests: RateLimitFigure | null
  readonly tokens: RateLimitFigure | null
}

const RATES = ['requests', 'tokens'] as const

const NAMES = {
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

/**
 * OpenAI's convention: `x-ratelimit-{limit,remaining,reset}-{requests,tokens}`,
 * reset as a duration such as `120ms`, `1s` or `6m0s`. A flat list of names and values.
 *
 * Source: OpenAI API documentation, guide "Rate limits", "Rate limits in headers".
 */
export function rateLimitHeaders(figures: RateLimitFigures): string[] {
  const headers: string[] = []
  for (const rate of RATES) {
    const figure = figures[rate]
    if (figure === null) continue
    const { limit, remaining, reset } = NAMES[rate]
    headers.push(
      limit, String(figure.limit), remaining, String(figure.remaining), reset, duration(figure.resetMs),
    )
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
