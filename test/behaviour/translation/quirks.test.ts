import t from 'tap'
import type { JsonObject } from '../../../src/protocols/neutral/json.ts'
import { bodyBetween, dataOf, requestBetween, sse, streamBetween } from '../../support/translation.ts'
import { MESSAGE_START, anthropicClient, chatStream, messageEnd, messagesEvents, startTranslating, textBlock } from '../../support/translating-gateway.ts'

/*
 * Behaviours of servers and clients that differ from the specification of their protocol.
 */

t.test('parallel tool calls with one index and without ids stay separate calls', async t => {
  const call = (name: string, text: string): JsonObject => ({ delta: { tool_calls: [{ index: 0, id: '', type: 'function', function: { name, arguments: text } }] } })
  const body = chatStream(
    { delta: { role: 'assistant', content: null } }, call('look', '{"at":1}'), call('look', '{"at":2}'), call('hear', '{}'), { delta: {}, finish_reason: 'tool_calls' },
  )
  const { gateway } = await startTranslating(t, { up: { speaks: 'chat', responses: [{ body }] } })
  const message = await anthropicClient(gateway).messages.stream({ model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'Look' }] }).finalMessage()
  t.match(message.content, [
    { type: 'tool_use', name: 'look', input: { at: 1 } }, { type: 'tool_use', name: 'look', input: { at: 2 } }, { type: 'tool_use', name: 'hear', input: {} },
  ])
  t.equal(new Set(message.content.map(block => block.type === 'tool_use' && block.id)).size, 3)
})

t.test('deltas that repeat the name of a tool become one call', async t => {
  const call = (text: string): JsonObject => ({ choices: [{ index: 0, delta: { tool_calls: [{ index: 0, id: 'c1', function: { name: 'look', arguments: text } }] } }] })
  const stream = sse(call(''), call('{"a":{"b":1}'), call(',"c":2}'), call(''), { choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] }, '[DONE]')
  const events = dataOf(streamBetween('messages', 'chat', [stream]))
  t.equal(events.filter(({ type }) => type === 'content_block_start').length, 1)
  t.equal(events.map(({ delta }) => (delta as JsonObject | undefined)?.['partial_json'] ?? '').join(''), '{"a":{"b":1},"c":2}')
})

t.test('a refusal without an explanation makes the response incomplete', async t => {
  const message = { ...MESSAGE_START.message, content: [], stop_reason: 'refusal', usage: { input_tokens: 1, output_tokens: 0 } }
  t.match(bodyBetween('responses', 'messages', message), { status: 'incomplete', incomplete_details: { reason: 'content_filter' } })
  const stream = Buffer.from(messagesEvents(MESSAGE_START, ...textBlock(0, 'Well'), ...messageEnd('refusal')))
  t.match(dataOf(streamBetween('responses', 'messages', [stream])).at(-1), { type: 'response.incomplete', response: { incomplete_details: { reason: 'content_filter' } } })
  const explained = { ...message, stop_details: { type: 'refusal', explanation: 'No.' } }
  t.match(bodyBetween('responses', 'messages', explained), { status: 'completed', output: [{ content: [{ type: 'refusal', refusal: 'No.' }] }] })
})

t.test('an image, which a messages client cannot get, does not become an empty block', async t => {
  const stream = sse({ candidates: [{ index: 0, finishReason: 'STOP', content: { parts: [{ text: 'See' }, { inlineData: { mimeType: 'image/png', data: 'AAAA' } }, { text: 'it' }] } }] })
  const events = dataOf(streamBetween('messages', 'generate', [stream], {}, true))
  t.strictSame(events.filter(({ type }) => type === 'content_block_start' || type === 'content_block_stop').map(({ index }) => index), [0, 0, 1, 1])
  t.strictSame(events.flatMap(({ delta }) => (delta as JsonObject | undefined)?.['text'] ?? []), ['See', 'it'])
})

t.test('a stream without a finish_reason is cut for every client', async t => {
  const stream = sse({ choices: [{ index: 0, delta: { role: 'assistant', content: 'Hi' } }] }, '[DONE]')
  for (const client of ['generate', 'messages', 'responses']) t.throws(() => streamBetween(client, 'chat', [stream], {}, true), { code: 'upstream_cut' }, client)
})

t.test('a schema of a messages client is sent to OpenAI as strict only if OpenAI accepts the schema as strict', async t => {
  const schema = (required: readonly string[]): JsonObject => ({ type: 'object', properties: { a: { type: 'string' }, b: { $ref: '#/$defs/b' } }, required, additionalProperties: false, $defs: { b: { type: 'string' } } })
  const request = (required: readonly string[]): JsonObject => ({
    max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }], output_config: { format: { type: 'json_schema', schema: schema(required) } },
    tools: [{ name: 'look', input_schema: schema(required), strict: true }],
  })
  t.match(requestBetween('messages', 'chat', request(['a', 'b'])), {
    body: { response_format: { json_schema: { strict: true } }, tools: [{ function: { strict: true } }] }, dropped: { length: 0 },
  })
  t.match(requestBetween('messages', 'responses', request(['a'])), { body: { text: { format: { strict: false } }, tools: [{ strict: false }] }, dropped: ['tools[].strict'] })
  const inner = { ...schema(['a', 'b']), $defs: { b: { type: 'object', properties: { c: {} }, additionalProperties: false } } }
  t.not((requestBetween('messages', 'chat', { ...request([]), output_config: { format: { type: 'json_schema', schema: inner } } }).body as { response_format: { json_schema: JsonObject } }).response_format.json_schema['strict'], true)
})

t.test('the field name of a message is dropped and reported if the protocol of the target has no such field', async t => {
  for (const to of ['messages', 'responses', 'generate', 'converse']) {
    t.strictSame(requestBetween('chat', to, { messages: [{ role: 'user', name: 'Ann', content: 'Hi' }] }).dropped, ['messages[].name'], to)
  }
})
