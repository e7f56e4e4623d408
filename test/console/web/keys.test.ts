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

t.test('a key that goes through its form is the same key', async t => {
  t.strictSame(keyOf(fieldsOf(KEY)), KEY)
  t.strictSame(fieldErrors(fieldsOf(KEY)), {})
})

t.test('of a key that is changed only that is sent which is other', async t => {
  const before = fieldsOf(KEY)
  t.strictSame(changeOf(fieldsOf(KEY), before), {})
  t.strictSame(changeOf({ ...before, models: [] }, before), { models: null })
  const rates = { ...before.rates, concurrent: '7' }
  t.strictSame(changeOf({ ...before, rates }, before), { limits: { ...KEY.limits, concurrent: 7 } })
  t.strictSame(changeOf({ ...before, rates: NO_RATES, byModel: [] }, before), { limits: null })
  const shutOut = fieldsOf({ ...KEY, models: [] })
  t.strictSame(
    changeOf({ ...shutOut, rates: NO_RATES, byModel: [] }, shutOut), { limits: null },
    'a key that may use no model does not get all of them',
  )
})

t.test('an empty form is a key without limits, for every model', async t => {
  t.strictSame(keyOf({ ...fieldsOf(null), name: ' ci ' }), { name: 'ci' })
})

t.test('thousands may be separated, and money keeps all its digits', async t => {
  const fields = { ...fieldsOf(null), name: 'a',
    rates: { ...NO_RATES, tokens_per_minute: '100,000', usd: '0.100000000001' } }
  t.strictSame(fieldErrors(fields), {})
  t.strictSame(keyOf(fields).limits,
    { tokens_per_minute: 100000, budget: { usd: '0.100000000001', per: 'month' } })
})

t.test('what the gateway would refuse is said beside its field', async t => {
  const rates = { ...NO_RATES, requests_per_minute: '0', tokens_per_minute: '1.5', concurrent: '-1',
    usd: '1e3' }
  const wrong = fieldErrors({ ...fieldsOf(null), rates, byModel: [
    { id: 4, glob: '', rates: NO_RATES },
    { id: 5, glob: 'a', rates: { ...NO_RATES, usd: 'x' } },
    { id: 6, glob: 'a', rates: { ...NO_RATES, concurrent: '1' } },
  ] })
  t.strictSame(Object.keys(wrong).toSorted(), [
    '4.glob', '5.usd', '6.glob', 'concurrent', 'name', 'requests_per_minute', 'tokens_per_minute', 'usd',
  ])
  t.match(fieldErrors({ ...fieldsOf(null), name: `mgw_${'a'.repeat(38)}` })['name'], /That is a key/)
})
