import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import t from 'tap'
import type { JsonObject } from '../../../src/protocols/neutral/json.ts'
import {
  MESSAGE_START, anthropicClient, chatChunks, chatStream, messageEnd, messagesEvents, openaiClient, startTranslating, textBlock,
} from '../../support/translating-gateway.ts'

const QUESTION = { model: 'm', max_tokens: 100, messages: [{ role: 'user' as const, content: 'Hi' }] }
const failureOf = (promise: PromiseLike<unknown>): Promise<unknown> => Promise.resolve(promise).then(() => null, (error: unknown) => error)

t.test('an error in mid-stream reaches the client in the shape of its protocol', async t => {
  const chat = await startTranslating(t, { up: {
    speaks: 'chat',
    responses: [{ body: `${chatChunks({ delta: { role: 'assistant', content: 'Hel' } })}data: ${JSON.stringify({ error: { message: 'out of memory', type: 'server_error', code: 500 } })}\n\n` }],
  } })
  const ofMessages = await failureOf(anthropicClient(chat.gateway).messages.stream(QUESTION).finalMessage())
  t.ok(ofMessages instanceof Anthropic.APIError)
  t.match(ofMessages, { error: { type: 'error', error: { type: 'api_error', message: 'out of memory' } } })
  const messages = await startTranslating(t, { up: {
    speaks: 'messages',
    responses: [{ body: messagesEvents(MESSAGE_START, textBlock(0)[0] as JsonObject & { type: string }, { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }) }],
  } })
  const ofChat = await failureOf(openaiClient(messages.gateway).chat.completions.stream(QUESTION).finalChatCompletion())
  t.ok(ofChat instanceof OpenAI.APIError)
  t.match(ofChat, { message: 'Overloaded', type: 'server_error' })
})

t.test('the client gets an error if a stream is cut', async t => {
  const { gateway } = await startTranslating(t, { up: {
    speaks: 'chat',
    responses: [{
      body: res => {
        res.writeHead(200, { 'content-type': 'text/event-stream' })
        res.write(chatChunks({ delta: { role: 'assistant', content: 'Hel' } }), () => res.destroy())
      },
    }],
  } })
  t.ok(await failureOf(anthropicClient(gateway).messages.stream(QUESTION).finalMessage()) instanceof Error)
  t.match(await gateway.waitForLog(line => line['msg'] === 'exchange'), { end: 'upstream_cut' })
})

t.test('a complete body is translated into the stream that the client asks for', async t => {
  const chat = await startTranslating(t, { up: { speaks: 'chat', responses: [{ body: {
    id: 'c', object: 'chat.completion', created: 1, model: 'chat-model', usage: { prompt_tokens: 4, completion_tokens: 2, total_tokens: 6 },
    choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'Hello' } }],
  } }] } })
  t.match(await anthropicClient(chat.gateway).messages.stream(QUESTION).finalMessage(), {
    content: [{ text: 'Hello' }], stop_reason: 'end_turn', usage: { input_tokens: 4, output_tokens: 2 },
  })
  t.match(await chat.gateway.waitForLog(line => line['msg'] === 'exchange'), { input_tokens: 4, output_tokens: 2, end: 'complete' })
  const messages = await startTranslating(t, { up: { speaks: 'messages', responses: [{ body: {
    ...MESSAGE_START.message, content: [{ type: 'text', text: 'Hello' }], stop_reason: 'end_turn', usage: { input_tokens: 4, output_tokens: 2 },
  } }] } })
  t.match(await openaiClient(messages.gateway).chat.completions.stream(QUESTION).finalChatCompletion(), {
    choices: [{ message: { content: 'Hello' }, finish_reason: 'stop' }],
  })
})

t.test('a stream with thinking and parallel tool calls is translated', async t => {
  const call = (index: number, id: string, text: string): JsonObject => ({ delta: { tool_calls: [{ index, id, type: 'function', function: { name: `f${index}`, arguments: text } }] } })
  const chat = await startTranslating(t, { up: { speaks: 'chat', responses: [{ body: chatStream(
    { delta: { role: 'assistant', reasoning: 'Hm.' } }, { delta: { content: 'I look.' } }, call(0, 'call_a', '{"x":'), call(1, 'call_b', '{"y":2}'),
    { delta: { tool_calls: [{ index: 0, function: { arguments: '1}' } }] } }, { delta: {}, finish_reason: 'tool_calls' },
  ) }] } })
  t.match(await anthropicClient(chat.gateway).messages.stream(QUESTION).finalMessage(), {
    stop_reason: 'tool_use',
    content: [
      { type: 'thinking', thinking: 'Hm.' }, { type: 'text', text: 'I look.' },
      { type: 'tool_use', id: 'call_a', name: 'f0', input: { x: 1 } }, { type: 'tool_use', id: 'call_b', name: 'f1', input: { y: 2 } },
    ],
  })
  const block = (index: number, name: string, ...texts: readonly string[]): (JsonObject & { type: string })[] => [
    { type: 'content_block_start', index, content_block: { type: 'tool_use', id: `toolu_${name}`, name, input: {} } },
    ...texts.map(text => ({ type: 'content_block_delta', index, delta: { type: 'input_json_delta', partial_json: text } })),
    { type: 'content_block_stop', index },
  ]
  const messages = await startTranslating(t, { up: { speaks: 'messages', responses: [{ body: messagesEvents(
    MESSAGE_START, ...textBlock(0, 'I look.'), ...block(1, 'f0', '{"x":', '1}'), ...block(2, 'f1'), ...messageEnd('tool_use'),
  ) }] } })
  const { choices: [choice] } = await openaiClient(messages.gateway).chat.completions.stream(QUESTION).finalChatCompletion()
  t.match(choice, { finish_reason: 'tool_calls', message: { content: 'I look.', tool_calls: [
    { id: 'toolu_f0', function: { name: 'f0', arguments: '{"x":1}' } }, { id: 'toolu_f1', function: { name: 'f1' } },
  ] } })
})

t.test('translated bodies count against server.body_memory', async t => {
  const upstream = { speaks: 'chat', responses: [{ body: chatStream({ delta: { role: 'assistant', content: 'Hello' } }, { delta: {}, finish_reason: 'stop' }) }] }
  const { gateway, seen } = await startTranslating(t, { up: upstream }, '', 'server: { listen: 127.0.0.1:0, body_memory: 1mb, body_limit: 1mb }\n')
  const ask = (size: number): PromiseLike<unknown> => anthropicClient(gateway).messages.create({ ...QUESTION, messages: [{ role: 'user', content: 'x'.repeat(size) }] })
  const failure = await failureOf(ask(700_000))
  t.match(failure, { status: 503, error: { error: { type: 'overloaded_error' } } })
  t.equal(seen['up']?.length, 0)
  t.equal(await failureOf(anthropicClient(gateway).messages.stream({ ...QUESTION, messages: [{ role: 'user', content: 'x'.repeat(300_000) }] }).finalMessage()), null)
})
