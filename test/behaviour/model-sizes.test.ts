import t from 'tap'
import { startTestGateway } from '../support/gateway.ts'
import { startUpstream } from '../support/upstream.ts'

const KEY = { 'x-api-key': 'sk-test-0123456789abcdef' }
const asked: string[] = []
const upstream = await startUpstream(t, (req, res) => {
  asked.push(req.url ?? '')
  req.resume()
  res.setHeader('content-type', 'application/json').end('{}')
})
const gateway = await startTestGateway(t, `
keys: [{ name: team, key: sk-test-0123456789abcdef }]
upstreams: { up: { url: "${upstream.url}" } }
models:
  small: { context: 1000, output: 100 }
  large: { context: 5000 }
  alias: { base_model: small }
  unknown: {}
routes:
  - { model: small, to: up, fit: check }
  - { model: pair, to: [{ upstream: up, model: small }, { upstream: up, model: large }], fit: check }
  - { model: rescued, to: { upstream: up, model: small }, on: { context_length: { upstream: up, model: large } }, fit: check }
  - { model: unchecked, to: { upstream: up, model: small } }
  - { model: [alias, unknown, claude-sonnet-4-5], to: up, fit: check }
`)
t.beforeEach(() => { asked.length = 0 })

async function list(headers: Record<string, string>, path = '/v1/models'): Promise<Record<string, unknown>> {
  return await (await fetch(gateway.url + path, { headers: { ...KEY, ...headers } })).json() as Record<string, unknown>
}

/** Sends a prompt of as many tokens, at least. */
async function ask(path: string, model: string, tokens: number, headers: Record<string, string> = {}): Promise<Response> {
  const content = 'word '.repeat(tokens)
  const isGoogles = path.includes('generateContent')
  const body = isGoogles ? { contents: [{ role: 'user', parts: [{ text: content }] }] } : { model, max_tokens: 5, messages: [{ role: 'user', content }] }
  return fetch(gateway.url + path, { method: 'POST', headers: { ...KEY, 'content-type': 'application/json', ...headers }, body: JSON.stringify(body) })
}

t.test('the lists of models have the size of each model in the fields of each protocol', async t => {
  const openai = await list({})
  t.match((openai['data'] as { id: string }[]).find(({ id }) => id === 'small'), { context_window: 1000, max_output_tokens: 100 })
  t.match((openai['data'] as { id: string }[]).find(({ id }) => id === 'pair'), { context_window: 1000 }, 'the smallest target')
  t.match((openai['data'] as { id: string }[]).find(({ id }) => id === 'alias'), { context_window: 1000 }, 'that of the base model')
  t.match((openai['data'] as { id: string }[]).find(({ id }) => id === 'claude-sonnet-4-5'), { context_window: 200_000 }, 'that of the catalogue')
  t.notOk('context_window' in (openai['data'] as { id: string }[]).find(({ id }) => id === 'unknown')!)
  const anthropic = await list({ 'anthropic-version': '2023-06-01' })
  t.match((anthropic['data'] as { id: string }[]).find(({ id }) => id === 'small'), { max_input_tokens: 1000, max_tokens: 100 })
  const google = await list({}, '/v1beta/models')
  t.match((google['models'] as { name: string }[]).find(({ name }) => name === 'models/small'), { inputTokenLimit: 1000, outputTokenLimit: 100 })
  t.match(await list({}, '/v1/models/small'), { id: 'small', context_window: 1000, max_output_tokens: 100 })
})

t.test('a prompt that is too long for every target is refused with the words and codes that clients read', async t => {
  const chat = await ask('/v1/chat/completions', 'small', 2000)
  t.equal(chat.status, 400)
  t.match(await chat.json(), { error: { type: 'invalid_request_error', code: 'context_length_exceeded', message: /2\d\d\d tokens > 1000 maximum/ } })
  const messages = await ask('/v1/messages', 'small', 2000, { 'anthropic-version': '2023-06-01' })
  t.equal(messages.status, 400)
  t.match(await messages.json(), { error: { type: 'invalid_request_error', message: /^prompt is too long: 2\d\d\d tokens > 1000 maximum/ } })
  const google = await ask('/v1beta/models/small:generateContent', '', 2000)
  t.equal(google.status, 400)
  t.match(await google.json(), { error: { status: 'INVALID_ARGUMENT', message: /too long/ } })
  t.strictSame(asked, [], 'no upstream was asked')
})

t.test('a prompt goes to the targets whose model has room for it', async t => {
  await ask('/v1/chat/completions', 'small', 500)
  await ask('/v1/chat/completions', 'pair', 2000)
  await ask('/v1/chat/completions', 'rescued', 2000)
  await ask('/v1/chat/completions', 'unchecked', 2000)
  await ask('/v1/chat/completions', 'unknown', 20_000)
  t.equal(asked.length, 5)
  t.equal((await ask('/v1/chat/completions', 'pair', 6000)).status, 400)
  t.equal((await ask('/v1/chat/completions', 'rescued', 6000)).status, 400)
  t.equal(asked.length, 5)
})
