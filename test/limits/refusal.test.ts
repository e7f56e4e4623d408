import t from 'tap'
import { refusalOf } from '../../src/limits/refusal.ts'
import type { BlockingLimit } from '../../src/limits/scope.ts'
import type { ScopeLimits } from '../../src/limits/types.ts'

const LIMITS: ScopeLimits = { requestsPerMinute: 60, tokensPerMinute: 1000, concurrent: 3, budget: { usd: '2.50', per: 'month' } }
const REQUEST = { key: { name: 'secret-name', limits: null }, model: 'gpt-4.1', estimate: { tokens: 400, pico: 1n } }

function refusal(which: BlockingLimit['which'], waitMs: number, scope: Partial<BlockingLimit['scope']> = {}) {
  return refusalOf({ which, waitMs, scope: { group: null, model: null, limits: LIMITS, ...scope } }, REQUEST)
}

const MESSAGES: readonly (readonly [ReturnType<typeof refusal>, message: string])[] = [
  [refusal('requests', 5), 'Rate limit of this key reached: 60 requests per minute.'],
  [refusal('requests', 5, { group: 'research' }), 'Rate limit of the group research reached: 60 requests per minute.'],
  [refusal('requests', 5, { model: 'gpt-*' }), 'Rate limit of this key on models gpt-* reached: 60 requests per minute.'],
  [refusal('tokens', 5, { group: 'a', model: 'b*' }), 'Rate limit of the group a on models b* reached: 1000 tokens per minute; this request may use 400.'],
  [refusal('tokens', Infinity), 'Request too large for this key: this request may use 400 tokens, 1000 per minute are allowed.'],
  [refusal('concurrent', 5), 'Too many requests at once for this key: 3 may run at a time.'],
  [refusal('budget', 5), 'This request may cost more than is left of the budget of this key (2.50 USD per month).'],
  [refusal('budget', Infinity, { limits: { ...LIMITS, budget: { usd: '5', per: 'total' } } }), 'This request may cost more than is left of the budget of this key (5 USD in total).'],
]

for (const [{ message }, expected] of MESSAGES) {
  t.test(`a refusal says which limit is reached: ${expected.slice(0, 60)}`, async t => t.equal(message, expected))
}

t.test('the refusal of an unpriced model says what the operator can do', async t => {
  const { message, which } = refusal('unpriced', Infinity)
  t.match(message, /^No price for this model, .* the budget of this key \(2\.50 USD per month\) requires a price\. The operator can set one under models\.$/)
  t.equal(which, 'unpriced')
})

t.test('a refusal has the key, group and model of the limit, and the message does not name the key', async t => {
  const { scope, message } = refusal('tokens', 5, { group: 'research', model: 'gpt-*' })
  t.strictSame(scope, { key: 'secret-name', group: 'research', model: 'gpt-*' })
  t.notMatch(message, 'secret-name')
})

for (const [waitMs, retryAfterMs, renewsSoon] of [[1, 1, true], [60_000, 60_000, true], [60_001, 60_001, false], [Infinity, null, false]] as const) {
  t.test(`a client ${renewsSoon ? 'may retry' : 'must not retry by itself'} after ${waitMs} ms`, async t => {
    t.match(refusal('requests', waitMs), { retryAfterMs, renewsSoon })
  })
}
