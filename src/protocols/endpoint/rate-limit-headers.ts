interface RateLimitFigure {
  readonly limit: number
  readonly remaining: number
  /** Milliseconds until the full limit is available. */
  readonly resetMs: number
}

/** Rate limits of a key; null = no limit. */
export interface RateLimitFigures {
  readonly requests: RateLimitFigure | null
  readonly tokens: RateLimitFigure | null
}

type HeaderNames = Readonly<Record<'requests' | 'tokens', Readonly<Record<'limit' | 'remaining' | 'reset', string>>>>

const RATES = ['requests', 'tokens'] as const

const OPENAI_NAMES = {
  requests: { limit: 'x-ratelimit-limit-requests', remaining: 'x-ratelimit-remaining-requests', reset: 'x-ratelimit-reset-requests' },
  tokens: { limit: 'x-ratelimit-limit-tokens', remaining: 'x-ratelimit-remaining-tokens', reset: 'x-ratelimit-reset-tokens' },
} as const

/**
 * OpenAI's headers `x-ratelimit-{limit,remaining,reset}-{requests,tokens}`, as a flat list of names and values. `reset` is a duration:
 * `120ms`, `6m0s`. Source: OpenAI API documentation, guide "Rate limits", "Rate limits in headers".
 */
export function rateLimitHeaders(figures: RateLimitFigures): string[] {
  return headersOf(figures, OPENAI_NAMES, duration)
}

/** @param reset formats the milliseconds until the full limit is available */
export function headersOf(
  figures: RateLimitFigures, names: HeaderNames, reset: (ms: number) => string,
): string[] {
  const headers: string[] = []
  for (const rate of RATES) {
    const figure = figures[rate]
    if (figure === null) continue
    const name = names[rate]
    headers.push(name.limit, String(figure.limit), name.remaining, String(figure.remaining), name.reset, reset(figure.resetMs))
  }
  return headers
}

/** Formats whole milliseconds as Go's time.Duration: `0s`, `120ms`, `8.64s`, `6m0s`, `1h0m0.5s`. */
function duration(ms: number): string {
  if (ms > 0 && ms < 1000) return `${ms}ms`
  const hours = Math.floor(ms / 3_600_000)
  const minutes = Math.floor(ms / 60_000) % 60
  const seconds = `${(ms % 60_000) / 1000}s`
  if (hours > 0) return `${hours}h${minutes}m${seconds}`
  return minutes > 0 ? `${minutes}m${seconds}` : seconds
}
