import t from 'tap'
import type { ModelPrice } from '@pydantic/genai-prices'
import type { Price } from '../../src/config/price-types.ts'
import { fromCatalogue } from '../../src/pricing/catalogue.ts'

const CASES: readonly (readonly [what: string, listed: object, expected: Price | null])[] = [
  ['nothing', {}, null],
  ['keys without a quantity in the usage', { search_count_kcount: 10, constructor: 1 }, null],
  ['an explicit 0', { input_mtok: 0 }, { input: '0' }],
  ['an absent value', { input_mtok: undefined, output_mtok: 2 }, { output: '2' }],
  [
    'tokens of every kind',
    {
      input_mtok: 1, cache_read_mtok: 0.1, cache_write_mtok: 1.25, cache_write_1h_mtok: 2, output_mtok: 4,
      output_reasoning_mtok: 5, input_audio_mtok: 6, output_audio_mtok: 7, input_image_mtok: 8, output_image_mtok: 9,
    },
    {
      input: '1', cachedInput: '0.1', cacheWrite5m: '1.25', cacheWrite1h: '2', output: '4', reasoning: '5', inputAudio: '6',
      outputAudio: '7', inputImage: '8', outputImage: '9',
    },
  ],
  ['a small number, which JavaScript prints with an exponent', { input_mtok: 2.5e-7 }, { input: '0.00000025' }],
  ['thousands of requests', { requests_kcount: 12 }, { perRequest: '0.012' }],
  ['millions of characters', { input_mchars: 15 }, { perCharacter: '0.000015' }],
  ['hours of audio', { input_audio_hours: 0.36 }, { perSecond: '0.0001' }],
  ['a price per hour that is no finite decimal per second', { input_audio_hours: 0.4 }, { perSecond: '0.000111111111111111111111' }],
  [
    'a tier',
    { input_mtok: { base: 1, tiers: [{ start: 200_000, price: 2 }] }, output_mtok: 3 },
    { input: '1', output: '3', tiers: [{ above: 200_000, price: { input: '2' } }] },
  ],
  [
    'tiers of several keys, in any order',
    { input_mtok: { base: 1, tiers: [{ start: 300, price: 3 }, { start: 100, price: 2 }] }, output_mtok: { base: 5, tiers: [{ start: 200, price: 6 }, { start: 100, price: 7 }] } },
    {
      input: '1', output: '5',
      tiers: [{ above: 100, price: { input: '2', output: '7' } }, { above: 200, price: { input: '2', output: '6' } }, { above: 300, price: { input: '3', output: '6' } }],
    },
  ],
  ['no tier in the list', { input_mtok: { base: 1, tiers: [] } }, { input: '1' }],
]

for (const [what, listed, expected] of CASES) {
  t.test(`an entry of the catalogue becomes a price: ${what}`, async t => {
    t.strictSame(fromCatalogue(listed as ModelPrice), expected)
  })
}
