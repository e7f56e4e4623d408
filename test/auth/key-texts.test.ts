import t from 'tap'
import { descriptionText, limitsText, modelsText, rotationText } from '../../src/auth/key-texts.ts'
import type { Limits } from '../../src/config/key-types.ts'

const NONE = { requestsPerMinute: null, tokensPerMinute: null, concurrent: null, budget: null }
const limits = (own: Partial<Limits>): Limits => ({ ...NONE, models: new Map(), ...own })

for (const [models, expected] of [[null, 'all'], [[], 'none'], [['gpt-*', 'fast'], 'gpt-*, fast']] as const) {
  t.test(`models are written as text: ${expected}`, async t => t.equal(modelsText(models), expected))
}

for (const [given, expected] of [
  [null, 'none'],
  [limits({}), 'none'],
  [limits({ requestsPerMinute: 0 }), '0 requests/min'],
  [limits({ requestsPerMinute: 60, tokensPerMinute: 5, concurrent: 3, budget: { usd: '2.50', per: 'day' } }), '60 requests/min, 5 tokens/min, 3 at a time, 2.50 USD a day'],
  [limits({ budget: { usd: '50', per: 'total' } }), '50 USD in total'],
  [limits({ budget: { usd: '50', per: 'month' }, models: new Map([['gpt-*', { ...NONE, concurrent: 1 }]]) }), '50 USD a month; gpt-*: 1 at a time'],
  [limits({ models: new Map([['a', { ...NONE, concurrent: 1 }], ['b', { ...NONE, concurrent: 2 }]]) }), 'a: 1 at a time; b: 2 at a time'],
] as const) {
  t.test(`limits are written as text: ${expected}`, async t => t.equal(limitsText(given), expected))
}

t.test('the description text of a key contains only fields that are set', async t => {
  t.equal(descriptionText({}), null)
  t.equal(descriptionText({ owner: 'research' }), 'owner: research')
  t.equal(descriptionText({ group: 'g', owner: 'o', note: 'n', expiresAt: Date.UTC(2027, 0, 1) }), 'group: g; owner: o; note: n; expires: 2027-01-01T00:00:00.000Z')
})

t.test('the text about a rotation has the end of the old secret', async t => {
  t.equal(rotationText({ oldValidUntil: 1001 }, 1000), 'old secret valid until 1970-01-01T00:00:01.001Z')
  t.equal(rotationText({ oldValidUntil: 1000 }, 1000), 'old secret refused')
})
