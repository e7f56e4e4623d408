import { gzipSync } from 'node:zlib'
import t from 'tap'
import { formatUsd } from '../../../src/base/decimal.ts'
import { KEY } from '../../support/gateway.ts'
import { startUpstream } from '../../support/upstream.ts'
import { openBooks } from './books.ts'

/** USD per million tokens: a token costs as many millionths. */
const PRICED = `
models:
  m: { price: { input: 1, output: 10 } }
  wise: { price: { input: 100, cached_input: 10, cache_write: { 5m: 200 }, output: 1000 } }
  second: { price: { input: 3, output: 30, service_tiers: { priority: { input: 6, output: 60 } } } }`

const used = (type: string, model: string | null, input_tokens: number, output_tokens: number) =>
  ({ type, model, input_tokens, output_tokens, cache_read_input_tokens: 0, cache_creation_input_tokens: 0 })
const advised = {
  ...used('advisor_message', 'wise', 4, 2), cache_read_input_tokens: 5, cache_creation_input_tokens: 6,
}

interface Case {
  readonly what: string
  readonly usage: object
  readonly tokens: readonly [input: number, output: number]
  /** Millionths of a USD; null = unknown. */
  readonly cost: number | null
}

const CASES: readonly Case[] = [
  {
    what: 'an advisor', tokens: [10 + 15, 3 + 2], cost: 10 + 30 + 400 + 50 + 1200 + 2000,
    usage: { input_tokens: 10, output_tokens: 3, iterations: [used('message', 'm', 10, 3), advised] },
  },
  {
    what: 'an advisor without a price', tokens: [11, 4], cost: null,
    usage: { input_tokens: 10, output_tokens: 3, iterations: [used('advisor_message', 'nobody-knows', 1, 1)] },
  },
  {
    what: 'an advisor without a name', tokens: [11, 4], cost: null,
    usage: { input_tokens: 10, output_tokens: 3, iterations: [used('advisor_message', null, 1, 1)] },
  },
  {
    what: 'an advisor whose input is nonsense', tokens: [10, 4], cost: null,
    usage: { input_tokens: 10, output_tokens: 3, iterations: [used('advisor_message', 'wise', -1, 1)] },
  },
  {
    what: 'a fallback, before any output', tokens: [10, 3], cost: 30 + 90,
    usage: {
      input_tokens: 10, output_tokens: 3,
      iterations: [used('message', 'm', 12, 0), used('fallback_message', 'second', 10, 3)],
    },
  },
  {
    what: 'a fallback after some output', tokens: [22, 8], cost: 12 + 50 + 30 + 90,
    usage: {
      input_tokens: 10, output_tokens: 3,
      iterations: [used('message', 'm', 12, 5), used('fallback_message', 'second', 10, 3)],
    },
  },
  {
    what: 'turns of the fallback, in a tier of its own', tokens: [25, 7], cost: 25 * 6 + 7 * 60,
    usage: {
      input_tokens: 25, output_tokens: 7, service_tier: 'priority',
      iterations: [
        used('message', 'm', 12, 0), used('message', 'second', 10, 3), used('fallback_message', 'second', 15, 4),
      ],
    },
  },
]

const event = (type: string, data: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`

/** The same response as a body, compressed, and as a stream. */
const WAYS: Record<string, (usage: object) => { readonly type: string, readonly body: string | Buffer }> = {
  whole: usage => ({ type: 'application/json', body: JSON.stringify({ type: 'message', usage }) }),
  compressed: usage => ({ type: 'application/json', body: gzipSync(JSON.stringify({ usage })) }),
  streamed: usage => ({
    type: 'text/event-stream',
    body: event('message_start', { message: { usage: { input_tokens: 9, output_tokens: 1 } } })
      + event('content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'hello' } })
      + event('message_delta', { delta: {}, usage }) + event('message_stop', {}),
  }),
}

t.test('each model that generates a part of a response is billed at its own price', async t => {
  let answer = { type: '', body: '' as string | Buffer }
  const upstream = await startUpstream(t, (req, res) => {
    req.resume()
    res.setHeader('content-type', answer.type)
    if (typeof answer.body !== 'string') res.setHeader('content-encoding', 'gzip')
    res.end(answer.body)
  })
  const books = await openBooks(t, `
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: up }]
${PRICED}`)
  const asked = new Map<string, Case & { readonly way: string }>()
  for (const [way, answerOf] of Object.entries(WAYS)) {
    for (const each of CASES) {
      answer = answerOf(each.usage)
      const got = await fetch(`${books.gateway.url}/v1/messages`, {
        method: 'POST',
        headers: { 'authorization': `Bearer ${KEY}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'm', max_tokens: 9, messages: [], stream: way === 'streamed' }),
      })
      await got.text()
      asked.set(got.headers.get('x-gateway-request-id') ?? '', { ...each, way })
    }
  }
  const rows = await books.drain()
  t.equal(rows.size, asked.size)
  for (const [id, { usage, costPico, source, attempts }] of rows) {
    const { what, way, tokens, cost } = asked.get(id)!
    t.strictSame([usage.inputTokens, usage.outputTokens], tokens, `${what}, ${way}: tokens`)
    t.equal(costPico, cost === null ? null : BigInt(cost) * 1_000_000n, `${what}, ${way}: cost`)
    t.equal(source, 'reported')
    if (what === 'an advisor') t.match(attempts, [{ costUsd: formatUsd(costPico!) }], 'the story adds up')
    else if (what === 'a fallback, before any output') t.notOk(attempts[0]?.costUsd, 'the price tells it')
  }
})
