import t from 'tap'
import type { JsonObject } from '../../../src/protocols/neutral/json.ts'
import { StreamTranslator } from '../../../src/protocols/neutral/translate/translate-response.ts'
import { JsonArrayReader } from '../../../src/protocols/events/json-array.ts'
import { SseReader } from '../../../src/protocols/events/sse.ts'
import { EventStreamDecoder } from '../../../src/providers/bedrock/event-stream.ts'
import { PROVIDER, clientSide, contextOf, requestBetween, upstreamSide } from '../../support/translation.ts'
import { isQuadratic } from './growth.ts'

const list = <T>(length: number, entry: (n: number) => T): T[] => Array.from({ length }, (_, n) => entry(n))
const chatCall = (id: string): JsonObject => ({ id, type: 'function', function: { name: 'look', arguments: '{}' } })
const chatCalls = (entries: number, id: (n: number) => string): JsonObject => ({ role: 'assistant', tool_calls: list(entries, n => chatCall(id(n))) })
const chatResults = (entries: number, id: (n: number) => string): JsonObject[] => list(entries, n => ({ role: 'tool', tool_call_id: id(n), content: 'a bird' }))
const tools = (entries: number): JsonObject[] => list(entries, n => ({ type: 'function', function: { name: `f${n}` } }))
const allowed = (entries: number): JsonObject => ({
  messages: [{ role: 'user', content: 'Hi' }], tools: tools(entries),
  tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: tools(entries).toReversed() } },
})
const usageEvents = (entries: number): JsonObject[] => [
  { type: 'message_start', message: { usage: { iterations: list(entries, () => ({ type: 'compaction', input_tokens: 1, output_tokens: 1 })) } } },
  ...list(entries, () => ({ type: 'message_delta', delta: {}, usage: { output_tokens: 1 } })),
]
const openCalls = (entries: number): JsonObject[] => [
  ...list(entries, index => ({ choices: [{ delta: { tool_calls: [{ index, id: `call_${index}`, function: { name: 'look', arguments: '{"at":' } }] } }] })),
  { choices: [{ delta: {}, finish_reason: 'tool_calls' }] },
]
const growingCall = (entries: number): JsonObject[] => list(2 * entries, n => ({
  choices: [{ delta: { tool_calls: [n % 2 === 0 ? { index: 0, id: 'a', function: { name: 'look', arguments: n === 0 ? '[' : `${' '.repeat(20)}{},` } } : { index: n, function: { name: 'f', arguments: '{}' } }] } }],
}))
const openItems = (entries: number): JsonObject[] => [
  ...list(entries, n => ({ type: 'response.output_item.added', output_index: n, item: { type: 'function_call', call_id: `call_${n}`, name: 'look' } })),
  ...list(entries, n => ({ type: 'response.output_item.done', output_index: entries + n, item: { type: 'message', content: [] } })),
]
const longModel = (entries: number): JsonObject[] => list(entries, () => ({ id: 'i'.repeat(100), model: 'm'.repeat(20 * entries), choices: [{ delta: { content: 'a' } }] }))
const request = (from: string, to: string, body: JsonObject): (() => unknown) => () => JSON.stringify(requestBetween(from, to, body).body)
const stream = (from: string, to: string, events: readonly JsonObject[]): (() => unknown) => () => {
  const translator = new StreamTranslator(clientSide(to), upstreamSide(from), contextOf(to), PROVIDER)
  for (const event of events) {
    translator.event('', event)
    translator.take()
  }
}
const bytewise = (bytes: Buffer, push: (chunk: Buffer) => void): (() => unknown) => () => {
  for (let at = 0; at < bytes.length; at++) push(bytes.subarray(at, at + 1))
}

/** Inputs whose translation took time in proportion to the square of their length, or could. */
const CASES: Readonly<Record<string, readonly [entries: number, prepare: (entries: number) => () => unknown]>> = {
  'calls of one id, to messages': [2000, n => request('chat', 'messages', { messages: [chatCalls(n, () => 'a')] })],
  'calls of one id, and of its numbered forms, to messages': [1000, n => request('chat', 'messages', { messages: [chatCalls(n, at => `a_${at}`), chatCalls(n, () => 'a')] })],
  'calls of one id with results, to generate': [2000, n => request('chat', 'generate', { messages: [chatCalls(n, () => 'a'), ...chatResults(n, () => 'a')] })],
  'results that match no call, to generate': [2000, n => request('chat', 'generate', { messages: [chatCalls(n, at => `a${at}`), ...chatResults(n, at => `b${at}`)] })],
  'one long result for calls of one id': [1000, n => request('chat', 'generate', { messages: [chatCalls(n, () => 'a'), { role: 'tool', tool_call_id: 'a', content: 'x'.repeat(100 * n) }] })],
  'results of a tool with a long name': [1000, n => request('chat', 'generate', {
    messages: [{ role: 'assistant', tool_calls: [{ ...chatCall('a'), function: { name: 'x'.repeat(100 * n), arguments: '{}' } }] }, { role: 'assistant', content: 'a' }, { role: 'user', content: 'b' }, { role: 'assistant', content: 'a' }, ...chatResults(n, () => 'a')],
  })],
  'results from the last to the first, of generate': [3000, n => request('generate', 'chat', {
    contents: [
      { role: 'model', parts: list(n, at => ({ functionCall: { id: `a${at}`, name: 'look' } })) },
      { role: 'user', parts: list(n, at => ({ functionResponse: { id: `a${n - at}`, name: 'none', response: {} } })) },
    ],
  })],
  'allowed tools, to messages': [16_000, n => request('chat', 'messages', allowed(n))],
  'allowed tools, to generate': [16_000, n => request('chat', 'generate', allowed(n))],
  'allowed tools, to converse': [16_000, n => request('chat', 'converse', allowed(n))],
  'allowed tools, to responses': [16_000, n => request('chat', 'responses', allowed(n))],
  'open calls of a chat upstream, to messages': [1000, n => stream('chat', 'messages', openCalls(n))],
  'open calls of a chat upstream, to responses': [1000, n => stream('chat', 'responses', openCalls(n))],
  'a call of a chat upstream that grows between other calls': [1000, n => stream('chat', 'generate', growingCall(n))],
  'messages of a responses upstream that end while calls are open': [2000, n => stream('responses', 'chat', openItems(n))],
  'a long usage that a messages upstream reports many times': [1000, n => stream('messages', 'chat', usageEvents(n))],
  'a long name of a model in a stream': [1000, n => stream('chat', 'generate', longModel(n))],
  'a Bedrock frame, byte by byte': [50_000, n => {
    const frame = Buffer.alloc(n)
    frame.writeUInt32BE(n + 1)
    const decoder = new EventStreamDecoder(() => '')
    return bytewise(frame, chunk => decoder.push(chunk))
  }],
  'server-sent events, byte by byte': [50_000, n => {
    const reader = new SseReader({ event: () => {} })
    return bytewise(Buffer.from(`data: ${'x'.repeat(n)}`), chunk => reader.push(chunk))
  }],
  'a JSON array, byte by byte': [50_000, n => {
    const reader = new JsonArrayReader({ event: () => {} })
    return bytewise(Buffer.from(`["${'x'.repeat(n)}`), chunk => reader.push(chunk))
  }],
}

for (const [name, [entries, prepare]] of Object.entries(CASES)) {
  t.test(`the time grows linearly: ${name}`, async t => {
    t.notOk(isQuadratic(prepare, entries))
  })
}

t.test('calls and results that share an id are paired in their order', async t => {
  const { body } = requestBetween('chat', 'generate', {
    messages: [chatCalls(2, () => 'a'), ...['one', 'two', 'three'].map(content => ({ role: 'tool', tool_call_id: 'a', content }))],
  })
  const response = (output: string): JsonObject => ({ functionResponse: { id: 'a', name: 'look', response: { output } } })
  t.match((body['contents'] as JsonObject[])[2], { role: 'user', parts: [response('one'), response('two'), { text: 'Result of the tool look:' }, { text: 'three' }] })
})
