import t from 'tap'
import { KEY } from '../../../support/gateway.ts'
import { bodyOf, startUpstream } from '../../../support/upstream.ts'
import { openBooks } from '../books.ts'

const REQUESTS = 12
const CACHED = { type: 'text', text: 'x y '.repeat(10_000), cache_control: { type: 'ephemeral', ttl: '1h' } }

const SOUND = { type: 'input_audio', input_audio: { data: 'AbCd'.repeat(1000) } }

const KINDS = [
  {
    what: 'reasoning', price: 'input: 0, output: 1, reasoning: 10', path: '/v1/chat/completions',
    body: { messages: [] },
    usage: {
      prompt_tokens: 1, completion_tokens: 1000, completion_tokens_details: { reasoning_tokens: 1000 },
    },
  },
  {
    what: 'image output', price: 'input: 0, output: 1, output_image: 10', path: '/v1/chat/completions',
    body: { messages: [] },
    usage: { prompt_tokens: 1, completion_tokens: 1000, completion_tokens_details: { image_tokens: 1000 } },
  },
  {
    what: 'image output without a price for text output', price: 'input: 0, output_image: 10',
    path: '/v1/chat/completions', body: { messages: [] },
    usage: { prompt_tokens: 1, completion_tokens: 1000, completion_tokens_details: { image_tokens: 1000 } },
  },
  {
    what: 'a service tier that the upstream chooses',
    price: 'input: 0, output: 1, service_tiers: { priority: { output: 10 } }',
    path: '/v1/chat/completions', body: { messages: [] },
    usage: { prompt_tokens: 1, completion_tokens: 1000 },
  },
  {
    what: 'cache writes', price: 'input: 0.5, cache_write: { 5m: 0.5, 1h: 1 }, output: 0',
    path: '/v1/messages', body: { messages: [{ role: 'user', content: [CACHED] }] },
    usage: { input_tokens: 0, output_tokens: 1, cache_creation: { ephemeral_1h_input_tokens: 10_000 } },
  },
  {
    what: 'cache writes in a service tier', price: 'input: 0.5, output: 0, ' +
      'service_tiers: { priority: { cache_write: { 1h: 1 } } }',
    path: '/v1/messages', body: { messages: [{ role: 'user', content: [CACHED] }] },
    usage: { input_tokens: 0, output_tokens: 1, cache_creation: { ephemeral_1h_input_tokens: 10_000 } },
  },
  {
    what: 'audio input', price: 'input: 0.5, input_audio: 10, input_image: 5, output: 0',
    path: '/v1/chat/completions',
    body: { messages: [{ content: [SOUND] }] },
    usage: { prompt_tokens: 1000, completion_tokens: 0, prompt_tokens_details: { audio_tokens: 1000 } },
  },
  {
    what: 'audio input and cache writes',
    price: 'input: 0, input_audio: 9, cache_write: { 5m: 0.1 }, output: 0', path: '/v1/chat/completions',
    body: { messages: [{ content: [{ ...CACHED, cache_control: { type: 'ephemeral' } }, SOUND] }] },
    usage: {
      prompt_tokens: 11_000, completion_tokens: 0,
      prompt_tokens_details: { audio_tokens: 1000, cache_write_tokens: 10_000 },
    },
  },
  {
    what: 'ten prompts with max_tokens each', price: 'input: 0, output: 10', path: '/v1/completions',
    body: { prompt: Array(10).fill('x'), max_tokens: 100 },
    usage: { prompt_tokens: 10, completion_tokens: 1000 },
  },
  {
    what: 'ten choices without max_tokens', price: 'input: 0, output: 0.244140625',
    path: '/v1/chat/completions', body: { messages: [], n: 10, max_tokens: undefined },
    usage: { prompt_tokens: 1, completion_tokens: 40_960 },
  },
] as const

for (const { what, price, path, body, usage } of KINDS) {
  t.test(`simultaneous requests at the highest price do not overspend: ${what}`, async t => {
    const held: (() => void)[] = []
    let refused = 0
    const { promise: decided, resolve: decide } = Promise.withResolvers<void>()
    const count = () => {
      if (held.length + refused === REQUESTS) decide()
    }
    const upstream = await startUpstream(t, (req, res) => {
      void bodyOf(req).then(() => {
        const answer = JSON.stringify({ usage, service_tier: 'priority' })
        held.push(() => res.setHeader('content-type', 'application/json').end(answer))
        count()
      })
    })
    const books = await openBooks(t, `
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: up }]
limits: { budget: { usd: 0.0315, per: total } }
models: { m: { price: { ${price} } } }`)
    const ask = async (): Promise<void> => {
      const answer = await fetch(books.gateway.url + path, {
        method: 'POST',
        headers: { 'authorization': `Bearer ${KEY}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'm', max_tokens: 1000, ...body }),
      })
      await answer.text()
      if (answer.status !== 200) refused++
      count()
    }
    const all = Array.from({ length: REQUESTS }, ask)
    await decided
    t.equal(held.length, 3)
    for (const answer of held) answer()
    await Promise.all(all)
    const rows = [...(await books.close()).values()]
    t.equal(rows.reduce((sum, { costPico }) => sum + (costPico ?? 0n), 0n), 30_000_000_000n)
  })
}
