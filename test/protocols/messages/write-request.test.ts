import t from 'tap'
import type { GatewayError } from '../../../src/base/errors.ts'
import type { JsonObject } from '../../../src/protocols/neutral/json.ts'
import { requestBetween } from '../../support/translation.ts'

const toMessages = (body: JsonObject, model = 'claude-sonnet-4-5'): ReturnType<typeof requestBetween> => requestBetween('chat', 'messages', body, model)
const user = (content: unknown): JsonObject => ({ role: 'user', content })

t.test('the first system and developer messages become the system field, and later messages keep their position', async t => {
  const { body, headers } = toMessages({
    messages: [
      { role: 'system', content: 'One.' }, { role: 'developer', content: 'Two.' }, user('Hi'),
      { role: 'assistant', content: 'Hello' }, { role: 'system', content: 'Now in French.' }, user('Bye'),
    ],
  })
  t.strictSame(body, {
    model: 'claude-sonnet-4-5', max_tokens: 32_000,
    system: [{ type: 'text', text: 'One.' }, { type: 'text', text: 'Two.' }],
    messages: [
      { role: 'user', content: [{ type: 'text', text: 'Hi' }] },
      { role: 'assistant', content: [{ type: 'text', text: 'Hello' }] },
      { role: 'user', content: [{ type: 'text', text: '<system>\nNow in French.\n</system>' }, { type: 'text', text: 'Bye' }] },
    ],
  })
  t.strictSame(headers, { 'anthropic-version': '2023-06-01' })
})

t.test('consecutive messages of one role are merged, and empty content is dropped', async t => {
  const { body } = toMessages({
    messages: [user('One'), user(''), user([{ type: 'text', text: ' ' }, { type: 'text', text: 'Two' }]), { role: 'assistant', content: '' }, user('Three')],
  })
  t.strictSame(body['messages'], [{
    role: 'user', content: [{ type: 'text', text: 'One' }, { type: 'text', text: 'Two' }, { type: 'text', text: 'Three' }],
  }])
})

t.test('a tool id that the target refuses is rewritten to the same id in call and result', async t => {
  const turn = (id: string): JsonObject[] => [
    { role: 'assistant', content: null, tool_calls: [{ id, type: 'function', function: { name: 'f', arguments: '' } }] },
    { role: 'tool', tool_call_id: id, content: 'done' },
  ]
  const { body } = toMessages({ messages: [user('Go'), ...turn('functions.f:0'), ...turn('functions.f:0')] })
  const blocks = (body['messages'] as { content: JsonObject[] }[]).flatMap(({ content }) => content)
  const [first, second] = blocks.filter(({ type }) => type === 'tool_use').map(({ id }) => id)
  t.match(first, /^toolu_[0-9a-f]{24}$/)
  t.equal(second, `${String(first)}_2`)
  t.strictSame(blocks.filter(({ type }) => type === 'tool_result').map(block => block['tool_use_id']), [first, second])
  t.match(blocks[1], { input: {} })
})

t.test('parallel_tool_calls: false becomes disable_parallel_tool_use', async t => {
  const tools = [{ type: 'function', function: { name: 'f' } }, { type: 'function', function: { name: 'g' } }]
  const choice = (body: JsonObject): unknown => toMessages({ messages: [user('Go')], tools, ...body }).body['tool_choice']
  t.strictSame(choice({ parallel_tool_calls: false }), { type: 'auto', disable_parallel_tool_use: true })
  t.strictSame(choice({ parallel_tool_calls: false, tool_choice: 'required' }), { type: 'any', disable_parallel_tool_use: true })
  t.strictSame(choice({ tool_choice: { type: 'function', function: { name: 'g' } } }), { type: 'tool', name: 'g' })
  t.strictSame(choice({ tool_choice: 'none' }), { type: 'none' })
  const some = { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: [{ type: 'function', function: { name: 'g' } }] } }
  const { body } = toMessages({ messages: [user('Go')], tools, tool_choice: some })
  t.match(body, { tools: [{ name: 'g' }], tool_choice: { type: 'auto' } })
})

t.test('a forced tool choice drops reasoning_effort, because Anthropic refuses both', async t => {
  const tools = [{ type: 'function', function: { name: 'f' } }]
  const { body, dropped } = toMessages({ messages: [user('Go')], tools, tool_choice: 'required', reasoning_effort: 'high' })
  t.equal(body['thinking'], undefined)
  t.strictSame(body['tool_choice'], { type: 'any' })
  t.strictSame(dropped, ['reasoning_effort'])
})

t.test('thinking becomes a budget or an effort, depending on what the model accepts', async t => {
  const of = (model: string, more: JsonObject = {}): JsonObject => toMessages({ messages: [user('Go')], reasoning_effort: 'high', ...more }, model).body
  t.strictSame(of('claude-opus-4-20250514')['thinking'], { type: 'enabled', budget_tokens: 16_000 })
  t.strictSame(of('claude-sonnet-4-5', { max_tokens: 4096 })['thinking'], { type: 'enabled', budget_tokens: 2048 })
  t.match(of('claude-opus-4-6'), { thinking: { type: 'adaptive' }, output_config: { effort: 'high' } })
  t.strictSame(of('claude-opus-4-6', { reasoning_effort: 'none' })['thinking'], { type: 'disabled' })
  const { body, dropped } = toMessages({ messages: [user('Go')], reasoning_effort: 'high', temperature: 0.2, top_p: 0.5 })
  t.equal(body['temperature'], undefined)
  t.strictSame(dropped, ['top_p', 'temperature'])
})

t.test('sampling: fields without a counterpart are dropped and reported', async t => {
  const { body, dropped } = toMessages({
    messages: [user('Go')], temperature: 1.5, top_p: 0.9, seed: 1, presence_penalty: 0.1, logit_bias: { 1: 1 }, n: 1,
    store: false, logprobs: false, user: 'u1', service_tier: 'flex', metadata: { a: 'b' }, stop: 'END',
  })
  t.match(body, { temperature: 1, metadata: { user_id: 'u1' }, stop_sequences: ['END'] })
  t.strictSame(dropped, ['seed', 'presence_penalty', 'logit_bias', 'metadata', 'temperature', 'top_p', 'service_tier'])
})

t.test('a schema keeps properties that are named like keywords', async t => {
  const schema = {
    type: 'object', required: ['minimum'],
    properties: { minimum: { type: 'number', minimum: 3 }, inner: { type: 'array', items: { type: 'object', properties: {} } } },
  }
  const { body, dropped } = toMessages({
    messages: [user('Go')], response_format: { type: 'json_schema', json_schema: { name: 'n', schema, strict: true } },
  })
  t.strictSame(body['output_config'], {
    format: {
      type: 'json_schema', schema: {
        type: 'object', required: ['minimum'], additionalProperties: false,
        properties: {
          minimum: { type: 'number', description: '{minimum: 3}' },
          inner: { type: 'array', items: { type: 'object', properties: {}, additionalProperties: false } },
        },
      },
    },
  })
  t.strictSame(dropped, [])
  const json = toMessages({ messages: [user('Go')], response_format: { type: 'json_object' } })
  t.match(json.body['system'], [{ text: /JSON/ }])
  t.strictSame(json.dropped, ['response_format'])
})

t.test('if there are more than four cache_control marks, the first and the last three are kept', async t => {
  const marked = (text: string): JsonObject => ({ type: 'text', text, cache_control: { type: 'ephemeral' } })
  const { body, dropped } = toMessages({ messages: [user(['a', 'b', 'c', 'd', 'e', 'f'].map(marked))] })
  const [{ content }] = body['messages'] as [{ content: JsonObject[] }]
  t.strictSame(content.filter(block => block['cache_control']).map(({ text }) => text), ['a', 'd', 'e', 'f'])
  t.strictSame(dropped, ['cache_control'])
})

t.test('images and documents are translated, and files of another provider are refused', async t => {
  const { body } = toMessages({
    messages: [user([
      { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }, { type: 'image_url', image_url: { url: 'https://example.com/a.png' } },
      { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBE' } },
    ])],
  })
  t.strictSame((body['messages'] as { content: unknown }[])[0]?.content, [
    { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } },
    { type: 'image', source: { type: 'url', url: 'https://example.com/a.png' } },
    { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'JVBE' }, title: 'a.pdf' },
  ])
  const refused = (content: JsonObject): string => {
    try {
      toMessages({ messages: [user([content])] })
    } catch (error) {
      return (error as GatewayError).code
    }
    return 'translated'
  }
  t.equal(refused({ type: 'file', file: { file_id: 'file-1' } }), 'not_translatable')
  t.equal(refused({ type: 'input_audio', input_audio: { format: 'wav', data: 'AAAA' } }), 'not_translatable')
})

t.test('a request for several responses is refused', async t => {
  t.throws(() => toMessages({ messages: [user('Go')], n: 2 }), { code: 'not_translatable', param: 'n' })
})
