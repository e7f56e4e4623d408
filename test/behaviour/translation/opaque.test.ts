import type Anthropic from '@anthropic-ai/sdk'
import type OpenAI from 'openai'
import t from 'tap'
import type { JsonObject } from '../../../src/protocols/neutral/json.ts'
import {
  MESSAGE_START, anthropicClient, chatStream, messageEnd, messagesEvents, openaiClient, startTranslating, textBlock,
} from '../../support/translating-gateway.ts'

const OVERLOADED = { status: 529, body: { type: 'error', error: { type: 'overloaded_error', message: 'busy' } } }
const DOWN = { status: 503, body: { error: { message: 'down' } } }
const MESSAGE_TOOLS: Anthropic.Tool[] = [{ name: 'look', input_schema: { type: 'object' } }]
const CHAT_TOOLS: OpenAI.ChatCompletionTool[] = [{ type: 'function', function: { name: 'look', parameters: { type: 'object' } } }]
const QUESTION = { role: 'user', content: 'Look' } as const

t.test('thinking of a chat upstream does not reach Anthropic in the next turn', async t => {
  const { gateway, seen } = await startTranslating(t, {
    chat: {
      speaks: 'chat',
      responses: [{
        body: chatStream(
          { delta: { role: 'assistant', reasoning_content: 'Hm.' } },
          { delta: { tool_calls: [{ index: 0, id: 'functions.look:0', type: 'function', function: { name: 'look', arguments: '{}' } }] } },
          { delta: {}, finish_reason: 'tool_calls' },
        ),
      }, DOWN],
    },
    claude: { speaks: 'messages', responses: [{ body: messagesEvents(MESSAGE_START, ...textBlock(0, 'Seen'), ...messageEnd()) }] },
  })
  const request = { model: 'm', max_tokens: 4000, thinking: { type: 'enabled', budget_tokens: 2000 }, tools: MESSAGE_TOOLS } as const
  const client = anthropicClient(gateway)
  const first = await client.messages.stream({ ...request, messages: [QUESTION] }).finalMessage()
  const [thinking, call] = first.content
  t.match(thinking, { type: 'thinking', thinking: 'Hm.', signature: /^Gateway1/ })
  const second = await client.messages.stream({
    ...request,
    messages: [QUESTION, first, { role: 'user', content: [{ type: 'tool_result', tool_use_id: (call as Anthropic.ToolUseBlock).id, content: 'ok' }] }],
  }).finalMessage()
  t.match(second.content, [{ type: 'text', text: 'Seen' }])
  const sent = seen['claude']?.[0]?.body as JsonObject
  t.notMatch(JSON.stringify(sent), /Gateway1|Hm\./)
  const [, assistant, result] = sent['messages'] as { content: JsonObject[] }[]
  t.match(assistant?.content, [{ type: 'tool_use', id: /^[a-zA-Z0-9_-]+$/ }])
  t.equal(result?.content[0]?.['tool_use_id'], assistant?.content[0]?.['id'])
  t.equal(sent['thinking'], undefined, 'a turn whose thinking is missing must not ask for it')
})

t.test('thinking that a chat client sends back reaches Anthropic, but not a chat upstream', async t => {
  const thought = [
    MESSAGE_START,
    { type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: '', signature: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: 'Hm.' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'signature_delta', signature: 'sig+/=' } },
    { type: 'content_block_stop', index: 0 },
    { type: 'content_block_start', index: 1, content_block: { type: 'tool_use', id: 'toolu_1', name: 'look', input: {} } },
    { type: 'content_block_delta', index: 1, delta: { type: 'input_json_delta', partial_json: '{}' } },
    { type: 'content_block_stop', index: 1 },
    ...messageEnd('tool_use'),
  ]
  const { gateway, seen } = await startTranslating(t, {
    claude: { speaks: 'messages', responses: [{ body: messagesEvents(...thought) }, { body: messagesEvents(...thought) }, OVERLOADED] },
    chat: { speaks: 'chat', responses: [{ body: chatStream({ delta: { role: 'assistant', content: 'Seen' } }, { delta: {}, finish_reason: 'stop' }) }] },
  })
  const client = openaiClient(gateway)
  const request = { model: 'm', reasoning_effort: 'low', tools: CHAT_TOOLS } as const
  const first = await client.chat.completions.stream({ ...request, messages: [QUESTION] }).finalMessage()
  const turn = (): OpenAI.ChatCompletionMessageParam[] => [
    QUESTION, { role: 'assistant', tool_calls: first.tool_calls ?? [] },
    { role: 'tool', tool_call_id: first.tool_calls?.[0]?.id ?? '', content: 'ok' },
  ]
  await client.chat.completions.stream({ ...request, messages: turn() }).finalMessage()
  t.match(seen['claude']?.[1]?.body['messages'], [{}, {
    content: [{ type: 'thinking', thinking: 'Hm.', signature: 'sig+/=' }, { type: 'tool_use', id: 'toolu_1' }],
  }, {}])
  const last = await client.chat.completions.stream({ ...request, messages: turn() }).finalMessage()
  t.equal(last.content, 'Seen')
  const messages = seen['chat']?.[0]?.body['messages'] as JsonObject[]
  t.match(messages.slice(1), [{ tool_calls: [{ id: 'toolu_1' }] }, { role: 'tool', tool_call_id: 'toolu_1' }])
  t.notMatch(JSON.stringify(messages), /Gateway1|Hm\./)
})

t.test('a body with text that looks like a capsule is forwarded unchanged', async t => {
  const { gateway, seen } = await startTranslating(t, { claude: { speaks: 'messages', responses: [{ body: messagesEvents(MESSAGE_START, ...textBlock(0, 'Hi'), ...messageEnd()) }] } })
  const content = 'What is Gateway1AAAA?'
  await anthropicClient(gateway).messages.stream({ model: 'm', max_tokens: 1, messages: [{ role: 'user', content }] }).finalMessage()
  t.match(seen['claude']?.[0]?.body, { messages: [{ content }] })
})
