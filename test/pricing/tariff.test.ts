import t from 'tap'
import type { Price } from '../../src/config/price-types.ts'
import { ITEMS } from '../../src/pricing/quantities.ts'
import type { Item } from '../../src/pricing/quantities.ts'
import { tariffOf } from '../../src/pricing/tariff.ts'
import type { Rates } from '../../src/pricing/tariff.ts'

/** Rates in USD per million, by item; items without a rate are left out. */
function byItem({ perMillion, scale }: Rates): Partial<Record<Item, number>> {
  return Object.fromEntries(ITEMS.flatMap(({ item }, i) => {
    const rate = perMillion[i]
    return rate === null || rate === undefined ? [] : [[item, Number(rate) / 10 ** scale]]
  }))
}

const INPUTS = ['cached_input', 'cache_write_5m', 'cache_write_1h', 'input_audio', 'input_image', 'input'] as const
const OUTPUTS = ['reasoning', 'output_audio', 'output_image', 'output'] as const
const all = (items: readonly Item[], rate: number) => Object.fromEntries(items.map(item => [item, rate]))

const RATES: readonly (readonly [what: string, price: Price, expected: Partial<Record<Item, number>>])[] = [
  ['items without a rate have the rate of input or output', { input: '2', output: '3' }, { ...all(INPUTS, 2), ...all(OUTPUTS, 3) }],
  ['kinds of input can have their own rates', { input: '2', cachedInput: '0.5', inputAudio: '4', inputImage: '5' }, { ...all(INPUTS, 2), cached_input: 0.5, input_audio: 4, input_image: 5 }],
  ['kinds of output can have their own rates', { output: '3', reasoning: '6', outputAudio: '7', outputImage: '8' }, { output: 3, reasoning: 6, output_audio: 7, output_image: 8 }],
  ['a long cache write has the rate of a short one', { input: '2', cacheWrite5m: '2.5' }, { ...all(INPUTS, 2), cache_write_5m: 2.5, cache_write_1h: 2.5 }],
  ['a short cache write does not get the rate of a long one', { input: '2', cacheWrite1h: '4' }, { ...all(INPUTS, 2), cache_write_1h: 4 }],
  ['without a rate for input, input has no rate', { output: '3' }, all(OUTPUTS, 3)],
  ['a rate of 0 is a rate', { input: '0' }, all(INPUTS, 0)],
  ['prices for one are kept per million', { perSecond: '0.0001', perCharacter: '0.000015', perImage: '0.04', perRequest: '0.01' }, { second: 100, character: 15, image: 40_000, request: 10_000 }],
]

for (const [what, price, expected] of RATES) {
  t.test(`the rates of a price: ${what}`, async t => t.strictSame(byItem(tariffOf(price).base.rates), expected))
}

t.test('a tier replaces the rates that it names and keeps the others', async t => {
  const { base, tiers } = tariffOf({ input: '1', output: '2', reasoning: '5', tiers: [{ above: 100, price: { input: '3' } }, { above: 200, price: { output: '4' } }] })
  t.match(byItem(base.rates), { input: 1, output: 2 })
  t.strictSame(tiers.map(({ above }) => above), [100, 200])
  t.match(byItem(tiers[0]!.rates), { input: 3, cached_input: 3, output: 2, reasoning: 5 })
  t.match(byItem(tiers[1]!.rates), { input: 1, output: 4, reasoning: 5 })
})

t.test('a reservation uses the highest rate of all output, and the highest rate of all input for media', async t => {
  const ceilingOf = (price: Price) => byItem(tariffOf(price).base.ceiling)
  t.match(ceilingOf({ output: '3', reasoning: '9', outputImage: '5' }), { output: 9, reasoning: 9, output_image: 5 })
  t.match(ceilingOf({ output: '3', outputAudio: '12' }), { output: 12 })
  t.match(ceilingOf({ output: '3', outputImage: '30' }), { output: 30 })
  t.match(ceilingOf({ output: '3', reasoning: '1' }), { output: 3 })
  t.match(ceilingOf({ input: '2', inputAudio: '32', inputImage: '5' }), { input_image: 32, input: 2 })
  t.match(ceilingOf({ input: '2', inputImage: '1' }), { input_image: 2, input: 2 })
  t.strictSame(ceilingOf({ perRequest: '1' }), { request: 1_000_000 })
})

t.test('pricesTokens is true if a price has a rate for input or output', async t => {
  t.equal(tariffOf({ input: '1' }).pricesTokens, true)
  t.equal(tariffOf({ output: '1' }).pricesTokens, true)
  t.equal(tariffOf({ perRequest: '1', reasoning: '1' }).pricesTokens, false)
})

t.test('rates keep all digits', async t => {
  const { perMillion, scale } = tariffOf({ input: '0.0000000001', perSecond: '0.0000000000000002' }).base.rates
  t.equal(scale, 10)
  t.equal(perMillion[ITEMS.findIndex(({ item }) => item === 'input')], 1n)
  t.equal(perMillion[ITEMS.findIndex(({ item }) => item === 'second')], 2n)
  t.equal(tariffOf({ input: '3' }).base.rates.scale, 6)
})

t.test('a price that is not a decimal is an error', async t => {
  t.throws(() => tariffOf({ input: 'free' }), RangeError)
  const price = { input: '1' }
  t.equal(tariffOf(price), tariffOf(price), 'each price is read once')
})
