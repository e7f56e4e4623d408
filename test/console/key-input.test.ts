import t from 'tap'
import { checkDescription, checkModels, checkName, expiryOf, limitsOf, toPlainLimits } from '../../src/console/key-input.ts'

const NONE = { requestsPerMinute: null, tokensPerMinute: null, concurrent: null, budget: null }

t.test('limits are converted from the form of the console API to that of the gateway and back', async t => {
  const plain = { requests_per_minute: 60, budget: { usd: '0.25', per: 'day' }, models: { 'gpt-*': { concurrent: 1, tokens_per_minute: 1_000_000_000_000 } } } as const
  const limits = limitsOf(plain)
  t.strictSame(limits, { ...NONE, requestsPerMinute: 60, budget: { usd: '0.25', per: 'day' }, models: new Map([['gpt-*', { ...NONE, concurrent: 1, tokensPerMinute: 1_000_000_000_000 }]]) })
  t.strictSame(toPlainLimits(limits), plain)
  t.strictSame(limitsOf({}), { ...NONE, models: new Map() })
  t.equal(toPlainLimits(null), null)
})

const REFUSED: readonly (readonly [limits: Parameters<typeof limitsOf>[0], field: string])[] = [
  [{ requests_per_minute: 0 }, 'limits.requests_per_minute'], [{ tokens_per_minute: -1 }, 'limits.tokens_per_minute'], [{ concurrent: 1_000_000_000_001 }, 'limits.concurrent'], [{ concurrent: NaN }, 'limits.concurrent'],
  [{ budget: { usd: '', per: 'day' } }, 'limits.budget.usd'], [{ budget: { usd: '-1', per: 'day' } }, 'limits.budget.usd'], [{ budget: { usd: '1e3', per: 'day' } }, 'limits.budget.usd'], [{ budget: { usd: '1000000001', per: 'day' } }, 'limits.budget.usd'],
  [{ budget: { usd: '0.0000000000001', per: 'day' } }, 'limits.budget.usd'], [{ models: { m: { concurrent: 0 } } }, 'limits.models.m.concurrent'], [{ models: { ' ': {} } }, 'limits.models'], [{ models: { ['x'.repeat(1025)]: {} } }, 'limits.models'],
]

for (const [limits, field] of REFUSED) {
  t.test(`limits of ${JSON.stringify(limits).slice(0, 60)} are refused`, async t => t.throws(() => limitsOf(limits), { code: 'bad_request', field, message: new RegExp(`^${field.replaceAll('.', '\\.')} must be `) }))
}

for (const usd of ['0', '50', '0.000000000001', '1000000000']) {
  t.test(`a budget of ${usd} USD is accepted`, async t => t.equal(limitsOf({ budget: { usd, per: 'total' } }).budget?.usd, usd))
}

t.test('a key name that consists of dots is refused', async t => {
  t.equal(checkName('team'), 'team')
  t.throws(() => checkName('..'), { code: 'bad_request', field: 'name', message: 'name cannot be one or two dots.' })
})

for (const [described, field] of [[{ owner: '' }, 'owner'], [{ owner: ' \t' }, 'owner'], [{ note: 'a\nb' }, 'note'], [{ owner: 'a', note: '\x7f' }, 'note']] as const) {
  t.test(`the description ${JSON.stringify(described)} is refused because it is not one line of text`, async t => t.throws(() => checkDescription(described), { code: 'bad_request', field, message: `${field} must be a line of text.` }))
}

t.test('owner and note can be absent, null or text', async t => {
  for (const described of [{}, { owner: null, note: null }, { owner: 'R&D', note: 'é' }]) t.equal(checkDescription(described), described)
})

t.test('the expiry of a key must be in the future', async t => {
  const now = Date.parse('2027-01-01T00:00:00Z')
  t.equal(expiryOf('2027-01-01T00:00:00.001Z', now), now + 1)
  for (const at of ['2027-01-01T00:00:00Z', '2020-01-01', 'soon']) t.throws(() => expiryOf(at, now), { field: 'expires_at', message: 'expires_at must be in the future.' })
})

t.test('duplicate models of a key are removed', async t => {
  t.strictSame(checkModels(['a', 'b*', 'a']), ['a', 'b*'])
  t.strictSame(checkModels([]), [])
  t.throws(() => checkModels(['a', ' ']), { code: 'bad_request', field: 'models', message: /^models must be names or globs/ })
})
