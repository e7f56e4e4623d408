import type { ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'
import { Anthropic } from '@anthropic-ai/sdk'
import { AnthropicVertex } from '@anthropic-ai/vertex-sdk'
import { GoogleGenAI } from '@google/genai'
import { OpenAI } from 'openai'
import t from 'tap'
import type { Test } from 'tap'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import { serviceAccountFile, startMetadataServer } from '../../support/google-credentials.ts'
import { sendJson, startTokenServer } from '../../support/token-server.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'

const CLAUDE = 'claude-haiku-4-5@20251001'
const HERE = '/v1/projects/my-project/locations/us-east5'
const MESSAGE = {
  id: 'msg_1', type: 'message', role: 'assistant', model: 'claude-haiku-4-5', content: [{ type: 'text', text: 'Hi' }],
  stop_reason: 'end_turn', stop_sequence: null, usage: { input_tokens: 3, output_tokens: 1 },
}
const CONTENT = {
  candidates: [{ index: 0, content: { role: 'model', parts: [{ text: 'Hi' }] }, finishReason: 'STOP' }],
  usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 1, totalTokenCount: 4, trafficType: 'ON_DEMAND' },
}
const EVENTS = [
  { type: 'message_start', message: { ...MESSAGE, content: [], stop_reason: null } },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hi' } },
  { type: 'content_block_stop', index: 0 },
  { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 1 } },
  { type: 'message_stop' },
]
const HELLO = [{ role: 'user', content: 'Hi' }] as [{ role: 'user', content: string }]

t.test('an Anthropic client uses Claude on Vertex AI', async t => {
  const { gateway, seen, tokens } = await start(t)
  const client = new Anthropic({ baseURL: gateway.url, apiKey: KEY })
  t.match(await client.messages.create({ model: 'haiku', max_tokens: 10, messages: HELLO }), MESSAGE)
  t.match(seen[0], {
    url: `${HERE}/publishers/anthropic/models/${CLAUDE}:rawPredict`,
    headers: { authorization: 'Bearer token-1', 'x-api-key': undefined },
    body: { anthropic_version: 'vertex-2023-10-16', max_tokens: 10, messages: HELLO, model: undefined },
  })
  const stream = client.beta.messages.stream({ model: 'haiku', max_tokens: 10, messages: HELLO, betas: ['context-1m-2025-08-07'] })
  t.equal(await stream.finalText(), 'Hi')
  t.match(seen[1], {
    url: `${HERE}/publishers/anthropic/models/${CLAUDE}:streamRawPredict`,
    headers: { 'anthropic-beta': 'context-1m-2025-08-07' },
    body: { stream: true },
  })
  t.strictSame(await client.messages.countTokens({ model: 'haiku', messages: HELLO }), { input_tokens: 3 })
  t.match(seen[2], { url: `${HERE}/publishers/anthropic/models/count-tokens:rawPredict`, body: { model: CLAUDE } })
  t.equal(tokens.requests.length, 1)
  const line = await gateway.waitForLog(({ msg, input_tokens: input }) => msg === 'exchange' && input === 3)
  t.match(line, { input_tokens: 3, output_tokens: 1 })
  t.match(line['cost_usd'] ?? line['cost'], /^0\.0*8/, 'the catalogue has the price of the model at Vertex AI')
})

t.test('the Anthropic client for Vertex AI works, and its project and location are replaced', async t => {
  const { gateway, seen } = await start(t)
  const client = new AnthropicVertex({
    baseURL: `${gateway.url}/v1`,
    projectId: 'their-project',
    region: 'europe-west1',
    // A Google credential whose token is the gateway's key.
    authClient: { getRequestHeaders: async () => new Headers({ authorization: `Bearer ${KEY}` }) } as never,
    maxRetries: 0,
  })
  t.match(await client.messages.create({ model: CLAUDE, max_tokens: 10, messages: HELLO }), MESSAGE)
  t.match(seen[0], {
    url: `${HERE}/publishers/anthropic/models/${CLAUDE}:rawPredict`,
    headers: { authorization: 'Bearer token-1' },
    body: { max_tokens: 10, messages: HELLO },
  })
  t.equal(await client.messages.stream({ model: CLAUDE, max_tokens: 10, messages: HELLO }).finalText(), 'Hi')
  t.equal(seen[1]?.url, `${HERE}/publishers/anthropic/models/${CLAUDE}:streamRawPredict`)
  t.strictSame(await client.messages.countTokens({ model: CLAUDE, messages: HELLO }), { input_tokens: 3 })
  t.equal(seen[2]?.url, `${HERE}/publishers/anthropic/models/count-tokens:rawPredict`)
})

t.test('a compressed request is sent uncompressed to Vertex AI', async t => {
  const { gateway, seen } = await start(t)
  const response = await fetch(`${gateway.url}/v1/messages?beta=true`, {
    method: 'POST',
    headers: { 'x-api-key': KEY, 'content-type': 'application/json', 'content-encoding': 'gzip', 'anthropic-version': '2023-06-01' },
    body: gzipSync(JSON.stringify({ model: CLAUDE, max_tokens: 10, messages: HELLO })),
  })
  t.equal(response.status, 200)
  t.match(seen[0], {
    url: `${HERE}/publishers/anthropic/models/${CLAUDE}:rawPredict`, headers: { 'content-encoding': undefined }, body: { max_tokens: 10 },
  })
})

for (const [name, client, prefix] of [
  ['the Gemini API', (baseUrl: string) => new GoogleGenAI({ apiKey: KEY, httpOptions: { baseUrl } }), HERE],
  ['Vertex AI', (baseUrl: string) => new GoogleGenAI({ vertexai: true, apiKey: KEY, httpOptions: { baseUrl } }), HERE.replace('v1', 'v1beta1')],
] as const) {
  t.test(`a client of ${name} uses Gemini on Vertex AI`, async t => {
    const { gateway, seen } = await start(t)
    const { models } = client(gateway.url)
    const models_ = `${prefix}/publishers/google/models`
    t.equal((await models.generateContent({ model: 'gemini-2.5-flash', contents: 'Hi' })).text, 'Hi')
    t.match(seen[0], { url: `${models_}/gemini-2.5-flash:generateContent`, headers: { authorization: 'Bearer token-1', 'x-goog-api-key': undefined } })
    for await (const chunk of await models.generateContentStream({ model: 'flash', contents: 'Hi' })) t.equal(chunk.text, 'Hi')
    t.equal(seen[1]?.url, `${models_}/gemini-2.5-flash:streamGenerateContent?alt=sse`)
    t.equal((await models.countTokens({ model: 'flash', contents: 'Hi' })).totalTokens, 3)
    t.equal(seen[2]?.url, `${models_}/gemini-2.5-flash:countTokens`)
    const line = await gateway.waitForLog(({ msg, path }) => msg === 'exchange' && String(path).includes('streamGenerate'))
    t.match(line, { input_tokens: 3, output_tokens: 1 })
  })
}

t.test('embeddings work for models with embedContent and with predict', async t => {
  const { gateway, seen } = await start(t)
  const { models } = new GoogleGenAI({ apiKey: KEY, httpOptions: { baseUrl: gateway.url } })
  for (const [model, method] of [['gemini-embedding-001', 'predict'], ['gemini-embedding-2', 'batchEmbedContents']] as const) {
    const { embeddings } = await models.embedContent({ model, contents: 'Hi', config: { taskType: 'RETRIEVAL_QUERY', outputDimensionality: 2 } })
    t.match(embeddings, [{ values: [0.5, -0.5] }])
    t.equal(seen.at(-1)?.url, `${HERE}/publishers/google/models/${model}:${method}`)
  }
  t.match(seen[0]?.body, { instances: [{ content: 'Hi', task_type: 'RETRIEVAL_QUERY' }], parameters: { outputDimensionality: 2 } })
  const vertex = new GoogleGenAI({ vertexai: true, apiKey: KEY, httpOptions: { baseUrl: gateway.url } })
  t.match((await vertex.models.embedContent({ model: 'gemini-embedding-001', contents: 'Hi' })).embeddings, [{ values: [0.5, -0.5] }])
  const openai = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: KEY })
  const { data, usage } = await openai.embeddings.create({ model: 'gemini-embedding-001', input: 'Hi', encoding_format: 'float' })
  t.match(data, [{ embedding: [0.5, -0.5] }])
  t.equal(usage.prompt_tokens, 2)
  const line = await gateway.waitForLog(({ msg, endpoint }) => msg === 'exchange' && endpoint === 'embeddings')
  t.match(line, { input_tokens: 2 })
})

t.test('requests of chat clients are translated to the protocol of the model', async t => {
  const { gateway, seen } = await start(t)
  const openai = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: KEY })
  for (const [model, verb] of [['haiku', `anthropic/models/${CLAUDE}:rawPredict`], ['flash', 'google/models/gemini-2.5-flash:generateContent']] as const) {
    const { choices } = await openai.chat.completions.create({ model, messages: HELLO })
    t.equal(choices[0]?.message.content, 'Hi')
    t.equal(seen.at(-1)?.url, `${HERE}/publishers/${verb}`)
  }
  for (const [model, verb] of [
    ['haiku', `anthropic/models/${CLAUDE}:streamRawPredict`], ['flash', 'google/models/gemini-2.5-flash:streamGenerateContent?alt=sse'],
  ] as const) {
    let text = ''
    for await (const { choices } of await openai.chat.completions.create({ model, messages: HELLO, stream: true })) {
      text += choices[0]?.delta.content ?? ''
    }
    t.equal(text, 'Hi')
    t.equal(seen.at(-1)?.url, `${HERE}/publishers/${verb}`)
  }
  const { models } = new GoogleGenAI({ apiKey: KEY, httpOptions: { baseUrl: gateway.url } })
  for await (const chunk of await models.generateContentStream({ model: 'haiku', contents: 'Hi' })) t.type(chunk.text ?? '', 'string')
  t.equal(seen.at(-1)?.url, `${HERE}/publishers/anthropic/models/${CLAUDE}:streamRawPredict`)
  const claude = await new Anthropic({ baseURL: gateway.url, apiKey: KEY }).messages.create({ model: 'flash', max_tokens: 10, messages: HELLO })
  t.match(claude.content, [{ type: 'text', text: 'Hi' }])
  t.equal(seen.at(-1)?.url, `${HERE}/publishers/google/models/gemini-2.5-flash:generateContent`)
})

t.test('an error has the shape of the protocol of the client, and does not name the project of the operator', async t => {
  const { gateway, fail } = await start(t)
  const said = { error: { code: 429, message: 'Quota of projects/my-project exceeded', status: 'RESOURCE_EXHAUSTED' } }
  fail(429, said)
  const client = new Anthropic({ baseURL: gateway.url, apiKey: KEY, maxRetries: 0 })
  const error: unknown = await client.messages.create({ model: 'haiku', max_tokens: 10, messages: HELLO }).catch((thrown: unknown) => thrown)
  t.match(error, {
    status: 429, error: { type: 'error', error: { type: 'rate_limit_error', message: 'Quota of projects/*** exceeded' } },
  })
  const { models } = new GoogleGenAI({ apiKey: KEY, httpOptions: { baseUrl: gateway.url } })
  await t.rejects(models.generateContent({ model: 'flash', contents: 'Hi' }), { status: 429, message: /RESOURCE_EXHAUSTED/ })
  const openai = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: KEY, maxRetries: 0 })
  await t.rejects(openai.chat.completions.create({ model: 'haiku', messages: HELLO }), { status: 429, message: /projects\/\*\*\* exceeded/ })
})

t.test('waiting requests share one token fetch, and a 401 fetches another token', async t => {
  const { gateway, seen, tokens, accept } = await start(t)
  const fetching = Promise.withResolvers<ServerResponse>()
  tokens.fault = fetching.resolve
  const asked = Promise.all(Array.from({ length: 20 }, () => ask(gateway.url)))
  sendJson(await fetching.promise, 200, { access_token: 'slow', expires_in: 3_600 })
  t.strictSame((await asked).map(({ status }) => status), Array(20).fill(200))
  t.equal(tokens.requests.length, 1)
  tokens.fault = null
  accept('Bearer token-1')
  seen.length = 0
  t.strictSame((await Promise.all(Array.from({ length: 20 }, () => ask(gateway.url)))).map(({ status }) => status), Array(20).fill(200))
  t.equal(tokens.requests.length, 2, 'one token for all refused requests')
  accept('nobody')
  for (let i = 0; i < 5; i++) t.equal((await ask(gateway.url)).status, 502)
  t.ok(tokens.requests.length <= 3)
})

t.test('if the token server is down, the next target responds', async t => {
  const { gateway, tokens } = await start(t, '[vertex, spare]')
  tokens.fault = res => sendJson(res, 400, { error: 'invalid_grant' })
  const response = await ask(gateway.url)
  t.equal(response.status, 200)
  t.equal(response.headers.get('x-gateway-upstream'), 'spare')
  t.match(await gateway.waitForLog(({ msg }) => String(msg).startsWith('credentials:')), {
    reason: 'the token server responded 400 (invalid_grant)', upstream: 'vertex',
  })
})

t.test('the token and the project are read from the metadata server', async t => {
  await startMetadataServer(t)
  const seen: (string | undefined)[] = []
  const upstream = await startUpstream(t, (req, res) => {
    seen.push(`${req.headers.authorization} ${req.url}`)
    void bodyOf(req).then(() => sendJson(res, 200, CONTENT))
  })
  const gateway = await startTestGateway(t, `
upstreams: { vertex: { vertex: { endpoint: "${upstream.url}" }, auth: { google: {} } } }
routes: [{ model: "*", to: vertex }]
`)
  const { models } = new GoogleGenAI({ apiKey: KEY, httpOptions: { baseUrl: gateway.url } })
  t.equal((await models.generateContent({ model: 'gemini-2.5-flash', contents: 'Hi' })).text, 'Hi')
  t.strictSame(seen, ['Bearer metadata-token /v1/projects/metadata-project/locations/global/publishers/google/models/gemini-2.5-flash:generateContent'])
})

function ask(url: string): Promise<Response> {
  return fetch(`${url}/v1/messages`, {
    method: 'POST',
    headers: { 'x-api-key': KEY, 'content-type': 'application/json', 'anthropic-version': '2023-06-01' },
    body: JSON.stringify({ model: 'haiku', max_tokens: 10, messages: HELLO }),
  })
}

interface Seen {
  readonly url: string | undefined
  readonly headers: Record<string, unknown>
  readonly body: unknown
}

async function start(t: Test, haiku = 'vertex') {
  const seen: Seen[] = []
  const tokens = await startTokenServer(t)
  let accepted: string | null = null
  let fault: readonly [status: number, body: unknown] | null = null
  const upstream = await startUpstream(t, (req, res) => {
    void bodyOf(req).then(body => {
      const { url = '', headers } = req
      seen.push({ url, headers, body: JSON.parse(body.toString()) })
      if (fault !== null) sendJson(res, ...fault)
      else if (accepted !== null && headers.authorization !== accepted) sendJson(res, 401, { error: { code: 401, status: 'UNAUTHENTICATED' } })
      else if (url.includes('count-tokens')) sendJson(res, 200, { input_tokens: 3 })
      else if (url.endsWith(':countTokens')) sendJson(res, 200, { totalTokens: 3 })
      else if (url.endsWith(':predict')) sendJson(res, 200, { predictions: [{ embeddings: { values: [0.5, -0.5], statistics: { token_count: 2 } } }] })
      else if (url.endsWith(':batchEmbedContents')) sendJson(res, 200, { embeddings: [{ values: [0.5, -0.5] }] })
      else if (url.endsWith(':rawPredict') || url === '/v1/messages') sendJson(res, 200, MESSAGE)
      else if (url.endsWith(':streamRawPredict')) {
        res.setHeader('content-type', 'text/event-stream').end(EVENTS.map(event => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(''))
      } else if (url.endsWith('alt=sse')) res.setHeader('content-type', 'text/event-stream').end(`data: ${JSON.stringify(CONTENT)}\r\n\r\n`)
      else sendJson(res, 200, CONTENT)
    })
  })
  const gateway = await startTestGateway(t, `
upstreams:
  vertex:
    vertex: { project: my-project, location: us-east5, endpoint: "${upstream.url}" }
    auth: { google: { credentials: ${serviceAccountFile(t, tokens.url)} } }
  spare: { url: "${upstream.url}", auth: { header: x-api-key, value: spare } }
routes:
  - { model: haiku, to: ${haiku === 'vertex' ? `{ upstream: vertex, model: "${CLAUDE}" }` : haiku} }
  - { model: flash, to: { upstream: vertex, model: gemini-2.5-flash } }
  - { model: ["gemini-*", "claude-*"], to: vertex }
`)
  const fail = (status: number, body: unknown): void => { fault = [status, body] }
  return { gateway, seen, tokens, fail, accept: (authorization: string) => { accepted = authorization } }
}
