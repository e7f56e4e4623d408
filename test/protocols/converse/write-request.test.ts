import t from 'tap'
import type { JsonObject } from '../../../src/protocols/neutral/json.ts'
import { requestBetween } from '../../support/translation.ts'

const HI = { role: 'user', content: 'Hi' }
const TOOLS = ['a', 'b'].map(name => ({ type: 'function', function: { name, parameters: { type: 'object' } } }))

function written(body: JsonObject, model = 'amazon.nova-lite-v1:0', from = 'chat') {
  return requestBetween(from, 'converse', { model: 'm', messages: [HI], ...body }, model)
}

t.test('a chat request becomes the path and sampling fields of Converse', async t => {
  const { path, body, dropped } = written({ max_tokens: 5, temperature: 0.5, top_p: 0.9, stop: ['END'], seed: 1, user: 'u' })
  t.equal(path, '/model/amazon.nova-lite-v1%3A0/converse')
  t.strictSame(body.inferenceConfig, { maxTokens: 5, temperature: 0.5, topP: 0.9, stopSequences: ['END'] })
  t.strictSame([...dropped].sort(), ['seed', 'user'])
})

t.test('images and documents become blocks of Converse', async t => {
  const content = [
    { type: 'text', text: 'Look' }, { type: 'image_url', image_url: { url: 'data:image/jpg;base64,AAAA' } },
    { type: 'file', file: { filename: 'a/b_c.pdf', file_data: 'data:application/pdf;base64,BBBB' } },
  ]
  t.strictSame(written({ messages: [{ role: 'user', content }] }).body.messages, [{
    role: 'user',
    content: [
      { text: 'Look' }, { image: { format: 'jpeg', source: { bytes: 'AAAA' } } },
      { document: { format: 'pdf', name: 'a-b-c-pdf (1)', source: { bytes: 'BBBB' } } },
    ],
  }])
  const image = (url: string) => written({ messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }] })
  t.throws(() => image('https://example.com/a.png'), { code: 'not_translatable' })
  t.throws(() => image('data:image/tiff;base64,AAAA'), { code: 'not_translatable' })
})

t.test('tool_choice becomes toolChoice', async t => {
  const choice = (value: unknown, messages: unknown[] = [HI]) => written({ tools: TOOLS, tool_choice: value, messages }).body.toolConfig as JsonObject
  t.strictSame(choice('auto')['toolChoice'], { auto: {} })
  t.strictSame(choice('required')['toolChoice'], { any: {} })
  t.match(choice({ type: 'function', function: { name: 'b' } }), { toolChoice: { tool: { name: 'b' } }, tools: [{ toolSpec: { name: 'b' } }] })
  t.equal(choice('none'), undefined)
  const called = [HI, { role: 'assistant', tool_calls: [{ id: '1', type: 'function', function: { name: 'a', arguments: '{}' } }] }, { role: 'tool', tool_call_id: '1', content: '' }]
  t.match(choice('none', called), { tools: [{}, {}] }, 'a conversation with calls needs its tools')
  t.strictSame(written({ tools: TOOLS, parallel_tool_calls: false }).dropped, ['parallel_tool_calls'])
})

t.test('structured output becomes outputConfig', async t => {
  const schema = { type: 'object', properties: { a: { type: 'string' } } }
  const { body } = written({ response_format: { type: 'json_schema', json_schema: { name: 'n', schema } } })
  t.strictSame(body.outputConfig, { textFormat: { type: 'json_schema', structure: { jsonSchema: { schema: JSON.stringify(schema), name: 'n' } } } })
  const any = written({ response_format: { type: 'json_object' } })
  t.match(any.body.system, [{ text: /JSON/ }])
  t.strictSame(any.dropped, ['response_format'])
})

t.test('fields that only some models have go to additionalModelRequestFields', async t => {
  const claude = 'us.anthropic.claude-sonnet-4-20250514-v1:0'
  const thinking = { max_tokens: 4000, top_k: 5, thinking: { type: 'enabled', budget_tokens: 2000 } }
  t.strictSame(written(thinking, claude, 'messages').body.additionalModelRequestFields, { thinking: { type: 'enabled', budget_tokens: 2000 } })
  t.strictSame(written(thinking, 'amazon.nova-lite-v1:0', 'messages').body.additionalModelRequestFields, { inferenceConfig: { topK: 5 } })
  t.strictSame([...written(thinking, 'meta.llama3-70b-instruct-v1:0', 'messages').dropped].sort(), ['thinking', 'top_k'])
  t.strictSame(written({ reasoning_effort: 'low' }, 'openai.gpt-oss-120b-1:0').body.additionalModelRequestFields, { reasoning_effort: 'low' })
})

t.test('cache marks, tiers and metadata become fields of Converse', async t => {
  const { body } = written({
    max_tokens: 5, system: [{ type: 'text', text: 'Be brief', cache_control: { type: 'ephemeral', ttl: '1h' } }],
  }, 'm', 'messages')
  t.strictSame(body.system, [{ text: 'Be brief' }, { cachePoint: { type: 'default', ttl: '1h' } }])
  const { body: tiered, dropped } = written({ service_tier: 'flex', metadata: { team: 'a', 'b*': 'c' } })
  t.match(tiered, { serviceTier: { type: 'flex' }, requestMetadata: { team: 'a' } })
  t.strictSame(dropped, ['metadata'])
})

const CLAUDE = 'us.anthropic.claude-sonnet-4-20250514-v1:0'
const NEWER = 'anthropic.claude-opus-4-7-v1:0'
const NOVA = 'amazon.nova-lite-v1:0'
const LLAMA = 'meta.llama3-1-70b-instruct-v1:0'
const MARK = { type: 'ephemeral', ttl: '1h' }

t.test('tools and a first user message are added if the conversation needs them', async t => {
  const called = [{ role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'look', input: {} }] }, { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: 'x' }] }]
  const { body } = written({ max_tokens: 9, messages: called }, CLAUDE, 'messages')
  t.match(body.toolConfig, { tools: [{ toolSpec: { name: 'look', inputSchema: { json: { type: 'object' } } } }] })
  t.match(body.messages, [{ role: 'user', content: [{ text: /begins/ }] }, { role: 'assistant' }, { role: 'user' }])
  t.equal(written({}).body.toolConfig, undefined)
})

t.test('a message with only a document gets a text, and blank stop sequences are dropped', async t => {
  const document = { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'AAAA' } }
  t.match(written({ max_tokens: 9, messages: [{ role: 'user', content: [document] }] }, CLAUDE, 'messages').body.messages, [{ content: [{ text: /./ }, { document: {} }] }])
  t.strictSame((written({ stop: ['\n', ' ', 'END'] }).body.inferenceConfig as JsonObject)['stopSequences'], ['END'])
  t.equal(written({ stop: ['\n'] }).body.inferenceConfig, undefined)
})

for (const [model, amongTools, inText, behindDocument] of [
  [CLAUDE, { type: 'default', ttl: '1h' }, { type: 'default', ttl: '1h' }, null], [NOVA, null, { type: 'default' }, { type: 'default' }], [LLAMA, null, null, null],
] as const) {
  t.test(`cache_control marks become cache points where ${model} accepts cache points`, async t => {
    const { body, dropped } = written({
      max_tokens: 9, tools: [{ name: 'look', input_schema: { type: 'object' }, cache_control: MARK }],
      system: [{ type: 'text', text: 'Be brief', cache_control: MARK }],
      messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }, { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'AAAA' }, cache_control: MARK }] }],
    }, model, 'messages')
    const points = (list: unknown) => (list as JsonObject[]).flatMap(block => block['cachePoint'] ?? [])
    t.strictSame(points((body.toolConfig as JsonObject)['tools']), amongTools === null ? [] : [amongTools])
    t.strictSame(points(body.system), inText === null ? [] : [inText])
    t.strictSame(points((body.messages as JsonObject[])[0]?.['content']), behindDocument === null ? [] : [behindDocument])
    t.ok(dropped.some(path => path.endsWith('cache_control')))
  })
}

t.test('thinking becomes an effort for newer models, and sampling fields are dropped', async t => {
  const thinking = { type: 'enabled', budget_tokens: 2000 }
  const fields = (body: JsonObject, model: string) => written({ max_tokens: 8000, ...body }, model, 'messages')
  t.strictSame(fields({ thinking }, CLAUDE).body.additionalModelRequestFields, { thinking })
  t.match(fields({ thinking }, NEWER).body.additionalModelRequestFields, { thinking: { type: 'adaptive' }, output_config: { effort: /./ } })
  const sampled = fields({ thinking, temperature: 0.3, top_p: 0.9, top_k: 5 }, CLAUDE)
  t.strictSame(sampled.body.inferenceConfig, { maxTokens: 8000 })
  t.strictSame([...sampled.dropped].sort(), ['temperature', 'top_k', 'top_p'])
  const loop = [HI, { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'look', input: {} }] }, { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: 'x' }] }]
  t.equal(fields({ thinking, messages: loop }, CLAUDE).body.additionalModelRequestFields, undefined, 'a tool loop without thinking')
  t.match(fields({ thinking, messages: loop }, NEWER).body.additionalModelRequestFields, { thinking: { type: 'adaptive' } })
})
