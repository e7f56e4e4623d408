import t from 'tap'
import { KEY, startTestGateway } from '../support/gateway.ts'
import { anthropicClient, genaiClient, openaiClient, startTranslating } from '../support/translating-gateway.ts'

const UNUSED = { body: {} }
const TEXT = 'The quick brown fox jumps over the lazy dog. '.repeat(20)
/** Tokens of TEXT in the vocabulary that the gateway counts with. */
const TOKENS = 200

t.test('the gateway counts tokens if the upstream has no endpoint for counting', async t => {
  const { gateway, seen } = await startTranslating(t, { up: { speaks: 'chat', responses: [UNUSED] } })
  const messages = await anthropicClient(gateway).messages.countTokens({
    model: 'm', system: 'Be brief.', messages: [{ role: 'user', content: TEXT }],
  }).withResponse()
  t.equal(messages.response.headers.get('x-gateway-estimated'), 'true')
  t.ok(Math.abs(messages.data.input_tokens - TOKENS) < 20, `${messages.data.input_tokens}`)
  const withTools = await anthropicClient(gateway).messages.countTokens({
    model: 'm', messages: [{ role: 'user', content: TEXT }],
    tools: [{ name: 'look', description: TEXT, input_schema: { type: 'object', properties: {} } }],
  })
  t.ok(withTools.input_tokens > messages.data.input_tokens + TOKENS - 20, 'tools count')
  const ofGemini = await genaiClient(gateway).models.countTokens({ model: 'm', contents: TEXT })
  t.ok(Math.abs((ofGemini.totalTokens ?? 0) - TOKENS) < 20, `${ofGemini.totalTokens}`)
  const whole = await fetch(`${gateway.url}/v1beta/models/m:countTokens`, {
    method: 'POST', headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ generateContentRequest: { model: 'models/m', systemInstruction: { parts: [{ text: TEXT }] }, contents: [{ role: 'user', parts: [{ text: TEXT }] }] } }),
  })
  const { totalTokens } = await whole.json() as { totalTokens: number }
  t.ok(Math.abs(totalTokens - 2 * TOKENS) < 30, `${totalTokens}`)
  t.equal(seen['up']?.length, 0)
})

t.test('the gateway counts tokens for a responses client', async t => {
  const { gateway } = await startTranslating(t, { up: { speaks: 'messages', responses: [UNUSED] } })
  const { data, response } = await openaiClient(gateway).responses.inputTokens.count({ model: 'm', input: TEXT }).withResponse()
  t.equal(response.headers.get('x-gateway-estimated'), 'true')
  t.match(data, { object: 'response.input_tokens', input_tokens: Number })
})

t.test('the gateway counts tokens only if the upstream that can count fails', async t => {
  const { gateway, seen } = await startTranslating(t, {
    claude: { speaks: 'messages', responses: [{ body: { input_tokens: 11 } }, { status: 503, body: { type: 'error', error: { type: 'overloaded_error', message: 'busy' } } }] },
    vllm: { speaks: 'chat', responses: [UNUSED] },
  })
  const count = () => anthropicClient(gateway).messages.countTokens({ model: 'm', messages: [{ role: 'user', content: TEXT }] }).withResponse()
  const asked = await count()
  t.equal(asked.data.input_tokens, 11)
  t.equal(asked.response.headers.get('x-gateway-estimated'), null)
  const counted = await count()
  t.ok(Math.abs(counted.data.input_tokens - TOKENS) < 20)
  t.equal(counted.response.headers.get('x-gateway-estimated'), 'true')
  t.equal(seen['vllm']?.length, 0)
})

t.test('an upstream that speaks responses gets the count request', async t => {
  const { gateway } = await startTranslating(t, { up: { speaks: 'responses', responses: [{ body: { object: 'response.input_tokens', input_tokens: 3 } }] } })
  const { data, response } = await openaiClient(gateway).responses.inputTokens.count({ model: 'm', input: 'Hi' }).withResponse()
  t.equal(data.input_tokens, 3)
  t.equal(response.headers.get('x-gateway-estimated'), null)
})

t.test('an upstream without the setting speaks gets the count request', async t => {
  const gateway = await startTestGateway(t, 'upstreams: { up: { simulator: true } }\nroutes: [{ to: up }]\n')
  const { response } = await anthropicClient(gateway).messages.countTokens({ model: 'sim', messages: [{ role: 'user', content: 'Hi' }] }).withResponse()
  t.equal(response.headers.get('x-gateway-estimated'), null)
})
