import fc from 'fast-check'
import t from 'tap'
import { formatUsd } from '../../src/base/decimal.ts'
import type { Price } from '../../src/config/price-types.ts'
import { cost, explainCost } from '../../src/pricing/cost.ts'
import { blankUsage } from '../../src/protocols/usage/usage.ts'
import type { Usage } from '../../src/protocols/usage/usage.ts'

function usage(figures: Partial<Usage>): Usage {
  return { ...blankUsage(), ...figures }
}

/** The cost in USD. */
function usd(figures: Partial<Usage>, price: Price | null): string | null {
  const pico = cost(usage(figures), price)
  return pico === null ? null : formatUsd(pico)
}

// Prices as the vendors publish them, USD per million tokens.
const GPT_4O: Price = { input: '2.50', cachedInput: '1.25', output: '10.00' }
const SONNET_4_5: Price = {
  input: '3',
  cachedInput: '0.30',
  cacheWrite5m: '3.75',
  cacheWrite1h: '6',
  output: '15',
  tiers: [
    {
      above: 200_000,
      price: { input: '6', cachedInput: '0.60', cacheWrite5m: '7.50', cacheWrite1h: '12', output: '22.50' },
    },
  ],
}
const GEMINI_2_5_PRO: Price = {
  input: '1.25',
  cachedInput: '0.125',
  output: '10',
  tiers: [{ above: 200_000, price: { input: '2.50', cachedInput: '0.25', output: '15' } }],
}

t.test('input and output tokens have separate rates: gpt-4o', async t => {
  // 1,000 x 2.50 / 1e6 + 500 x 10 / 1e6 = 0.0025 + 0.005
  t.equal(usd({ inputTokens: 1000, outputTokens: 500 }, GPT_4O), '0.0075')
  // one token: 2.50 / 1e6
  t.equal(cost(usage({ inputTokens: 1, outputTokens: 0 }), GPT_4O), 2_500_000n)
})

t.test('cached input has its own rate, and other input has the full rate: gpt-4o', async t => {
  // 1,920 cached x 1.25 / 1e6 = 0.0024; 86 x 2.50 / 1e6 = 0.000215; 300 x 10 / 1e6 = 0.003
  t.equal(usd({ inputTokens: 2006, cachedInputTokens: 1920, outputTokens: 300 }, GPT_4O), '0.005615')
})

t.test('reasoning has the price of output, unless reasoning has its own price', async t => {
  const figures = { inputTokens: 0, outputTokens: 1000, reasoningTokens: 400 }
  // 1,000 x 10 / 1e6
  t.equal(usd(figures, GPT_4O), '0.01')
  // 400 x 3 / 1e6 + 600 x 8 / 1e6 = 0.0012 + 0.0048
  t.equal(usd(figures, { input: '2', output: '8', reasoning: '3' }), '0.006')
})

t.test('cache reads have their own rate, and cache writes have a rate by lifetime: claude-sonnet-4.5', async t => {
  // input_tokens 21, read 1,000, written 88 for 5 minutes and 100 for an hour: 1,209 in all
  // 21 x 3 = 63; 1,000 x 0.30 = 300; 88 x 3.75 = 330; 100 x 6 = 600; 393 x 15 = 5,895; sum 7,188 / 1e6
  t.equal(
    usd(
      {
        inputTokens: 1209,
        cachedInputTokens: 1000,
        cacheWrite5mTokens: 88,
        cacheWrite1hTokens: 100,
        outputTokens: 393,
      },
      SONNET_4_5,
    ),
    '0.007188',
  )
})

t.test('long context: the input selects one tier for the whole request', async t => {
  // 200,000 is not above 200,000: 200,000 x 1.25 / 1e6 + 1,000 x 10 / 1e6 = 0.25 + 0.01
  t.equal(usd({ inputTokens: 200_000, outputTokens: 1000 }, GEMINI_2_5_PRO), '0.26')
  // 200,001 x 2.50 / 1e6 + 1,000 x 15 / 1e6 = 0.5000025 + 0.015
  t.equal(usd({ inputTokens: 200_001, outputTokens: 1000 }, GEMINI_2_5_PRO), '0.5150025')
  // cached tokens count for the tier and have their price in it:
  // 250,000 x 0.25 / 1e6 + 50,000 x 2.50 / 1e6 + 0 = 0.0625 + 0.125
  t.equal(
    usd({ inputTokens: 300_000, cachedInputTokens: 250_000, outputTokens: 0 }, GEMINI_2_5_PRO),
    '0.1875',
  )
  // 199,000 read and 2,000 written: 199,000 x 0.60 + 2,000 x 7.50 + 10 x 6 + 10 x 22.50 = 134,685 / 1e6
  t.equal(
    usd(
      { inputTokens: 201_010, cachedInputTokens: 199_000, cacheWrite5mTokens: 2000, outputTokens: 10 },
      SONNET_4_5,
    ),
    '0.134685',
  )
})

t.test('long context: a tier replaces only the rates that it names', async t => {
  const price: Price = {
    input: '1',
    cachedInput: '0.1',
    output: '4',
    tiers: [
      { above: 100, price: { input: '2' } },
      { above: 1000, price: { input: '3', output: '5' } },
    ],
  }
  // 200 in, 100 of them cached, 10 out: 100 x 0.1 + 100 x 2 + 10 x 4 = 250 / 1e6
  t.equal(usd({ inputTokens: 200, cachedInputTokens: 100, outputTokens: 10 }, price), '0.00025')
  // 2,000 in, 10 out: 2,000 x 3 + 10 x 5 = 6,050 / 1e6
  t.equal(usd({ inputTokens: 2000, outputTokens: 10 }, price), '0.00605')
  // unknown input is above nothing: 10 x 4 / 1e6
  t.equal(usd({ outputTokens: 10 }, price), '0.00004')
})

t.test('audio tokens have their own rate: gpt-4o-transcribe, gpt-4o-audio', async t => {
  // 14 audio tokens x 6 / 1e6 + 101 x 10 / 1e6 = 0.000084 + 0.00101
  t.equal(
    usd(
      { inputTokens: 14, inputAudioTokens: 14, outputTokens: 101 },
      { input: '2.50', inputAudio: '6', output: '10' },
    ),
    '0.001094',
  )
  // in: 20 text x 2.50 + 80 audio x 40 = 3,250; out: 10 text x 10 + 90 audio x 80 = 7,300; sum / 1e6
  t.equal(
    usd(
      { inputTokens: 100, inputAudioTokens: 80, outputTokens: 100, outputAudioTokens: 90 },
      { input: '2.50', inputAudio: '40', output: '10', outputAudio: '80' },
    ),
    '0.01055',
  )
})

t.test('images are priced by token (gpt-image-1) or by image (dall-e-3)', async t => {
  // 10 text x 5 + 40 image x 10 + 1,056 image out x 40 = 50 + 400 + 42,240 = 42,690 / 1e6
  t.equal(
    usd(
      { inputTokens: 50, inputImageTokens: 40, outputTokens: 1056, outputImageTokens: 1056, images: 1 },
      { input: '5', inputImage: '10', output: '40' },
    ),
    '0.04269',
  )
  // 3 x 0.040
  t.equal(usd({ images: 3 }, { perImage: '0.040' }), '0.12')
})

t.test('a price can be per second (whisper-1), per character (tts-1) or per request (sonar)', async t => {
  // 0.006 a minute = 0.0001 a second; 9.5 s
  t.equal(usd({ seconds: 9.5 }, { perSecond: '0.0001' }), '0.00095')
  // 15 per million characters = 0.000015 each; 1,234
  t.equal(usd({ characters: 1234 }, { perCharacter: '0.000015' }), '0.01851')
  // 12 per thousand requests = 0.012, and 100 x 1 + 50 x 1 per million
  t.equal(
    usd({ inputTokens: 100, outputTokens: 50 }, { input: '1', output: '1', perRequest: '0.012' }),
    '0.01215',
  )
})

t.test('a missing rate defaults to a more general rate', async t => {
  const all: Partial<Usage> = {
    inputTokens: 60,
    cachedInputTokens: 10,
    cacheWrite5mTokens: 10,
    cacheWrite1hTokens: 10,
    inputAudioTokens: 10,
    inputImageTokens: 10,
    outputTokens: 40,
    reasoningTokens: 10,
    outputAudioTokens: 10,
    outputImageTokens: 10,
  }
  // 60 x 2 + 40 x 3 = 240 / 1e6
  t.equal(usd(all, { input: '2', output: '3' }), '0.00024')
  // an hour's write is at least a five minutes' one: 10 x 5 x 2 + 40 x 2 + 40 x 3 = 300 / 1e6
  t.equal(usd(all, { input: '2', output: '3', cacheWrite5m: '5' }), '0.0003')
})

t.test('an unpriced request costs null, never 0', async t => {
  const figures = { inputTokens: 10, outputTokens: 10 }
  t.equal(usd(figures, null), null, 'no price')
  t.equal(usd(figures, {}), null, 'an empty price')
  t.equal(usd({}, GPT_4O), null, 'nothing known of the usage')
  t.equal(usd({ seconds: 5 }, GPT_4O), null, 'seconds, at a price for tokens')
  t.equal(usd(figures, { perSecond: '0.1' }), null, 'tokens, at a price for seconds')
  t.equal(usd(figures, { input: '1' }), null, 'output, at a price for input')
  t.equal(usd(figures, { output: '1' }), null, 'input, at a price for output')
})

t.test('zero usage and zero prices cost 0', async t => {
  t.equal(usd({ inputTokens: 0, outputTokens: 0 }, GPT_4O), '0')
  t.equal(usd({ inputTokens: 10, outputTokens: 10 }, { input: '0', output: '0' }), '0', 'a free model')
  t.equal(usd({ inputTokens: 10 }, { input: '0.02' }), '0.0000002', 'an embedding has no output')
  t.equal(usd({ inputTokens: 10, outputTokens: 0 }, { input: '0.02' }), '0.0000002', 'an embedding with 0 output tokens')
})

t.test('tokens need no price if the images or seconds of the request have a price', async t => {
  const tokens = { inputTokens: 10, outputTokens: 1056 }
  t.equal(usd({ ...tokens, images: 2 }, { perImage: '0.04' }), '0.08')
  t.equal(usd({ ...tokens, seconds: 8 }, { perSecond: '0.0001' }), '0.0008')
})

t.test('a part above its total is reduced to the total', async t => {
  // 10 in all: 8 cached x 1.25 + 2 of the 5 audio x 2.50 = 15 / 1e6
  t.equal(usd({ inputTokens: 10, cachedInputTokens: 8, inputAudioTokens: 5 }, GPT_4O), '0.000015')
})

t.test('costs are computed without floating-point errors', async t => {
  // 9,007,199 x 0.1 / 1e6 = 0.9007199, where 0.1 has no exact float
  t.equal(usd({ inputTokens: 9_007_199, outputTokens: 0 }, { input: '0.1', output: '0' }), '0.9007199')
  // sub-picodollar rates are summed before they are rounded: 2 x 0.0000004 / 1e6 + the same = 1.6e-12
  t.equal(cost(usage({ inputTokens: 2, outputTokens: 2 }), { input: '0.0000004', output: '0.0000004' }), 2n)
})

t.test('the lines of the explanation sum to the cost', async t => {
  const figures: Partial<Usage> = {
    inputTokens: 2006,
    cachedInputTokens: 1920,
    outputTokens: 300,
    reasoningTokens: 0,
  }
  t.strictSame(explainCost(usage(figures), GPT_4O), [
    { item: 'cached_input', quantity: 1920, price: '1.25', per: 1_000_000, cost: '0.0024' },
    { item: 'input', quantity: 86, price: '2.5', per: 1_000_000, cost: '0.000215' },
    { item: 'output', quantity: 300, price: '10', per: 1_000_000, cost: '0.003' },
  ])
  t.strictSame(explainCost(usage({ images: 2 }), { perImage: '0.04', perRequest: '0.01' }), [
    { item: 'image', quantity: 2, price: '0.04', per: 1, cost: '0.08' },
    { item: 'request', quantity: 1, price: '0.01', per: 1, cost: '0.01' },
  ])
  t.strictSame(explainCost(usage(figures), null), [])
})

t.test(
  'property: the costs of the lines sum to the cost, and their quantities sum to the usage',
  async t => {
    const count = fc.option(fc.nat(1_000_000), { nil: null })
    const rate = fc
      .tuple(fc.nat(99_999), fc.nat(6))
      .map(([units, scale]) => (units / 10 ** scale).toFixed(scale))
    const maybe = fc.option(rate, { nil: undefined })
    const anyUsage = fc.record({
      inputTokens: count,
      cachedInputTokens: count,
      cacheWrite5mTokens: count,
      cacheWrite1hTokens: count,
      outputTokens: count,
      reasoningTokens: count,
      inputAudioTokens: count,
      outputAudioTokens: count,
      inputImageTokens: count,
      outputImageTokens: count,
      seconds: count,
      characters: count,
      images: count,
    })
    const anyPrice = fc
      .record({
        input: rate,
        output: rate,
        cachedInput: maybe,
        cacheWrite5m: maybe,
        cacheWrite1h: maybe,
        reasoning: maybe,
        inputAudio: maybe,
        outputAudio: maybe,
        perSecond: maybe,
        perImage: maybe,
      })
      .map(
        price =>
          Object.fromEntries(Object.entries(price).filter(([, value]) => value !== undefined)) as Price,
      )
    fc.assert(
      fc.property(anyUsage, anyPrice, (used, price) => {
        const lines = explainCost(used, price)
        const sum = lines.reduce(
          (total, line) =>
            total +
            BigInt(line.cost.replace('.', '')) * 10n ** BigInt(20 - (line.cost.split('.')[1] ?? '').length),
          0n,
        )
        const total = cost(used, price)
        if (total !== null) t.equal((sum + 5n * 10n ** 7n) / 10n ** 8n, total)
        const of = (...items: string[]) =>
          lines.filter(line => items.includes(line.item)).reduce((all, line) => all + line.quantity, 0)
        const input = of(
          'input',
          'cached_input',
          'cache_write_5m',
          'cache_write_1h',
          'input_audio',
          'input_image',
        )
        if (used.inputTokens !== null) t.equal(input, used.inputTokens)
        if (used.outputTokens !== null) {
          t.equal(of('output', 'reasoning', 'output_audio', 'output_image'), used.outputTokens)
        }
      }),
      { numRuns: 300 },
    )
  },
)

