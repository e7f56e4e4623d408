import { join } from 'node:path'
import t from 'tap'
import { loadConfig } from '../../../src/config/load/load.ts'
import type { Model } from '../../../src/config/price-types.ts'
import type { Upstream } from '../../../src/config/types.ts'
import { acceptedBy, modelRules } from '../../../src/protocols/vendors/model-rules.ts'
import { requestBetween } from '../../support/translation.ts'

type Fields = Readonly<Record<string, unknown>>

/** A request of each protocol with the sampling parameters and the effort of a case. */
const CLIENTS: Readonly<Record<string, (fields: Fields) => Record<string, unknown>>> = {
  chat: ({ temperature, top_p, stop, effort }) => ({
    messages: [{ role: 'user', content: 'Hi' }], temperature, top_p, stop, reasoning_effort: effort,
  }),
  responses: ({ temperature, top_p, effort }) => ({ input: 'Hi', temperature, top_p, ...effort !== undefined && { reasoning: { effort } } }),
  messages: ({ temperature, top_p, top_k, stop, effort }) => ({
    max_tokens: 9000, messages: [{ role: 'user', content: 'Hi' }], temperature, top_p, top_k, stop_sequences: stop,
    ...effort === 'none' ? { thinking: { type: 'disabled' } } : effort !== undefined && { thinking: { type: 'adaptive' }, output_config: { effort } },
  }),
  generate: ({ temperature, top_p, top_k, stop }) => ({
    contents: [{ role: 'user', parts: [{ text: 'Hi' }] }], generationConfig: { temperature, topP: top_p, topK: top_k, stopSequences: stop },
  }),
}

function written(from: string, to: string, model: string, fields: Fields): { body: Fields, dropped: readonly string[] } {
  const { body, dropped } = requestBetween(from, to, JSON.parse(JSON.stringify(CLIENTS[from]!(fields))) as Record<string, unknown>, model)
  return { body, dropped }
}

/** From, to, model, the client's fields, and what the target gets of them; undefined = nothing. */
const CASES: readonly (readonly [from: string, to: string, model: string, fields: Fields, body: Fields, dropped: readonly string[]])[] = [
  ['chat', 'messages', 'claude-opus-4-7', { temperature: 0.2 }, { temperature: undefined }, ['temperature']],
  ['chat', 'messages', 'claude-opus-4-7', { temperature: 1 }, { temperature: 1 }, []],
  ['responses', 'messages', 'claude-sonnet-5-5', { top_p: 0.9 }, { top_p: undefined }, ['top_p']],
  ['responses', 'messages', 'claude-fable-5', { top_p: 0.99 }, { top_p: 0.99 }, []],
  ['generate', 'messages', 'claude-mythos-preview', { top_k: 40 }, { top_k: undefined }, ['generationConfig.topK']],
  ['generate', 'messages', 'claude-haiku-4-5', { top_k: 40, temperature: 0.3 }, { top_k: 40, temperature: 0.3 }, []],
  ['chat', 'messages', 'claude-opus-4-20250514', { temperature: 0.2 }, { temperature: 0.2 }, []],
  ['chat', 'messages', 'claude-opus-4-6', { temperature: 1.7 }, { temperature: 1 }, ['temperature']],
  ['chat', 'messages', 'claude-sonnet-4-5', { temperature: 0.5, top_p: 0.5 }, { temperature: 0.5, top_p: undefined }, ['top_p']],
  ['chat', 'converse', 'us.anthropic.claude-opus-4-8-v1:0', { temperature: 0.2 }, { inferenceConfig: undefined }, ['temperature']],
  ['generate', 'chat', 'o4-mini', { top_p: 0.95 }, { top_p: undefined }, ['generationConfig.topP']],
  ['generate', 'chat', 'openai/o3', { temperature: 0, stop: ['x'] }, { temperature: undefined, stop: undefined }, ['generationConfig.temperature', 'generationConfig.stopSequences']],
  ['messages', 'responses', 'gpt-5-mini', { temperature: 0.1 }, { temperature: undefined }, ['temperature']],
  ['messages', 'chat', 'gpt-5', { stop: ['x'] }, { stop: undefined }, ['stop_sequences']],
  ['messages', 'chat', 'gpt-5.1', { temperature: 0.1 }, { temperature: 0.1 }, []],
  ['messages', 'chat', 'gpt-5.1', { temperature: 0.1, effort: 'low' }, { temperature: undefined, reasoning_effort: 'low' }, ['temperature']],
  ['messages', 'chat', 'gpt-4.1', { temperature: 0.1, stop: ['x'] }, { temperature: 0.1, stop: ['x'] }, []],
  ['messages', 'chat', 'gpt-5-chat-latest', { temperature: 0.1 }, { temperature: 0.1 }, []],
  ['messages', 'chat', 'gpt-oss-120b', { temperature: 0.1, effort: 'high' }, { temperature: 0.1, reasoning_effort: 'high' }, []],
  ['chat', 'messages', 'claude-fable-5', { effort: 'none' }, { thinking: undefined }, ['reasoning_effort']],
  ['chat', 'messages', 'claude-opus-4-7', { effort: 'none' }, { thinking: { type: 'disabled' } }, []],
  ['chat', 'messages', 'claude-opus-4-6', { effort: 'xhigh' }, { output_config: { effort: 'high' } }, []],
  ['chat', 'messages', 'claude-opus-4-7', { effort: 'xhigh' }, { output_config: { effort: 'xhigh' } }, []],
  ['messages', 'chat', 'o3', { effort: 'max' }, { reasoning_effort: 'high' }, []],
  ['messages', 'chat', 'o3', { effort: 'none' }, { reasoning_effort: undefined }, ['thinking']],
  ['messages', 'chat', 'gpt-5.2', { effort: 'none' }, { reasoning_effort: 'none' }, []],
  ['responses', 'chat', 'gpt-5.1', { effort: 'minimal' }, { reasoning_effort: 'low' }, []],
  ['responses', 'chat', 'gpt-4o', { effort: 'high' }, { reasoning_effort: undefined }, ['reasoning.effort']],
  ['generate', 'converse', 'us.anthropic.claude-sonnet-4-5-20250929-v1:0', { temperature: 0.2, top_p: 0.9 }, { inferenceConfig: { temperature: 0.2 } }, ['generationConfig.topP']],
  ['messages', 'converse', 'amazon.nova-pro-v1:0', { temperature: 0.2, top_p: 0.9 }, { inferenceConfig: { maxTokens: 9000, temperature: 0.2, topP: 0.9 } }, []],
  ['chat', 'converse', 'meta.llama3-1-70b-instruct-v1:0', { temperature: 1.7 }, { inferenceConfig: { temperature: 1 } }, ['temperature']],
  ['chat', 'converse', 'global.xai.grok-4.6', { temperature: 1, top_p: 0.9 }, { inferenceConfig: undefined }, ['temperature', 'top_p']],
  ['responses', 'converse', 'openai.gpt-5.1', { temperature: 0.3, effort: 'low' }, { inferenceConfig: undefined }, ['temperature']],
  ['messages', 'chat', 'moonshotai/kimi-k3', { temperature: 0.3 }, { temperature: undefined }, ['temperature']],
  ['chat', 'messages', 'claude-opus-4-7', { effort: 'default' }, { output_config: undefined }, ['reasoning_effort']],
]

for (const [from, to, model, fields, body, dropped] of CASES) {
  t.test(`${from} -> ${to}: the rules of ${model} apply to ${JSON.stringify(fields)}`, async t => {
    const result = written(from, to, model, fields)
    const got = Object.fromEntries(Object.keys(body).map(name => [name, result.body[name]]))
    t.strictSame({ body: got, dropped: result.dropped }, { body, dropped })
  })
}

t.test('the field name of the token limit depends on the server', async t => {
  const field = (host: string, model: string, provider: 'azure' | null = null) => acceptedBy(modelRules({
    models: new Map(), url: host === '' ? null : new URL(`https://${host}`), provider: provider && { kind: provider },
  }, 'chat', model, null)).maxTokens
  t.strictSame([
    field('api.mistral.ai', 'mistral-large'), field('api.deepseek.com', 'deepseek-chat'), field('', 'qwen3'),
    field('api.openai.com', 'gpt-4.1'), field('eu.api.openai.com', 'gpt-4.1'), field('gateway.example', 'deployment', 'azure'),
    field('proxy.example', 'o3'), field('proxy.example', 'gpt-5.2'),
  ], [
    'max_tokens', 'max_tokens', 'max_tokens',
    'max_completion_tokens', 'max_completion_tokens', 'max_completion_tokens', 'max_completion_tokens', 'max_completion_tokens',
  ])
})

t.test('a configured model, alias or base model overrides the built-in rules', async t => {
  const model = (name: string, rest: Partial<Model>): [string, Model] =>
    [name, { name, baseModel: null, accepts: null, context: null, output: null, price: null, serviceTiers: new Map(), ...rest }]
  const models = new Map([
    model('own', { accepts: { temperature: {}, maxTokens: 'max_completion_tokens' } }),
    model('deployment', { baseModel: 'o3', accepts: { stop: true } }),
  ])
  const accepts = (name: string, alias: string | null) => acceptedBy(modelRules({ models, url: null, provider: null }, 'chat', name, alias))
  t.match(accepts('own', null), { temperature: {}, maxTokens: 'max_completion_tokens', system: 'first' })
  t.match(accepts('x', 'own'), { maxTokens: 'max_completion_tokens' })
  t.match(accepts('deployment', null), { temperature: { only: [1] }, stop: true, efforts: ['low', 'medium', 'high'] })
})

t.test('instructions in mid-conversation become user messages, except for OpenAI models', async t => {
  const { body } = requestBetween('responses', 'chat', {
    instructions: 'A', input: [
      { role: 'user', content: 'B' }, { type: 'function_call', call_id: 'c1', name: 'f', arguments: '{}' }, { role: 'developer', content: 'C' },
      { type: 'function_call_output', call_id: 'c1', output: 'D' }, { role: 'system', content: 'E' }, { role: 'user', content: 'F' },
    ],
  }, 'qwen3.5')
  const roles = (written: unknown) => (written as { role: string }[]).map(({ role }) => role)
  t.strictSame(roles(body['messages']), ['system', 'user', 'assistant', 'tool', 'user'])
  t.match(JSON.stringify(body['messages']), /<system>\\nC\\n<\/system>.*<system>\\nE\\n<\/system>.*F/)
  const openai = requestBetween('responses', 'chat', { input: [{ role: 'user', content: 'B' }, { role: 'system', content: 'E' }, { role: 'user', content: 'F' }] }, 'gpt-4.1')
  t.strictSame(roles(openai.body['messages']), ['user', 'system', 'user'])
})

/** A conversation with a call and its result, and a forced choice of the tool, in each client's protocol. */
const TOOLS: Readonly<Record<string, (name: string) => Record<string, unknown>>> = {
  generate: name => ({
    contents: [
      { role: 'user', parts: [{ text: 'Hi' }] }, { role: 'model', parts: [{ functionCall: { name, args: {} } }] },
      { role: 'user', parts: [{ functionResponse: { name, response: { output: 'x' } } }] },
    ],
    tools: [{ functionDeclarations: [{ name }] }], toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: [name] } },
  }),
  messages: name => ({
    max_tokens: 100, tools: [{ name, input_schema: { type: 'object' } }], tool_choice: { type: 'tool', name },
    messages: [
      { role: 'user', content: 'Hi' }, { role: 'assistant', content: [{ type: 'tool_use', id: 'c1', name, input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c1', content: 'x' }] },
    ],
  }),
}

for (const [from, to, name, pattern] of [
  ['generate', 'chat', 'browser.tab:open', /^[\w-]{1,64}$/], ['generate', 'messages', 'browser.tab:open', /^[\w-]{1,128}$/],
  ['generate', 'converse', 'browser.tab:open', /^[\w-]{1,64}$/], ['messages', 'chat', 'm'.repeat(100), /^[\w-]{1,64}$/],
  ['messages', 'responses', 'm'.repeat(100), /^[\w-]{1,64}$/], ['messages', 'generate', 'm'.repeat(100), /^[\w.:-]{1,64}$/],
] as const) {
  t.test(`${from} -> ${to}: a tool name that the target refuses is shortened, and restored in the response`, async t => {
    const body = TOOLS[from]!(name)
    const { body: sent, toolNames } = requestBetween(from, to, body)
    const text = JSON.stringify(sent)
    t.notOk(text.includes(`"${name}"`), 'the request does not contain the long name')
    const short = [...new Set([...text.matchAll(/"name":"([^"]+)"/g)].map(([, found]) => found as string))]
    t.equal(short.length, 1, 'tools, choice and history have one name')
    t.match(short[0], pattern)
    t.strictSame(JSON.stringify(requestBetween(from, to, body).body), text, 'equal requests give equal results')
    const event = { type: 'part_start' as const, index: 0, part: { type: 'tool_call' as const, id: 'c', name: short[0] as string, isFreeform: false } }
    t.match(toolNames?.restore(event as never), { part: { name } })
  })
}

t.test('media types are normalized to the registered media types', async t => {
  for (const [written, type] of [['image/jpg', 'image/jpeg'], ['IMAGE/JPEG', 'image/jpeg'], ['image/PNG; q=1', 'image/png']] as const) {
    const image = { type: 'image_url', image_url: { url: `data:${written};base64,AAAA` } }
    const { body } = requestBetween('chat', 'messages', { messages: [{ role: 'user', content: [image] }] })
    t.match(JSON.stringify(body), `"media_type":"${type}"`)
    const back = requestBetween('messages', 'chat', {
      max_tokens: 9, messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'base64', media_type: written, data: 'AAAA' } }] }],
    })
    t.match(JSON.stringify(back.body), `data:${type};base64,AAAA`)
    const google = requestBetween('generate', 'messages', { contents: [{ role: 'user', parts: [{ inlineData: { mimeType: written, data: 'AAAA' } }] }] })
    t.match(JSON.stringify(google.body), `"media_type":"${type}"`)
  }
})

t.test("fields that the Mistral API refuses are not sent", async t => {
  const { body, dropped } = requestBetween('responses', 'chat', {
    input: 'Hi', stream: true, text: { verbosity: 'low' }, service_tier: 'auto', safety_identifier: 'u', prompt_cache_key: 'k', max_output_tokens: 5,
  }, 'mistral-large-latest', undefined, 'api.mistral.ai')
  t.strictSame(Object.keys(body).sort(), ['max_tokens', 'messages', 'model', 'prompt_cache_key', 'stream'])
  t.strictSame([...dropped].sort(), ['safety_identifier', 'service_tier', 'text.verbosity'])
  const seeded = requestBetween('generate', 'chat', { contents: [{ parts: [{ text: 'Hi' }] }], generationConfig: { seed: 7 } }, 'mistral-large-latest', undefined, 'eu.api.mistral.ai')
  t.match(seeded.body, { random_seed: 7 })
  t.strictSame(seeded.dropped, [])
})

for (const from of ['messages', 'generate', 'responses']) {
  t.test(`${from}: Mistral models get 9-character ids, and an assistant message after results`, async t => {
    const { body } = requestBetween(from, 'chat', LOOP[from] as Record<string, unknown>, 'Devstral-Small-2-24B-Instruct-2512')
    const written = body['messages'] as Record<string, unknown>[]
    t.strictSame(written.map(({ role }) => role), ['user', 'assistant', 'tool', 'tool', 'assistant', 'user'])
    const calls = written.flatMap(message => (message['tool_calls'] ?? []) as { id: string }[])
    const ids = [...calls.map(({ id }) => id), ...written.slice(2, 4).map(message => message['tool_call_id'] as string)]
    t.ok(ids.every(id => /^[a-zA-Z0-9]{9}$/.test(id)), ids.join())
    t.strictSame(ids.slice(0, 2), ids.slice(2))
    t.equal(new Set(ids).size, 2)
    const plain = requestBetween(from, 'chat', LOOP[from] as Record<string, unknown>, 'qwen3').body['messages'] as Record<string, unknown>[]
    t.strictSame(plain.map(({ role }) => role), ['user', 'assistant', 'tool', 'tool', 'user'])
  })
}

t.test("a schema is sent to DeepSeek's API as an instruction", async t => {
  const schema = { type: 'object', properties: { title: { type: 'string' } }, required: ['title'], additionalProperties: false }
  const { body, dropped } = requestBetween('messages', 'chat', {
    max_tokens: 9, system: 'Be brief.', messages: [{ role: 'user', content: 'Hi' }], output_config: { format: { type: 'json_schema', schema } },
  }, 'deepseek-chat', undefined, 'api.deepseek.com')
  t.match(body, { response_format: { type: 'json_object' }, messages: [{ role: 'system', content: /JSON Schema.*title.*Be brief/s }, { role: 'user' }] })
  t.strictSame(dropped, ['output_config.format'])
})

/** Two calls, their results, and more of the user, in each client's protocol. */
const LOOP: Readonly<Record<string, Record<string, unknown>>> = {
  messages: {
    max_tokens: 9, tools: [{ name: 'look', input_schema: { type: 'object' } }], messages: [
      { role: 'user', content: 'Hi' }, { role: 'assistant', content: ['toolu_1', 'toolu_2'].map(id => ({ type: 'tool_use', id, name: 'look', input: {} })) },
      { role: 'user', content: [...['toolu_1', 'toolu_2'].map(tool_use_id => ({ type: 'tool_result', tool_use_id, content: 'x' })), { type: 'text', text: 'Go on' }] },
    ],
  },
  generate: {
    tools: [{ functionDeclarations: [{ name: 'look' }, { name: 'read' }] }], contents: [
      { role: 'user', parts: [{ text: 'Hi' }] }, { role: 'model', parts: ['look', 'read'].map(name => ({ functionCall: { name, args: {} } })) },
      { role: 'user', parts: [...['look', 'read'].map(name => ({ functionResponse: { name, response: { output: 'x' } } })), { text: 'Go on' }] },
    ],
  },
  responses: {
    tools: [{ type: 'function', name: 'look' }], input: [
      { role: 'user', content: 'Hi' }, ...['call_1', 'call_2'].map(call_id => ({ type: 'function_call', call_id, name: 'look', arguments: '{}' })),
      ...['call_1', 'call_2'].map(call_id => ({ type: 'function_call_output', call_id, output: 'x' })), { role: 'user', content: 'Go on' },
    ],
  },
}

t.test('accepts.without lists fields that a target does not have', async t => {
  const file = join(t.testdir({ 'gateway.yaml': `
auth: open
upstreams: { up: { url: "http://127.0.0.1:9", speaks: [chat] } }
routes: [{ to: up }]
models: { own: { accepts: { without: [seed, stream_options] } } }` }), 'gateway.yaml')
  const { upstreams } = loadConfig(file, {}).config
  t.match(acceptedBy(modelRules(upstreams.get('up') as Upstream, 'chat', 'own', null)), { without: ['seed', 'stream_options'] })
})

const ALTERNATING = ['messages', 'generate', 'converse']

for (const to of ALTERNATING) {
  t.test(`responses -> ${to}: a conversation that begins with an assistant message gets a user message first`, async t => {
    const { body } = requestBetween('responses', to, { input: [{ role: 'assistant', content: 'Yes?' }, { role: 'user', content: 'Hi' }] })
    const turns = (body['messages'] ?? body['contents']) as { role: string }[]
    t.strictSame(turns.map(({ role }) => role), ['user', to === 'generate' ? 'model' : 'assistant', 'user'])
  })
}

for (const [to, model] of [['messages', 'claude-sonnet-4-5'], ['converse', 'anthropic.claude-sonnet-4-5-20250929-v1:0']] as const) {
  t.test(`chat -> ${to}: thinking is disabled after a tool call without thinking in the same turn`, async t => {
    const asked = (more: Record<string, unknown>[]) => requestBetween('chat', to, {
      max_tokens: 9000, reasoning_effort: 'high', messages: [
        { role: 'user', content: 'Hi' }, { role: 'assistant', tool_calls: [{ id: 'c1', type: 'function', function: { name: 'look', arguments: '{}' } }] },
        { role: 'tool', tool_call_id: 'c1', content: 'x' }, ...more,
      ],
    }, model)
    const thinks = (request: ReturnType<typeof asked>) => /"thinking":\{"type":"enabled"/.test(JSON.stringify(request.body))
    t.notOk(thinks(asked([])))
    t.notOk(thinks(asked([{ role: 'user', content: 'Go on' }])))
    t.notOk(thinks(asked([{ role: 'system', content: 'Be brief' }])))
    t.ok(thinks(asked([{ role: 'assistant', content: 'Done' }, { role: 'user', content: 'Next' }])))
  })
}

t.test('a chat server gets merged user messages, at least one user message, and parameters for each tool', async t => {
  const sent = (body: Record<string, unknown>, from: string, model = 'qwen3.5') => requestBetween(from, 'chat', body, model).body
  const users = { max_tokens: 9, messages: [{ role: 'user', content: 'One' }, { role: 'user', content: 'Two' }] }
  t.strictSame(sent(users, 'messages')['messages'], [{ role: 'user', content: [{ type: 'text', text: 'One' }, { type: 'text', text: 'Two' }] }])
  t.match(sent({ instructions: 'Say hi.', input: [] }, 'responses')['messages'], [{ role: 'user', content: 'Say hi.' }])
  t.match(sent({ contents: [{ parts: [{ text: 'Hi' }] }], tools: [{ functionDeclarations: [{ name: 'look' }] }] }, 'generate')['tools'], [{ function: { parameters: { type: 'object', properties: {} } } }])
})

t.test('tool names for Gemini are made valid, and media types of documents are normalized', async t => {
  const { body } = requestBetween('messages', 'generate', { max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }], tools: [{ name: '1st', input_schema: { type: 'object' } }] })
  t.match(body['tools'], [{ functionDeclarations: [{ name: /^_1st_[0-9a-f]{8}$/ }] }])
  const source = { type: 'base64', media_type: 'text/x-markdown', data: 'AAAA' }
  t.match(requestBetween('messages', 'converse', { max_tokens: 9, messages: [{ role: 'user', content: [{ type: 'document', source }] }] }).body['messages'], [{ content: [{}, { document: { format: 'md' } }] }])
})
