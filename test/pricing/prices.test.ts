import { readFileSync } from 'node:fs'
import { calcPrice, findProvider } from '@pydantic/genai-prices'
import t from 'tap'
import type { Model, Price } from '../../src/config/price-types.ts'
import { fromCatalogue } from '../../src/pricing/catalogue.ts'
import { cost } from '../../src/pricing/cost.ts'
import { createPriceBook } from '../../src/pricing/prices.ts'
import { blankUsage } from '../../src/protocols/usage/usage.ts'

const AT = new Date('2026-11-02T12:00:00Z')
const OPENAI = new URL('https://api.openai.com/v1')
const ELSEWHERE = new URL('http://10.0.0.7:8000')

function book(prices: Record<string, Price | null> = {}) {
  return createPriceBook({
    models: new Map(Object.entries(prices).map(([name, price]): [string, Model] => {
      return [name, { name, baseModel: null, accepts: null, context: null, output: null, price, serviceTiers: new Map() }]
    })),
  })
}

t.test('the catalogue has the published prices of the vendors', async t => {
  const { priceOf } = { priceOf: (model: string) => book().priceOf(null, model, AT)?.price }
  t.strictSame(priceOf('gpt-4o'), { input: '2.5', cachedInput: '1.25', output: '10' })
  t.strictSame(priceOf('claude-sonnet-4-5'), {
    input: '3',
    cacheWrite5m: '3.75',
    cachedInput: '0.3',
    output: '15',
    cacheWrite1h: '6',
    tiers: [
      {
        above: 200_000,
        price: { input: '6', cacheWrite5m: '7.5', cachedInput: '0.6', output: '22.5', cacheWrite1h: '12' },
      },
    ],
  })
  t.strictSame(priceOf('gemini-2.5-pro'), {
    input: '1.25',
    cachedInput: '0.125',
    output: '10',
    tiers: [{ above: 200_000, price: { input: '2.5', cachedInput: '0.25', output: '15' } }],
  })
  // 0.36 an hour / 3,600
  t.strictSame(priceOf('whisper-1'), { perSecond: '0.0001' })
})

t.test('snapshots, aliases and the prefix models/ have the price of their model', async t => {
  const prices = book()
  const sonnet = prices.priceOf(null, 'claude-sonnet-4-5', AT)
  t.strictSame(prices.priceOf(null, 'claude-sonnet-4-5-20250929', AT), sonnet)
  t.strictSame(prices.priceOf(null, 'models/gemini-2.5-pro', AT), prices.priceOf(null, 'gemini-2.5-pro', AT))
})

t.test('at an unknown host, embedding, audio and image models have the price of their vendor', async t => {
  const prices = book()
  const makers: Record<string, string[]> = {
    'https://api.openai.com/v1': [
      'text-embedding-3-small', 'text-embedding-3-large', 'text-embedding-ada-002', 'whisper-1', 'gpt-4o-transcribe',
      'gpt-4o-mini-tts', 'gpt-image-1', 'gpt-realtime', 'chatgpt-4o-latest', 'codex-mini-latest', 'computer-use-preview',
      'text-davinci-003',
    ],
    'https://generativelanguage.googleapis.com': ['gemini-embedding-001', 'models/gemini-embedding-001'],
    'https://api.mistral.ai': ['mistral-embed'],
    'https://api.cohere.com': ['embed-v4.0'],
    'https://api.voyageai.com': ['voyage-3.5'],
  }
  for (const [url, models] of Object.entries(makers)) {
    for (const model of models) {
      const price = prices.priceOf(new URL(url), model, AT)
      t.ok(price, model)
      t.strictSame(prices.priceOf(ELSEWHERE, model, AT), price, model)
      t.strictSame(prices.priceOf(null, model, AT), price, model)
    }
  }
  t.equal(prices.priceOf(OPENAI, 'embed-v4.0', AT), null, 'OpenAI sells no such model')
  t.equal(prices.priceOf(ELSEWHERE, 'bge-m3', AT), null, 'the weights of the model are open')
})

t.test('a known upstream selects the vendor of a price, and at an unknown upstream the model name selects the vendor', async t => {
  const prices = book()
  t.ok(prices.priceOf(OPENAI, 'gpt-4o', AT))
  t.strictSame(prices.priceOf(ELSEWHERE, 'gpt-4o', AT), prices.priceOf(OPENAI, 'gpt-4o', AT))
  t.equal(prices.priceOf(OPENAI, 'claude-sonnet-4-5', AT), null, 'OpenAI sells no such model')
  const perplexity = prices.priceOf(new URL('https://api.perplexity.ai/'), 'sonar', AT)
  // 12 per thousand requests
  t.strictSame(perplexity?.price, { input: '1', output: '1', perRequest: '0.012' })
})

t.test('other addresses of a vendor have the prices of the vendor', async t => {
  const prices = book()
  const same = (url: string, usual: string, model: string) => {
    const price = prices.priceOf(new URL(usual), model, AT)?.price
    t.ok(price, `${model} is known`)
    t.strictSame(prices.priceOf(new URL(url), model, AT)?.price, price, `${model} at ${url}`)
  }
  const bedrock = 'https://bedrock-runtime.us-east-1.amazonaws.com'
  const claude = 'us.anthropic.claude-sonnet-4-5-20250929-v1:0'
  same('https://eu.api.openai.com', 'https://api.openai.com', 'text-embedding-3-small')
  same('https://us.api.openai.com/v1', 'https://api.openai.com', 'ft:gpt-4o-2024-08-06:acme::abc')
  same('https://eastus.api.cognitive.microsoft.com', 'https://x.openai.azure.com', 'phi-4')
  same('https://bedrock-runtime-fips.us-east-1.amazonaws.com/openai', bedrock, claude)
  same('https://bedrock-mantle.us-east-1.api.aws', bedrock, claude)
  same('https://vpce-0123-abcd.bedrock-runtime.us-east-1.vpce.amazonaws.com', bedrock, claude)
  same('https://bedrock-runtime.cn-north-1.amazonaws.com.cn', bedrock, claude)
  same('https://api.together.ai', 'https://api.together.xyz', 'meta-llama/Llama-3.3-70B-Instruct-Turbo')
  const elsewhere = new URL('https://eu.api.openai.com.example.com')
  t.equal(prices.priceOf(elsewhere, 'ft:gpt-4o-2024-08-06:acme::abc', AT), null)
})

t.test('model names with the prefix google/ or with a publisher have the price of the model', async t => {
  const google = new URL('https://us-central1-aiplatform.googleapis.com')
  const flash = book().priceOf(google, 'gemini-2.5-flash', AT)
  t.ok(flash)
  t.strictSame(book().priceOf(google, 'google/gemini-2.5-flash', AT), flash)
  t.strictSame(book().priceOf(google, 'publishers/google/models/gemini-2.5-flash', AT), flash)
  t.equal(book().priceOf(google, 'meta/gemini-2.5-flash', AT), null)
})

t.test('free models of the catalogue cost 0', async t => {
  const prices = book()
  const openRouter = new URL('https://openrouter.ai/api')
  const free = prices.priceOf(openRouter, 'deepseek/deepseek-r1:free', AT)
  t.strictSame(free?.price, { input: '0', output: '0' })
  t.equal(prices.priceOf(openRouter, 'nobody/nothing:free', AT), null)
  t.equal(prices.priceOf(openRouter, 'google/lyria-3-pro-preview', AT), null, 'the model is priced by the song')
})

t.test('at an unknown host, a model name with a tag or variant of open weights has no price', async t => {
  const prices = book()
  t.ok(prices.priceOf(ELSEWHERE, 'deepseek-r1', AT))
  for (const model of [
    'deepseek-r1:7b', 'deepseek-r1:671b-cloud', 'deepseek-r1:1.5b-qwen-distill-q4_K_M', 'deepseek-r1:latest',
    'DeepSeek-R1-Distill-Qwen-7B', 'gemini-3-pro-preview:cloud', 'mixtral-8x7b:8x7b',
  ]) t.equal(prices.priceOf(ELSEWHERE, model, AT), null, model)
  const groq = new URL('https://api.groq.com/openai')
  t.ok(prices.priceOf(groq, 'deepseek-r1-distill-llama-70b', AT), 'the price of the known host')
})

t.test('prices change with the date', async t => {
  const prices = book()
  // OpenAI cut o3 by 80 % on 2025-06-10.
  t.equal(prices.priceOf(OPENAI, 'o3', new Date('2025-06-09T23:59:59Z'))?.price.input, '10')
  t.equal(prices.priceOf(OPENAI, 'o3', new Date('2025-06-10T00:00:00Z'))?.price.input, '2')
})

t.test('an unlisted model has no price', async t => {
  t.equal(book().priceOf(null, 'my-own-model', AT), null)
  t.equal(book({ 'my-own-model': null }).priceOf(null, 'my-own-model', AT), null)
})

t.test('a configured price takes precedence: first for the model name at the upstream, then for the model name of the client', async t => {
  const own: Price = { input: '1', output: '2' }
  const alias: Price = { input: '7', output: '8' }
  const prices = book({ 'gpt-4o': own, 'fast': alias })
  t.equal(prices.priceOf(OPENAI, 'gpt-4o', AT, 'fast')?.price, own)
  t.equal(prices.priceOf(OPENAI, 'gpt-4o-mini', AT, 'fast')?.price, alias)
  t.equal(prices.priceOf(OPENAI, 'gpt-4o-mini', AT, 'other')?.price.input, '0.15')
})

t.test('the price version names the catalogue and its version, or a hash of the configured price', async t => {
  const manifest = new URL('../../node_modules/@pydantic/genai-prices/package.json', import.meta.url)
  const { version } = JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }
  const first = book({ mine: { input: '1' } })
  t.equal(first.priceOf(null, 'gpt-4o', AT)?.version, `genai-prices ${version}`)
  const mine = first.priceOf(null, 'mine', AT)?.version ?? ''
  t.match(mine, /^config [0-9a-f]{12}$/)
  t.equal(book({ mine: { input: '1' } }).priceOf(null, 'mine', AT)?.version, mine)
  t.not(book({ mine: { input: '2' } }).priceOf(null, 'mine', AT)?.version, mine)
})

t.test('a malformed price is refused when the price book is created', async t => {
  t.throws(() => book({ mine: { input: 'cheap' } }), RangeError)
  t.throws(() => book({ mine: { input: '1', tiers: [{ above: 5, price: { input: '-1' } }] } }), RangeError)
})

/** All providers of the catalogue that sell models under a name that is their own. */
function catalogue() {
  const ids = [
    'anthropic',
    'aws',
    'azure',
    'cerebras',
    'cohere',
    'deepseek',
    'fireworks',
    'google',
    'groq',
    'mistral',
    'moonshotai',
    'openai',
    'openrouter',
    'perplexity',
    'together',
    'x-ai',
    'zhipuai',
  ]
  return ids.flatMap(id => findProvider({ providerId: id }) ?? [])
}

t.test('every converted price of the catalogue gives the cost that the library computes', async t => {
  const usage = { ...blankUsage(), inputTokens: 250_000, cachedInputTokens: 100_000, outputTokens: 5000 }
  let compared = 0
  for (const provider of catalogue()) {
    for (const { id, prices } of provider.models) {
      if (Array.isArray(prices)) continue
      const price = fromCatalogue(prices)
      const ours = price && cost(usage, price)
      if (ours === null || prices.output_reasoning_mtok !== undefined) continue
      const theirs = calcPrice(
        { input_tokens: 250_000, cache_read_tokens: 100_000, output_tokens: 5000 },
        id,
        { provider: { ...provider, models: [{ id, match: { equals: id }, prices }] } },
      )
      t.ok(theirs && Math.abs(Number(ours) / 1e12 - theirs.total_price) < 1e-9, `${provider.id} ${id}`)
      compared++
    }
  }
  t.ok(compared > 500, `${compared} models`)
})

t.test('tiers of single rates in the catalogue become tiers of the whole price', async t => {
  t.strictSame(
    fromCatalogue({
      input_mtok: { base: 1, tiers: [{ start: 100, price: 2 }] },
      output_mtok: { base: 10, tiers: [{ start: 200, price: 30 }] },
      cache_read_mtok: 1e-7,
      web_searches_kcount: 10,
    }),
    {
      input: '1',
      output: '10',
      cachedInput: '0.0000001',
      tiers: [
        { above: 100, price: { input: '2' } },
        { above: 200, price: { input: '2', output: '30' } },
      ],
    },
  )
  t.equal(fromCatalogue({ web_searches_kcount: 10 }), null, 'the gateway has no quantity for the price')
})

t.test('a model has the price of its base model, unless the model has its own price', async t => {
  const model = (name: string, baseModel: string | null, price: Price | null = null): [string, Model] =>
    [name, { name, baseModel, accepts: null, context: null, output: null, price, serviceTiers: new Map() }]
  const prices = createPriceBook({
    models: new Map([
      model('deployment', 'gpt-4o'), model('own', 'gpt-4o', { input: '1', output: '2' }), model('second', 'own'), model('alias', 'gpt-4o'),
    ]),
  })
  const azure = new URL('https://r.openai.azure.com')
  const known = prices.priceOf(azure, 'gpt-4o', AT)
  t.ok(known)
  t.strictSame(prices.priceOf(azure, 'deployment', AT), known)
  t.strictSame(prices.priceOf(azure, 'x-17', AT, 'alias'), known)
  t.match(prices.priceOf(azure, 'own', AT)?.price, { input: '1', output: '2' })
  t.match(prices.priceOf(azure, 'second', AT)?.price, { input: '1', output: '2' })
})
