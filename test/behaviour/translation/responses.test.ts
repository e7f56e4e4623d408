import OpenAI from 'openai'
import t from 'tap'
import { sse } from '../../support/translation.ts'
import { anthropicClient, openaiClient, startTranslating } from '../../support/translating-gateway.ts'

const TOOL = { type: 'function', name: 'look', parameters: { type: 'object', properties: {} }, strict: false } as const
const chunk = (delta: object, finish: string | null = null) => ({ id: 'c1', object: 'chat.completion.chunk', model: 'up-model', choices: [{ index: 0, delta, finish_reason: finish }] })
const CHAT_STREAM = sse(
  chunk({ role: 'assistant', content: 'I ' }), chunk({ content: 'look.' }),
  chunk({ tool_calls: [{ index: 0, id: 'c1', type: 'function', function: { name: 'look', arguments: '{"at":' } }] }),
  chunk({ tool_calls: [{ index: 0, function: { arguments: '1}' } }] }), chunk({}, 'tool_calls'),
  { id: 'c1', model: 'up-model', choices: [], usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 } }, '[DONE]',
).toString()

const MESSAGE = {
  id: 'msg_1', type: 'message', role: 'assistant', model: 'up-model', stop_reason: 'end_turn', stop_sequence: null,
  content: [{ type: 'thinking', thinking: 'Hm.', signature: 'sig' }, { type: 'text', text: 'Hello' }], usage: { input_tokens: 7, output_tokens: 2 },
}

const RESPONSE = {
  id: 'resp_1', object: 'response', model: 'up-model', status: 'completed', error: null, incomplete_details: null,
  output: [{ type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: 'Hello', annotations: [] }] }],
  usage: { input_tokens: 7, input_tokens_details: { cached_tokens: 0 }, output_tokens: 2, output_tokens_details: { reasoning_tokens: 0 }, total_tokens: 9 },
}

t.test('a responses client streams text and a tool call from a chat upstream', async t => {
  const { gateway, seen } = await startTranslating(t, { up: { speaks: 'chat', responses: [{ body: CHAT_STREAM }] } })
  const stream = openaiClient(gateway).responses.stream({ model: 'm', input: 'Look', tools: [TOOL], store: false })
  let text = ''
  for await (const event of stream) if (event.type === 'response.output_text.delta') text += event.delta
  const response = await stream.finalResponse()
  t.equal(text, 'I look.')
  t.equal(response.output_text, 'I look.')
  t.match(response.output[1], { type: 'function_call', call_id: 'c1', name: 'look', arguments: '{"at":1}' })
  t.match(response.usage, { input_tokens: 7, output_tokens: 3 })
  t.match(seen.up?.[0], { path: '/v1/chat/completions', body: { model: 'up-model', stream: true } })
  t.match(await gateway.waitForLog(line => line['msg'] === 'exchange'), { input_tokens: 7, output_tokens: 3, status: 200, end: 'complete' })
})

t.test('a responses client gets a complete response from a messages upstream', async t => {
  const { gateway, seen } = await startTranslating(t, { up: { speaks: 'messages', responses: [{ body: MESSAGE }] } })
  const { data, response } = await openaiClient(gateway).responses.create({ model: 'm', input: 'Hi', instructions: 'Be brief.' }).withResponse()
  t.equal(data.output_text, 'Hello')
  t.equal(data.status, 'completed')
  t.equal(response.headers.get('x-gateway-translated'), 'responses->messages')
  t.match(seen.up?.[0], { path: '/v1/messages', body: { system: [{ type: 'text', text: 'Be brief.' }], messages: [{ role: 'user' }] } })
})

t.test('messages and chat clients get a response from a responses upstream', async t => {
  const { gateway, seen } = await startTranslating(t, { up: { speaks: 'responses', responses: [{ body: RESPONSE }] } })
  const message = await anthropicClient(gateway).messages.create({ model: 'm', max_tokens: 100, messages: [{ role: 'user', content: 'Hi' }] })
  t.match(message.content, [{ type: 'text', text: 'Hello' }])
  const completion = await openaiClient(gateway).chat.completions.create({ model: 'm', messages: [{ role: 'user', content: 'Hi' }] })
  t.equal(completion.choices[0]?.message.content, 'Hello')
  t.match(seen.up, [{ path: '/v1/responses', body: { model: 'up-model', store: false } }, { path: '/v1/responses' }])
})

t.test('an upstream that speaks the protocol of the client gets the request untranslated', async t => {
  const { gateway, seen } = await startTranslating(t, { up: { speaks: 'chat, responses', responses: [{ body: RESPONSE }] } })
  const { response } = await openaiClient(gateway).responses.create({ model: 'm', input: 'Hi' }).withResponse()
  t.equal(response.headers.get('x-gateway-translated'), null)
  t.equal(seen.up?.[0]?.path, '/v1/responses')
})

t.test('previous_response_id is refused, and the error says what to send instead', async t => {
  const { gateway, seen } = await startTranslating(t, { up: { speaks: 'chat', responses: [{ body: {} }] } })
  const failure = await openaiClient(gateway).responses.create({ model: 'm', input: 'Hi', previous_response_id: 'resp_1' })
    .catch((error: unknown) => error) as InstanceType<typeof OpenAI.APIError>
  t.match(failure, { status: 400, code: 'not_translatable', param: 'previous_response_id', message: /send the conversation itself/ })
  t.equal(seen.up?.length, 0)
})
