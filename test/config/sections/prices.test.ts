import t from 'tap'
import type { Price } from '../../../src/config/price-types.ts'
import { LEAST, load, problems } from '../../behaviour/config/loading.ts'

const withPrice = (price: string) => `${LEAST}auth: open\nmodels: { m: { price: ${price} } }\n`
const modelOf = (t: Parameters<typeof load>[0], price: string) => load(t, withPrice(price)).config.models.get('m')

for (const [written, expected] of [
  ['0.40', '0.40'], ['3', '3'], ['.5', '0.5'], ['5.', '5'], ['2.5e-05', '0.000025'], ['1e3', '1000'], ['1.5e1', '15'], ['12.5e-1', '1.25'], ['0', '0'], ['007', '007'],
] as const) {
  t.test(`a price of ${written} is stored as ${expected}`, async t => {
    t.equal(modelOf(t, `{ input: ${written} }`)?.price?.input, expected)
  })
}

const PRICES: readonly (readonly [what: string, price: string, expected: Price])[] = [
  ['every kind of token', '{ input: 1, cached_input: 2, output: 3, reasoning: 4, input_audio: 5, output_audio: 6, input_image: 7, output_image: 8 }', {
    input: '1', cachedInput: '2', output: '3', reasoning: '4', inputAudio: '5', outputAudio: '6', inputImage: '7', outputImage: '8',
  }],
  ['every unit', '{ per_request: 1, per_second: 2, per_character: 3, per_image: 4 }', { perRequest: '1', perSecond: '2', perCharacter: '3', perImage: '4' }],
  ['one price for all cache writes', '{ cache_write: 3.75 }', { cacheWrite5m: '3.75', cacheWrite1h: '3.75' }],
  ['cache writes by lifetime', '{ cache_write: { 5m: 3.75, 1h: 6 } }', { cacheWrite5m: '3.75', cacheWrite1h: '6' }],
  ['one lifetime', '{ cache_write: { 1h: 6 } }', { cacheWrite1h: '6' }],
  ['tiers in any order', '{ input: 1, tiers: [{ above: 200, input: 3 }, { above: 100, input: 2 }] }', {
    input: '1', tiers: [{ above: 100, price: { input: '2' } }, { above: 200, price: { input: '3' } }],
  }],
]

for (const [what, price, expected] of PRICES) {
  t.test(`a price has ${what}`, async t => t.strictSame(modelOf(t, price)?.price, expected))
}

t.test('a service tier has the rates of the model in place of omitted rates', async t => {
  const model = modelOf(t, '{ input: 2, output: 8, service_tiers: { flex: { input: 1 }, priority: { output: 16 } } }')
  t.strictSame(model?.price, { input: '2', output: '8' })
  t.strictSame(model?.serviceTiers, new Map([['flex', { input: '1', output: '8' }], ['priority', { input: '2', output: '16' }]]))
})

t.test('a model without a price can name a base model', async t => {
  t.match(load(t, `${LEAST}models: { m: { base_model: gpt-4o } }\n`).config.models.get('m'), { name: 'm', baseModel: 'gpt-4o', price: null, accepts: null })
})

const PROBLEMS: readonly (readonly [what: string, price: string, severity: string, message: RegExp])[] = [
  ['two tiers above the same number', '{ input: 1, tiers: [{ above: 9, input: 2 }, { above: 9, output: 3 }] }', 'error', /another tier starts above the same number/],
  ['a tier without a price', '{ input: 1, tiers: [{ above: 9 }] }', 'error', /needs a price in addition to above/],
  ['a service tier whose rates a context tier overrides', '{ input: 1, tiers: [{ above: 9, input: 2 }], service_tiers: { flex: { input: 0.5 } } }', 'warning', /the tiers of the model overrule these prices/],
  ['a hexadecimal number', '{ input: 0x10 }', 'error', /as a decimal/],
]

for (const [what, price, severity, message] of PROBLEMS) {
  t.test(`a price with ${what} is reported`, async t => t.match(problems(t, withPrice(price)), [{ severity, line: 4, message }]))
}

t.test('a service tier whose rates no context tier overrides gives no warning', async t => {
  t.strictSame(problems(t, withPrice('{ input: 1, tiers: [{ above: 9, input: 2 }], service_tiers: { flex: { output: 0.5 } } }')), [])
  t.strictSame(problems(t, withPrice('{ input: 1, tiers: [{ above: 9, input: 2 }], service_tiers: { flex: { input: 0.5, tiers: [{ above: 9, input: 1 }] } } }')), [])
})

t.test('a glob in place of a model name causes a warning', async t => {
  t.match(problems(t, `${LEAST}auth: open\nmodels: { "gpt-*": { price: { input: 1 } } }\n`), [{ severity: 'warning', message: /not a pattern/ }])
})
