import t from 'tap'
import { dataOf, sse, streamBetween } from '../../support/translation.ts'

const block = (index: number, text: string) => [
  { type: 'content_block_start', index, content_block: { type: 'text', text } }, { type: 'content_block_stop', index },
] as const
const START = { type: 'message_start', message: { id: 'msg_1', model: 'claude', usage: { input_tokens: 1, output_tokens: 1 } } }
const DELTA = { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 1 } }
const STOP = { type: 'message_stop' }

t.test('a stream without a start event gets a start event', async t => {
  for (const to of ['chat', 'responses', 'generate']) {
    const events = dataOf(streamBetween(to, 'messages', [sse(...block(0, 'Hi'), DELTA, STOP)]))
    t.match(events[0], { chat: { id: String, model: 'client-model' }, responses: { type: 'response.created' }, generate: { responseId: String } }[to], to)
  }
  const item = { type: 'function_call', call_id: 'call_1', name: 'look', arguments: '{}' }
  const whole = { id: 'resp_1', model: 'gpt', output: [item], status: 'completed' }
  const events = dataOf(streamBetween('generate', 'responses', [sse(
    { type: 'response.output_item.done', output_index: 0, item }, { type: 'response.completed', response: whole },
  )]))
  t.match(events, [{ responseId: String, modelVersion: 'client-model' }, { responseId: String, modelVersion: 'client-model' }], 'responses')
})

t.test('a new block with the number of an open block ends the open block', async t => {
  const [begin, end] = block(0, 'a')
  const stream = sse(START, begin, begin, end, DELTA, STOP)
  const output = dataOf(streamBetween('responses', 'messages', [stream])).at(-1) as { response: { output: unknown[] } }
  t.match(output.response.output, [{ content: [{ text: 'a' }] }, { content: [{ text: 'a' }] }])
})

t.test('the output of responses keeps the order of its items', async t => {
  const [[begin, end], [other, otherEnd]] = [block(0, 'a'), block(1, 'b')]
  const events = dataOf(streamBetween('responses', 'messages', [sse(START, begin, other, otherEnd, end, DELTA, STOP)]))
  const last = events.at(-1) as { response: { output: unknown[] } }
  t.match(last.response.output, [{ content: [{ text: 'a' }] }, { content: [{ text: 'b' }] }])
})

t.test('a chat stream has one finish_reason', async t => {
  const events = dataOf(streamBetween('chat', 'messages', [sse(START, ...block(0, 'a'), DELTA, DELTA, STOP)]))
  t.equal(events.filter(event => JSON.stringify(event).includes('"finish_reason":"stop"')).length, 1)
})

t.test('text after finish_reason becomes a complete block', async t => {
  const chunk = (choice: object) => ({ id: 'c', model: 'm', choices: [{ index: 0, ...choice }] })
  const stream = sse(chunk({ delta: { role: 'assistant' } }), chunk({ delta: {}, finish_reason: 'stop' }), chunk({ delta: { content: 'a' } }), '[DONE]')
  t.strictSame(dataOf(streamBetween('messages', 'chat', [stream])).map(({ type }) => type).slice(1), [
    'content_block_start', 'content_block_delta', 'content_block_stop', 'message_delta', 'message_stop',
  ])
})

t.test('a call without a name is an error', async t => {
  const call = { type: 'content_block_start', index: 0, content_block: { type: 'tool_use', id: 't', input: {} } }
  t.match(streamBetween('chat', 'messages', [sse(START, call, DELTA, STOP)]), '"code":"upstream_invalid"')
})
