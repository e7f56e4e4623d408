import { headersOf } from '../endpoint/rate-limit-headers.ts'
import type { RateLimitFigures } from '../endpoint/rate-limit-headers.ts'

/** The last second of the year 9999, the latest time in RFC 3339; ms since 1970. */
const LAST_SECOND = 253_402_300_799_000

const NAMES = {
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
 * Anthropic's convention: `anthropic-ratelimit-{requests,tokens}-{limit,remaining,reset}`,
 * reset as an RFC 3339 time in UTC, rounded up to the second. A flat list of names and values.
 *
 * Source: Anthropic API documentation, "Rate limits", "Response headers".
 *
 * @param nowMs - ms since 1970
 */
export function messagesRateLimitHeaders(figures: RateLimitFigures, nowMs: number): string[] {
  return headersOf(figures, NAMES, ms => instant(nowMs + ms))
}

function instant(ms: number): string {
  const seconds = Math.min(Math.ceil(ms / 1000) * 1000, LAST_SECOND)
  return new Date(seconds).toISOString().replace('.000Z', 'Z')
}
