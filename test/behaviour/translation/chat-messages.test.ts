import type { IncomingHttpHeaders } from 'node:http'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import t from 'tap'
import type { Test } from 'tap'
import type { JsonObject } from '../../../src/protocols/neutral/json.ts'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import type { TestGateway } from '../../support/gateway.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'

interface Seen { path: string, headers: IncomingHttpHeaders, body: JsonObject }
interface Response { status?: number, headers?: Record<string, string>, body: JsonObject | string }

/** An upstream with one protocol, a gateway in front of it, and the requests to the upstream. */
async function start(t: Test, speaks: string, response: Response, route = ''): Promise<{ gateway: TestGateway, seen: Seen[] }> {
  const seen: Seen[] = []
  const { url } = await startUpstream(t, async (req, res) => {
    seen.push({ path: req.url ?? '', headers: req.headers, body: JSON.parse((await bodyOf(req)).toString()) as JsonObject })
    const isStream = typeof response.body === 'string'
    res.writeHead(response.status ?? 200, { 'content-type': isStream ? 'text/event-stream' : 'application/json', ...response.headers })
    res.end(isStream ? response.body as string : JSON.stringify(response.body))
  })
  const gateway = await startTestGateway(
    t, `upstreams: { up: { url: "${url}", speaks: [${speaks}] } }\nroutes: [{ to: { upstream: up, model: there }${route} }]\n`,
  )
  return { gateway, seen }
}

const anthropic = ({ url }: TestGateway): Anthropic => new Anthropic({ baseURL: url, apiKey: KEY, maxRetries: 0 })
const openai = ({ url }: TestGateway): OpenAI => new OpenAI({ baseURL: `${url}/v1`, apiKey: KEY, maxRetries: 0 })

const CHUNKS = ['Hel', 'lo'].map(content => ({ id: 'c1', object: 'chat.completion.chunk', model: 'there', choices: [{ index: 0, delta: { content }, finish_reason: null }] }))
const CHAT_STREAM = [
  ...CHUNKS,
  { id: 'c1', model: 'there', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
  { id: 'c1', model: 'there', choices: [], usage: { prompt_tokens: 7, completion_tokens: 2, total_tokens: 9 } },
].map(chunk => `data: ${JSON.stringify(chunk)}\n\n`).join('') + 'data: [DONE]\n\n'

const MESSAGE = {
  id: 'msg_1', type: 'message', role: 'assistant', model: 'there', content: [{ type: 'text', text: 'Hello' }],
  stop_reason: 'end_turn', stop_sequence: null, usage: { input_tokens: 7, output_tokens: 2 },
}

t.test('a messages client streams from a chat upstream', async t => {
  const { gateway, seen } = await start(t, 'chat', { body: CHAT_STREAM, headers: { 'x-request-id': 'req-up' } })
  const { data, response } = await anthropic(gateway).messages.create({
    model: 'm', max_tokens: 10, stream: true, messages: [{ role: 'user', content: 'Hi' }],
  }).withResponse()
  let text = ''
  for await (const event of data) if (event.type === 'content_block_delta' && event.delta.type === 'text_delta') text += event.delta.text
  t.equal(text, 'Hello')
  t.equal(response.headers.get('x-gateway-translated'), 'messages->chat')
  t.equal(response.headers.get('request-id'), 'req-up')
  t.match(seen[0], { path: '/v1/chat/completions', body: { model: 'there', stream: true, stream_options: { include_usage: true } } })
  t.equal(seen[0]?.headers['anthropic-version'], undefined)
  t.match(await gateway.waitForLog(line => line['msg'] === 'exchange'), { input_tokens: 7, output_tokens: 2, status: 200, end: 'complete' })
})

t.test('a chat client gets a complete response from a messages upstream', async t => {
  const { gateway, seen } = await start(t, 'messages', { body: MESSAGE })
  const { data, response } = await openai(gateway).chat.completions.create({
    model: 'm', seed: 1, messages: [{ role: 'user', content: 'Hi' }],
  }).withResponse()
  t.equal(data.choices[0]?.message.content, 'Hello')
  t.match(data.usage, { prompt_tokens: 7, completion_tokens: 2 })
  t.equal(response.headers.get('x-gateway-translated'), 'chat->messages')
  t.equal(response.headers.get('x-gateway-dropped'), 'seed')
  t.match(seen[0], { path: '/v1/messages', headers: { 'anthropic-version': '2023-06-01' } })
})

t.test('a chat client gets the error of a messages upstream as a chat error', async t => {
  const body = { type: 'error', error: { type: 'rate_limit_error', message: 'slow down' } }
  const { gateway } = await start(t, 'messages', { status: 429, body, headers: { 'retry-after': '7' } })
  const failure = await openai(gateway).chat.completions.create({ model: 'm', messages: [{ role: 'user', content: 'Hi' }] })
    .catch((error: unknown) => error) as InstanceType<typeof OpenAI.APIError>
  t.match(failure, { status: 429, type: 'rate_limit_error', message: /slow down/ })
  t.equal(failure.headers?.get('retry-after'), '7')
})

t.test('translate: strict refuses lossy requests and names the field, and translate: off refuses all translations', async t => {
  const strict = await start(t, 'messages', { body: MESSAGE }, ', translate: strict')
  const ask = (gateway: TestGateway): unknown => openai(gateway).chat.completions.create({ model: 'm', seed: 1, messages: [{ role: 'user', content: 'Hi' }] })
  await t.rejects(ask(strict.gateway) as Promise<unknown>, { status: 400, code: 'translation_lossy', message: /seed/ })
  const off = await start(t, 'messages', { body: MESSAGE }, ', translate: off')
  await t.rejects(ask(off.gateway) as Promise<unknown>, { status: 400, code: 'not_translatable' })
  t.equal(strict.seen.length + off.seen.length, 0)
})

t.test('a request in the protocol of the upstream is not translated', async t => {
  const { gateway, seen } = await start(t, 'messages', { body: MESSAGE })
  const { response } = await anthropic(gateway).messages.create({ model: 'm', max_tokens: 1, messages: [{ role: 'user', content: 'Hi' }] }).withResponse()
  t.equal(response.headers.get('x-gateway-translated'), null)
  t.equal(seen[0]?.path, '/v1/messages')
})
