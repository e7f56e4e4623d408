import t from 'tap'
import { RateLimitWindow } from '../../../src/upstreams/credentials/rate-limit-window.ts'

const WALL = Date.UTC(2026, 0, 1)

for (const [what, headers, lowForMs] of [
  ['OpenAI', { 'X-RateLimit-Limit-Requests': '100', 'x-ratelimit-remaining-requests': '2', 'x-ratelimit-reset-requests': '1m30s' }, 90_000],
  ['tokens', { 'x-ratelimit-limit-tokens': '1000', 'x-ratelimit-remaining-tokens': '50', 'x-ratelimit-reset-tokens': '250ms' }, 250],
  ['Anthropic', { 'anthropic-ratelimit-requests-limit': '50', 'anthropic-ratelimit-requests-remaining': '0', 'anthropic-ratelimit-requests-reset': '2026-01-01T00:00:20Z' }, 20_000],
  ['seconds', { 'x-ratelimit-limit-requests': '100', 'x-ratelimit-remaining-requests': '0', 'x-ratelimit-reset-requests': '12' }, 12_000],
  ['no reset', { 'x-ratelimit-limit-requests': '100', 'x-ratelimit-remaining-requests': '0' }, 60_000],
  ['a reset that is nonsense', { 'x-ratelimit-limit-requests': '100', 'x-ratelimit-remaining-requests': '0', 'x-ratelimit-reset-requests': '-1; x' }, 60_000],
  ['a reset in a year', { 'x-ratelimit-limit-requests': '100', 'x-ratelimit-remaining-requests': '0', 'x-ratelimit-reset-requests': '365d' }, 600_000],
  ['enough left', { 'x-ratelimit-limit-requests': '100', 'x-ratelimit-remaining-requests': '6' }, 0],
  ['no limit', { 'x-ratelimit-remaining-requests': '0' }, 0],
  ['nothing', {}, 0],
] as readonly (readonly [string, Record<string, string>, number])[]) {
  t.test(what, async t => {
    const window = new RateLimitWindow()
    window.update(Object.entries(headers).flat(), 1_000, WALL)
    if (lowForMs === 0) t.equal(window.isLow(1_000), false)
    else t.strictSame([window.isLow(1_000), window.isLow(1_000 + lowForMs - 1), window.isLow(1_000 + lowForMs)], [true, true, false])
  })
}

t.test('isLow is true if few requests or few tokens remain', async t => {
  const window = new RateLimitWindow()
  window.update([
    'x-ratelimit-limit-requests', '100', 'x-ratelimit-remaining-requests', '99',
    'x-ratelimit-limit-tokens', '100', 'x-ratelimit-remaining-tokens', '1',
  ], 0, WALL)
  t.equal(window.isLow(0), true)
})

t.test('each limit shows the last values that the upstream sent', async t => {
  const window = new RateLimitWindow()
  t.equal(window.limits, null)
  window.update(['x-ratelimit-limit-requests', '100', 'x-ratelimit-remaining-requests', '2'], 0, WALL)
  t.strictSame(window.limits, { at: WALL, requests: { limit: 100, remaining: 2 }, tokens: null })
  window.update(['x-ratelimit-limit-tokens', '10', 'x-ratelimit-remaining-tokens', '9', 'x-other', '1'], 10, WALL + 10)
  window.update(['content-type', 'text/plain'], 20, WALL + 20)
  t.strictSame(window.limits, { at: WALL + 10, requests: { limit: 100, remaining: 2 }, tokens: { limit: 10, remaining: 9 } })
  t.equal(window.isLow(20), true)
  window.update(['x-ratelimit-limit-requests', '100', 'x-ratelimit-remaining-requests', '90'], 30, WALL + 30)
  t.equal(window.isLow(30), false, 'the limit was reset')
})
