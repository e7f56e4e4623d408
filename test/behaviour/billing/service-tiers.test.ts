import { gzipSync } from 'node:zlib'
import t from 'tap'
import { KEY } from '../../support/gateway.ts'
import { startUpstream } from '../../support/upstream.ts'
import { STREAM_HEAD, chunk, connect, post, startWireUpstream } from '../../support/wire.ts'
import { openBooks } from './books.ts'

/** USD per million tokens: a token costs 1 millionth of a USD, and 10 or 100 millionths in a service tier. */
const PRICED = `
models:
  m:
    price:
      input: 1
      output: 1
      tiers: [{ above: 1000, input: 2 }]
      service_tiers:
        flex: { input: 10, output: 10 }
        fast: { output: 100 }
        priority: { input: 3, output: 3, tiers: [{ above: 5, output: 30 }] }`

const CHAT = { prompt_tokens: 10, completion_tokens: 1 }
const ANTHROPIC = { input_tokens: 10, output_tokens: 1 }
const GEMINI = { promptTokenCount: 10, candidatesTokenCount: 1 }
const PLAIN = { usage: CHAT }

const COMPLETIONS = '/v1/chat/completions'
const GENERATE = '/v1beta/models/m:generateContent'

const events = (...all: unknown[]): string => all.map(one => `data: ${JSON.stringify(one)}\n\n`).join('')

interface Case {
  readonly what: string
  readonly path: string
  readonly answer: unknown
  /** Millionths of a USD. */
  readonly cost: number
  readonly version?: RegExp
}

const CASES: readonly Case[] = [
  {
    what: 'chat, flex', path: COMPLETIONS, answer: { service_tier: 'flex', ...PLAIN },
    cost: 110, version: /^config \w+, flex$/,
  },
  { what: 'chat, default', path: COMPLETIONS, answer: { service_tier: 'default', ...PLAIN }, cost: 11 },
  { what: 'chat, not reported', path: COMPLETIONS, answer: { service_tier: null, ...PLAIN }, cost: 11 },
  {
    what: 'chat, a tier without a price', path: COMPLETIONS,
    answer: { service_tier: 'constructor', ...PLAIN }, cost: 11,
  },
  {
    what: 'the tier has prices by prompt length', path: COMPLETIONS,
    answer: { service_tier: 'priority', ...PLAIN }, cost: 60,
  },
  {
    what: 'the tier has no prices by prompt length', path: COMPLETIONS,
    answer: { service_tier: 'fast', usage: { ...CHAT, prompt_tokens: 1001 } }, cost: 2102,
  },
  {
    what: 'a chat stream', path: COMPLETIONS, cost: 110,
    answer: `${events({ choices: [], service_tier: 'flex', ...PLAIN })}data: [DONE]\n\n`,
  },
  {
    what: 'responses', path: '/v1/responses', cost: 110,
    answer: { service_tier: 'flex', usage: ANTHROPIC },
  },
  {
    what: 'responses with service_tier auto in the request', path: '/v1/responses', cost: 110,
    answer: events(
      { type: 'response.created', response: { service_tier: 'auto' } },
      { type: 'response.completed', response: { service_tier: 'flex', usage: ANTHROPIC } },
    ),
  },
  {
    what: 'messages, fast', path: '/v1/messages', cost: 110,
    answer: { usage: { ...ANTHROPIC, service_tier: 'standard', speed: 'fast' } },
  },
  {
    what: 'messages, streamed', path: '/v1/messages', cost: 60,
    answer: events(
      {
        type: 'message_start',
        message: { usage: { ...ANTHROPIC, service_tier: 'priority', speed: 'standard' } },
      },
      { type: 'message_delta', usage: { output_tokens: 1 } },
      { type: 'message_stop' },
    ),
  },
  {
    what: 'generate', path: GENERATE, cost: 110,
    answer: { usageMetadata: { ...GEMINI, serviceTier: 'FLEX' } },
  },
  {
    what: 'generate at Vertex AI', path: GENERATE, cost: 110,
    answer: { usageMetadata: { ...GEMINI, trafficType: 'ON_DEMAND_FLEX' } },
  },
  {
    what: 'generate, streamed', path: '/v1beta/models/m:streamGenerateContent?alt=sse', cost: 110,
    answer: events({
      candidates: [{ finishReason: 'STOP' }], usageMetadata: { ...GEMINI, trafficType: 'ON_DEMAND_FLEX' },
    }),
  },
]

t.test('a response has the price of the service tier that the upstream reports', async t => {
  let answer: unknown
  let packed = false
  const upstream = await startUpstream(t, (req, res) => {
    req.resume()
    const isStream = typeof answer === 'string'
    res.setHeader('content-type', isStream ? 'text/event-stream' : 'application/json')
    if (packed) res.setHeader('content-encoding', 'gzip')
    const text = isStream ? answer as string : JSON.stringify(answer)
    res.end(packed ? gzipSync(text) : text)
  })
  const books = await openBooks(t, `
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: up }]
${PRICED}`)
  const asked = new Map<string, Case>()
  for (packed of [false, true]) {
    for (const each of CASES) {
      ({ answer } = each)
      // Compressed streams are forwarded unread.
      if (packed && typeof answer === 'string') continue
      const got = await fetch(books.gateway.url + each.path, {
        method: 'POST',
        headers: {
          'authorization': `Bearer ${KEY}`, 'content-type': 'application/json', 'accept-encoding': 'gzip',
        },
        body: JSON.stringify({ model: 'm', messages: [], stream: typeof answer === 'string' }),
      })
      await got.text()
      asked.set(got.headers.get('x-gateway-request-id') ?? '', each)
    }
  }
  const rows = await books.close()
  t.equal(rows.size, asked.size)
  for (const [id, row] of rows) {
    const { what, cost, version = /^config \w+/ } = asked.get(id)!
    t.equal(row.costPico, BigInt(cost) * 1_000_000n, what)
    t.match(row.priceVersion, version, what)
  }
})

t.test('a stream that is cut before its usage has the price of the service tier in its events', async t => {
  const upstream = await startWireUpstream(t, async wire => {
    await wire.request()
    const event = events({ service_tier: 'flex', choices: [{ index: 0, delta: { content: 'hi' } }] })
    wire.send(STREAM_HEAD + chunk(event))
    wire.socket.end()
    await wire.ended
  })
  const books = await openBooks(t, `
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: up }]
${PRICED}`)
  const client = await connect(t, books.gateway.url)
  const body = { model: 'm', stream: true, messages: [{ role: 'user', content: 'hello' }] }
  client.send(post(COMPLETIONS, body, ['Connection: close']))
  await client.ended
  const [row] = [...(await books.close()).values()]
  t.match(row, { end: 'upstream_cut', source: 'estimated', usage: { inputTokens: 8, outputTokens: 1 } })
  t.equal(row?.costPico, 90_000_000n)
})
