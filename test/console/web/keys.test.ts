import t from 'tap'
import {
  changeOf, fieldsOf, keyOf, NO_RATES, fieldErrors,
} from '../../../src/console/web/src/pages/keys/fields.ts'

const KEY = {
  name: 'team-a',
  models: ['gpt-*', 'fast'],
  limits: {
    requests_per_minute: 60, budget: { usd: '0.10', per: 'day' as const },
      models: { 'gpt-4*': { concurrent: 2 } },
  },
}

t.test('a form that is filled from a key returns the same key', async t => {
  t.strictSame(keyOf(fieldsOf(KEY)), KEY)
  t.strictSame(fieldErrors(fieldsOf(KEY)), {})
})

t.test('the form sends only the fields that changed', async t => {
  const before = fieldsOf(KEY)
  t.strictSame(changeOf(fieldsOf(KEY), before), {})
  t.strictSame(changeOf({ ...before, models: [] }, before), { models: null })
  const rates = { ...before.rates, concurrent: '7' }
  t.strictSame(changeOf({ ...before, rates }, before), { limits: { ...KEY.limits, concurrent: 7 } })
  t.strictSame(changeOf({ ...before, rates: NO_RATES, byModel: [] }, before), { limits: null })
  const noModels = fieldsOf({ ...KEY, models: [] })
  t.strictSame(
    changeOf({ ...noModels, rates: NO_RATES, byModel: [] }, noModels), { limits: null },
    'a key with an empty list of models keeps the empty list',
  )
})

t.test('a form with only a name creates a key for all models without limits', async t => {
  t.strictSame(keyOf({ ...fieldsOf(null), name: ' ci ' }), { name: 'ci' })
})

t.test('a number can have thousands separators, and a budget keeps all its digits', async t => {
  const fields = { ...fieldsOf(null), name: 'a',
    rates: { ...NO_RATES, tokens_per_minute: '100,000', usd: '0.100000000001' } }
  t.strictSame(fieldErrors(fields), {})
  t.strictSame(keyOf(fields).limits,
    { tokens_per_minute: 100000, budget: { usd: '0.100000000001', per: 'month' } })
})

t.test('each invalid field of the form has an error', async t => {
  const rates = { ...NO_RATES, requests_per_minute: '0', tokens_per_minute: '1.5', concurrent: '-1',
    usd: '1e3' }
  const errors = fieldErrors({ ...fieldsOf(null), rates, byModel: [
    { id: 4, glob: '', rates: NO_RATES },
    { id: 5, glob: 'a', rates: { ...NO_RATES, usd: 'x' } },
    { id: 6, glob: 'a', rates: { ...NO_RATES, concurrent: '1' } },
  ] })
  t.strictSame(Object.keys(errors).toSorted(), [
    '4.glob', '5.usd', '6.glob', 'concurrent', 'name', 'requests_per_minute', 'tokens_per_minute', 'usd',
  ])
  t.match(fieldErrors({ ...fieldsOf(null), name: `mgw_${'a'.repeat(38)}` })['name'], /This is an API key/)
})
