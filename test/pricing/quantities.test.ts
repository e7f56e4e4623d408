import t from 'tap'
import { ITEMS, quantities } from '../../src/pricing/quantities.ts'
import type { Item } from '../../src/pricing/quantities.ts'
import { blankUsage } from '../../src/protocols/usage/usage.ts'
import type { Usage } from '../../src/protocols/usage/usage.ts'

/** The known quantities by their item, without those that are 0. */
function used(usage: Partial<Usage>): Partial<Record<Item, number>> {
  const counts = quantities({ ...blankUsage(), ...usage })
  return Object.fromEntries(ITEMS.flatMap(({ item }, i) => (counts[i] ? [[item, counts[i]]] : [])))
}

const CASES: readonly (readonly [what: string, usage: Partial<Usage>, expected: Partial<Record<Item, number>>])[] = [
  ['nothing known', {}, { request: 1 }],
  ['totals without parts', { inputTokens: 100, outputTokens: 10 }, { input: 100, output: 10, request: 1 }],
  [
    'all parts of the input',
    { inputTokens: 100, cachedInputTokens: 1, cacheWrite5mTokens: 2, cacheWrite1hTokens: 3, inputAudioTokens: 4, inputImageTokens: 5 },
    { cached_input: 1, cache_write_5m: 2, cache_write_1h: 3, input_audio: 4, input_image: 5, input: 85, request: 1 },
  ],
  [
    'all parts of the output',
    { outputTokens: 10, reasoningTokens: 1, outputAudioTokens: 2, outputImageTokens: 3 },
    { reasoning: 1, output_audio: 2, output_image: 3, output: 4, request: 1 },
  ],
  ['parts that are the whole', { inputTokens: 5, cachedInputTokens: 5 }, { cached_input: 5, request: 1 }],
  ['a part above its total', { inputTokens: 5, cachedInputTokens: 9 }, { cached_input: 5, request: 1 }],
  ['parts that together exceed their total', { outputTokens: 5, reasoningTokens: 3, outputAudioTokens: 4 }, { reasoning: 3, output_audio: 2, request: 1 }],
  ['parts of an unknown total', { cachedInputTokens: 7, reasoningTokens: 8 }, { cached_input: 7, reasoning: 8, request: 1 }],
  ['seconds, characters and images', { seconds: 1.5, characters: 20, images: 2 }, { second: 1.5, character: 20, image: 2, request: 1 }],
]

for (const [what, usage, expected] of CASES) {
  t.test(`quantities do not overlap: ${what}`, async t => t.strictSame(used(usage), expected))
}

t.test('tokens are priced per million, and all other quantities per unit', async t => {
  t.strictSame(ITEMS.filter(({ per }) => per === 1).map(({ item }) => item), ['second', 'character', 'image', 'request'])
  t.ok(ITEMS.every(({ per }) => per === 1 || per === 1_000_000))
})

t.test('an unknown total gives an unknown quantity, not 0', async t => {
  const of = (item: Item, usage: Partial<Usage>) => quantities({ ...blankUsage(), ...usage })[ITEMS.findIndex(each => each.item === item)]
  t.equal(of('input', { cachedInputTokens: 7 }), null)
  t.equal(of('output', { outputTokens: 0 }), 0)
  t.equal(of('cached_input', { inputTokens: 7 }), null, 'an unknown part')
})
