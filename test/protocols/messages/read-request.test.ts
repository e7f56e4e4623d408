import type Anthropic from '@anthropic-ai/sdk'
import t from 'tap'
import { GatewayError } from '../../../src/base/errors.ts'
import { CHAT_SUPPORT, writeChatRequest } from '../../../src/protocols/chat/write-request.ts'
import { MESSAGES_FIELDS, readMessagesRequest } from '../../../src/protocols/messages/read-request.ts'
import type { JsonObject } from '../../../src/protocols/neutral/json.ts'
import { translateRequest } from '../../../src/protocols/neutral/translate/translate-request.ts'
import { CAPSULES, sealed } from '../../support/capsules.ts'

type Params = Anthropic.MessageCreateParams | Anthropic.Beta.Messages.MessageCreateParams

const PROVIDER = 'chat-tag'

function toChat(request: Partial<Params> & Record<string, unknown>): { body: JsonObject, dropped: readonly string[] } {
  return translateRequest(
    { fields: MESSAGES_FIELDS, readRequest: readMessagesRequest },
    { support: CHAT_SUPPORT, takesFreeformTools: false, writeRequest: writeChatRequest },
    request, { stream: false, model: 'gpt', asksForUsage: true, provider: PROVIDER, accepts: {}, capsules: CAPSULES },
  )
}

t.test('text, system instructions, sampling and limits become a chat request', async t => {
  const { body, dropped } = toChat({
    model: 'claude', max_tokens: 100, stream: true, temperature: 0.5, top_p: 0.9, top_k: 5,
    stop_sequences: ['a', 'b'], metadata: { user_id: 'u1' }, service_tier: 'standard_only',
    system: [{ type: 'text', text: 'One.' }, { type: 'text', text: 'Two.' }],
    messages: [{ role: 'user', content: 'Hi' }, { role: 'assistant', content: 'Hello' }, { role: 'user', content: 'Bye' }],
  })
  t.strictSame(body, {
    model: 'gpt',
    messages: [
      { role: 'system', content: 'One.\n\nTwo.' },
      { role: 'user', content: 'Hi' }, { role: 'assistant', content: 'Hello' }, { role: 'user', content: 'Bye' },
    ],
    max_tokens: 100, stop: ['a', 'b'], temperature: 0.5, top_p: 0.9, service_tier: 'default', user: 'u1',
    stream: true, stream_options: { include_usage: true },
  })
  t.strictSame(dropped, ['top_k'])
})

t.test('system messages in mid-conversation keep their position', async t => {
  const { body } = toChat({
    system: 'Be brief.',
    messages: [{ role: 'user', content: 'Hi' }, { role: 'system', content: 'Now in French.' }, { role: 'user', content: 'Bye' }],
  })
  t.strictSame(body['messages'], [
    { role: 'system', content: 'Be brief.' }, { role: 'user', content: 'Hi' },
    { role: 'system', content: 'Now in French.' }, { role: 'user', content: 'Bye' },
  ])
})

t.test('parallel tool calls, tool results and images inside results are translated', async t => {
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } } as const
  const { body, dropped } = toChat({
    tools: [{ name: 'look', description: 'Looks', input_schema: { type: 'object' } }],
    tool_choice: { type: 'any', disable_parallel_tool_use: true },
    messages: [
      { role: 'user', content: 'Look' },
      {
        role: 'assistant', content: [
          { type: 'text', text: 'I look.' },
          { type: 'tool_use', id: 'toolu_1', name: 'look', input: { at: 'sky' } },
          { type: 'tool_use', id: 'toolu_2', name: 'look', input: {} },
        ],
      },
      {
        role: 'user', content: [
          { type: 'tool_result', tool_use_id: 'toolu_1', content: [{ type: 'text', text: 'blue' }, image] },
          { type: 'tool_result', tool_use_id: 'toolu_2', content: 'no eyes', is_error: true },
          { type: 'text', text: 'And now?' },
        ],
      },
    ],
  })
  t.strictSame(body['messages'], [
    { role: 'user', content: 'Look' },
    {
      role: 'assistant', content: 'I look.', tool_calls: [
        { id: 'toolu_1', type: 'function', function: { name: 'look', arguments: '{"at":"sky"}' } },
        { id: 'toolu_2', type: 'function', function: { name: 'look', arguments: '{}' } },
      ],
    },
    { role: 'tool', tool_call_id: 'toolu_1', content: 'blue' },
    { role: 'tool', tool_call_id: 'toolu_2', content: 'Error: no eyes' },
    {
      role: 'user', content: [
        { type: 'text', text: 'Result of the tool look:' },
        { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
        { type: 'text', text: 'And now?' },
      ],
    },
  ])
  t.equal(body['tool_choice'], 'required')
  t.equal(body['parallel_tool_calls'], false)
  t.strictSame(dropped, [])
})

t.test('images and documents become parts of a chat message', async t => {
  const { body } = toChat({
    messages: [{
      role: 'user', content: [
        { type: 'image', source: { type: 'url', url: 'https://example.com/a.png' } },
        { type: 'document', title: 'a.pdf', source: { type: 'base64', media_type: 'application/pdf', data: 'JVBE' } },
        { type: 'document', title: 'Notes', source: { type: 'text', media_type: 'text/plain', data: 'Some notes' } },
      ],
    }],
  })
  t.strictSame(body['messages'], [{
    role: 'user', content: [
      { type: 'image_url', image_url: { url: 'https://example.com/a.png' } },
      { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBE' } },
      { type: 'text', text: 'Notes\n\nSome notes' },
    ],
  }])
})

t.test('a signature goes back only to the provider that created the signature', async t => {
  const own = sealed('opaque_value', { opaque: { provider: PROVIDER, value: 'reasoning_content' } })
  const messages = (signature: string): Anthropic.MessageParam[] => [
    { role: 'user', content: 'Hi' },
    { role: 'assistant', content: [{ type: 'thinking', thinking: 'Hm.', signature }, { type: 'text', text: 'Hello' }] },
    { role: 'user', content: 'Bye' },
  ]
  const foreign = toChat({ messages: messages('EqoBCkgIARABGAIiQ') })
  t.strictSame((foreign.body['messages'] as unknown[])[1], { role: 'assistant', content: 'Hello' })
  t.strictSame(foreign.dropped, ['messages[].content[].thinking'])
  const back = toChat({ messages: messages(own) })
  t.strictSame((back.body['messages'] as unknown[])[1], { role: 'assistant', content: 'Hello', reasoning_content: 'Hm.' })
  t.strictSame(back.dropped, [])
})

t.test('structured output and reasoning are translated, and fields without a counterpart are reported as dropped', async t => {
  const schema = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'], additionalProperties: false }
  const { body, dropped } = toChat({
    thinking: { type: 'enabled', budget_tokens: 10_000 },
    output_config: { format: { type: 'json_schema', schema } },
    tools: [{ type: 'web_search_20250305', name: 'web_search' }],
    messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi', cache_control: { type: 'ephemeral' } }] }],
    brand_new: 1,
  })
  t.equal(body['reasoning_effort'], 'medium')
  t.strictSame(body['response_format'], { type: 'json_schema', json_schema: { name: 'response', schema, strict: true } })
  t.strictSame(dropped, ['brand_new', 'tools[].web_search_20250305', 'messages[].content[].cache_control'])
})

t.test('a request is refused if the loss of a field would change the response, and the error names the field', async t => {
  const refusal = (request: Record<string, unknown>): GatewayError => {
    try {
      toChat(request)
    } catch (error) {
      if (error instanceof GatewayError) return error
    }
    throw new Error('it was translated')
  }
  const file = { type: 'document', source: { type: 'file', file_id: 'file_1' } }
  t.match(refusal({ messages: [{ role: 'user', content: [file] }] }), { code: 'not_translatable', param: 'messages[].content[]' })
  t.match(refusal({ container: 'c1', messages: [] }), { code: 'not_translatable', param: 'container' })
})
