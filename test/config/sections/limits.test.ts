import t from 'tap'
import { LEAST, load, problems } from '../../behaviour/config/loading.ts'

const NONE = { requestsPerMinute: null, tokensPerMinute: null, concurrent: null, budget: null }
const withLimits = (limits: string) => `${LEAST}keys: [{ name: a, key: sk-0123456789abcdef, limits: ${limits} }]\n`
const limitsOf = (t: Parameters<typeof load>[0], limits: string) => load(t, withLimits(limits)).config.keys[0]?.limits

t.test('an omitted limit does not limit', async t => {
  t.strictSame(limitsOf(t, '{}'), { ...NONE, models: new Map() })
  t.strictSame(limitsOf(t, '{ requests_per_minute: 60 }'), { ...NONE, requestsPerMinute: 60, models: new Map() })
  t.equal(load(t, `${LEAST}keys: [{ name: a, key: sk-0123456789abcdef }]\n`).config.keys[0]?.limits, null)
})

t.test('requests, tokens and concurrency of a key can be limited', async t => {
  t.match(limitsOf(t, '{ requests_per_minute: 1, tokens_per_minute: 2, concurrent: 3 }'), { requestsPerMinute: 1, tokensPerMinute: 2, concurrent: 3 })
})

t.test('a budget keeps all digits of its amount', async t => {
  t.match(limitsOf(t, '{ budget: { usd: 2.50, per: month } }'), { budget: { usd: '2.50', per: 'month' } })
  t.match(limitsOf(t, '{ budget: { usd: 1e-3, per: total } }'), { budget: { usd: '0.001', per: 'total' } })
})

t.test('limits can contain further limits for models', async t => {
  const limits = limitsOf(t, '{ concurrent: 5, models: { "gpt-*": { concurrent: 2, budget: { usd: 1, per: day } }, m: { tokens_per_minute: 10 } } }')
  t.strictSame(limits, {
    ...NONE, concurrent: 5,
    models: new Map([['gpt-*', { ...NONE, concurrent: 2, budget: { usd: '1', per: 'day' } }], ['m', { ...NONE, tokensPerMinute: 10 }]]),
  })
})

for (const [limits, message] of [
  ['{ budget: { usd: 1 } }', /needs "per"/], ['{ budget: { per: day } }', /needs "usd"/], ['{ concurrent: 0 }', /concurrent must be >= 1/], ['{ requests_per_minute: 1.5 }', /whole number/],
  ['{ models: { m: { models: {} } } }', /unknown key "models"/],
] as const) {
  t.test(`limits of ${limits} are refused`, async t => {
    t.match(problems(t, withLimits(limits))[0], { severity: 'error', line: 3, message })
  })
}
