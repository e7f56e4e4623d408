import fc from 'fast-check'
import t from 'tap'
import { messagesRateLimitHeaders } from '../../../src/protocols/messages/errors.ts'
import { rateLimitHeaders } from '../../../src/protocols/endpoint/rate-limit-headers.ts'

const none = { requests: null, tokens: null }

/** Converts a flat list of names and values to an object. */
function named(flat: readonly string[]): Record<string, string> {
  return Object.fromEntries(Array.from({ length: flat.length / 2 }, (_, i) => flat.slice(2 * i, 2 * i + 2)))
}

t.test('OpenAI clients get rate-limit headers with durations', async t => {
  t.strictSame(named(rateLimitHeaders({
    requests: { limit: 60, remaining: 59, resetMs: 1000 },
    tokens: { limit: 150000, remaining: 149984, resetMs: 360_000 },
  })), {
    'x-ratelimit-limit-requests': '60',
    'x-ratelimit-remaining-requests': '59',
    'x-ratelimit-reset-requests': '1s',
    'x-ratelimit-limit-tokens': '150000',
    'x-ratelimit-remaining-tokens': '149984',
    'x-ratelimit-reset-tokens': '6m0s',
  }, 'the example of the documentation')

  const durations: [number, string][] = [
    [0, '0s'], [1, '1ms'], [120, '120ms'], [999, '999ms'], [1500, '1.5s'], [8640, '8.64s'],
    [59_999, '59.999s'], [60_000, '1m0s'], [61_005, '1m1.005s'],
    [3_600_000, '1h0m0s'], [90_000_500, '25h0m0.5s'],
  ]
  for (const [resetMs, text] of durations) {
    const headers = named(rateLimitHeaders({ ...none, tokens: { limit: 1, remaining: 0, resetMs } }))
    t.equal(headers['x-ratelimit-reset-tokens'], text)
  }
})

t.test('Anthropic clients get rate-limit headers with times', async t => {
  t.strictSame(named(messagesRateLimitHeaders({
    requests: { limit: 60, remaining: 59, resetMs: 999 },
    tokens: { limit: 1000, remaining: 0, resetMs: 0 },
  }, Date.parse('2026-12-31T23:59:59.500Z'))), {
    'anthropic-ratelimit-requests-limit': '60',
    'anthropic-ratelimit-requests-remaining': '59',
    'anthropic-ratelimit-requests-reset': '2027-01-01T00:00:01Z',
    'anthropic-ratelimit-tokens-limit': '1000',
    'anthropic-ratelimit-tokens-remaining': '0',
    'anthropic-ratelimit-tokens-reset': '2027-01-01T00:00:00Z',
  })
})

t.test('a key without a limit gets no rate-limit header', async t => {
  t.strictSame(rateLimitHeaders(none), [])
  t.strictSame(messagesRateLimitHeaders(none, 0), [])
  const tokens = { limit: 1, remaining: 1, resetMs: 0 }
  t.strictSame(Object.keys(named(rateLimitHeaders({ ...none, tokens }))), [
    'x-ratelimit-limit-tokens', 'x-ratelimit-remaining-tokens', 'x-ratelimit-reset-tokens',
  ])
})

t.test('property: any reset time can be written', async () => {
  fc.assert(fc.property(fc.maxSafeNat(), fc.nat(4e12), (resetMs, now) => {
    const figures = { ...none, tokens: { limit: 1, remaining: 0, resetMs } }
    const instant = named(messagesRateLimitHeaders(figures, now))['anthropic-ratelimit-tokens-reset'] ?? ''
    const duration = named(rateLimitHeaders(figures))['x-ratelimit-reset-tokens'] ?? ''
    return /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(instant) && milliseconds(duration) === resetMs
  }))
})

/** Reads a duration in the manner of Go's time.ParseDuration. */
function milliseconds(duration: string): number {
  const units: Record<string, number> = { h: 3_600_000, m: 60_000, s: 1000, ms: 1 }
  let sum = 0
  for (const [, amount = '', unit = ''] of duration.matchAll(/([\d.]+)(ms|[hms])/g)) {
    sum += Math.round(Number(amount) * (units[unit] ?? NaN))
  }
  return sum
}
