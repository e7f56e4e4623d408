import t from 'tap'
import type { JsonObject } from '../../../src/protocols/neutral/json.ts'
import { opened } from '../../support/capsules.ts'
import { PROVIDER, bodyBetween, dataOf, requestBetween, sse, streamBetween } from '../../support/translation.ts'

const START = {
  type: 'message_start', message: {
    id: 'msg_1', type: 'message', role: 'assistant', model: 'claude', content: [], stop_reason: null,
    usage: { input_tokens: 5, cache_read_input_tokens: 3, cache_creation_input_tokens: 2, output_tokens: 1 },
  },
}
const block = (index: number, content_block: JsonObject): JsonObject => ({ type: 'content_block_start', index, content_block })
const delta = (index: number, change: JsonObject): JsonObject => ({ type: 'content_block_delta', index, delta: change })
const stop = (index: number): JsonObject => ({ type: 'content_block_stop', index })
const finish = (reason: string, more: JsonObject = {}): JsonObject[] => [
  { type: 'message_delta', delta: { stop_reason: reason, stop_sequence: null, ...more }, usage: { output_tokens: 9 } },
  { type: 'message_stop' },
]

const STREAM = [
  START,
  block(0, { type: 'thinking', thinking: '', signature: '' }), delta(0, { type: 'thinking_delta', thinking: 'Hm.' }),
  delta(0, { type: 'signature_delta', signature: 'sig' }), stop(0),
  { type: 'ping' },
  block(1, { type: 'text', text: '' }), delta(1, { type: 'text_delta', text: 'I look.' }), stop(1),
  block(2, { type: 'tool_use', id: 'toolu_1', name: 'look', input: {} }),
  delta(2, { type: 'input_json_delta', partial_json: '{"at":' }), delta(2, { type: 'input_json_delta', partial_json: '"sky"}' }), stop(2),
  block(3, { type: 'tool_use', id: 'toolu_2', name: 'look', input: {} }), stop(3),
  ...finish('tool_use'),
]

const deltas = (stream: string): unknown[] => dataOf(stream).map(event => (event['choices'] as JsonObject[])[0]).map(choice => choice?.['delta'])

t.test('thinking, text and parallel tool calls become chunks, and each call has its own index', async t => {
  const stream = streamBetween('chat', 'messages', [sse(...STREAM)])
  const [role, thinking, text, first, more, rest, second, empty, end] = deltas(stream) as JsonObject[]
  t.strictSame([role, thinking, text], [{ role: 'assistant', content: '' }, { reasoning_content: 'Hm.' }, { content: 'I look.' }])
  const [call] = (first as JsonObject)['tool_calls'] as JsonObject[]
  t.match(call, { index: 0, type: 'function', function: { name: 'look', arguments: '' } })
  t.strictSame(opened('tool_id', call?.['id']), { id: 'toolu_1', opaque: null, thinking: [{ text: 'Hm.', opaque: { provider: PROVIDER, value: 'sig' } }] })
  t.strictSame([more, rest], [
    { tool_calls: [{ index: 0, function: { arguments: '{"at":' } }] }, { tool_calls: [{ index: 0, function: { arguments: '"sky"}' } }] },
  ])
  t.match(second, { tool_calls: [{ index: 1, id: 'toolu_2', function: { name: 'look', arguments: '' } }] })
  t.match(empty, { tool_calls: [{ index: 1, function: { arguments: '{}' } }] }, 'clients parse the arguments')
  t.strictSame(end, {})
  t.match(stream, '"finish_reason":"tool_calls"')
  t.ok(stream.endsWith('data: [DONE]\n\n'))
})

t.test('thinking and its signature come back from a client that keeps only standard fields', async t => {
  const [call] = (deltas(streamBetween('chat', 'messages', [sse(...STREAM)]))[3] as JsonObject)['tool_calls'] as JsonObject[]
  const id = call?.['id'] as string
  const next = {
    reasoning_effort: 'low',
    messages: [
      { role: 'user', content: 'Look' },
      { role: 'assistant', content: 'I look.', tool_calls: [{ id, type: 'function', function: { name: 'look', arguments: '{"at":"sky"}' } }] },
      { role: 'tool', tool_call_id: id, content: 'blue' },
    ],
  }
  const { body, dropped } = requestBetween('chat', 'messages', next, 'claude-sonnet-4-5')
  t.strictSame(body['messages'], [
    { role: 'user', content: [{ type: 'text', text: 'Look' }] },
    {
      role: 'assistant', content: [
        { type: 'thinking', thinking: 'Hm.', signature: 'sig' },
        { type: 'text', text: 'I look.' },
        { type: 'tool_use', id: 'toolu_1', name: 'look', input: { at: 'sky' } },
      ],
    },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: [{ type: 'text', text: 'blue' }] }] },
  ])
  t.strictSame(dropped, [])
  t.match(body['thinking'], { type: 'enabled' })

  const elsewhere = requestBetween('chat', 'messages', next, 'claude-sonnet-4-5', 'another-tag')
  t.notMatch(JSON.stringify(elsewhere.body), 'sig')
  // Without its thinking the turn would be refused.
  t.equal(elsewhere.body['thinking'], undefined)
  t.strictSame(elsewhere.dropped, ['reasoning_effort', 'messages[].tool_calls[].thinking'])
})

t.test('the usage chunk is sent only if the client requests usage, and counts cached tokens once', async t => {
  const text = [START, block(0, { type: 'text', text: 'Hi' }), stop(0), ...finish('end_turn')]
  t.notMatch(streamBetween('chat', 'messages', [sse(...text)]), 'usage')
  const asked = dataOf(streamBetween('chat', 'messages', [sse(...text)], { stream: true, stream_options: { include_usage: true } }))
  t.match(asked.at(-1), {
    choices: [], usage: { prompt_tokens: 10, completion_tokens: 9, total_tokens: 19, prompt_tokens_details: { cached_tokens: 3, cache_write_tokens: 2 } },
  })
  t.strictSame(asked.slice(0, -1).map(({ usage }) => usage), asked.slice(0, -1).map(() => null))
})

t.test('a refusal keeps its explanation, in bodies and streams', async t => {
  const details = { stop_details: { type: 'refusal', category: 'bio', explanation: 'Not this.' } }
  const stream = streamBetween('chat', 'messages', [sse(START, ...finish('refusal', details))])
  t.match(stream, '"refusal":"Not this."')
  t.match(stream, '"finish_reason":"content_filter"')
  t.match(bodyBetween('chat', 'messages', { id: 'm', content: [], stop_reason: 'refusal', ...details }), {
    choices: [{ message: { content: null, refusal: 'Not this.' }, finish_reason: 'content_filter' }],
  })
})

t.test('pause_turn becomes stop, and model_context_window_exceeded becomes length', async t => {
  const reasonOf = (reason: string): unknown => (bodyBetween('chat', 'messages', { content: [], stop_reason: reason })['choices'] as JsonObject[])[0]?.['finish_reason']
  t.equal(reasonOf('pause_turn'), 'stop')
  t.equal(reasonOf('model_context_window_exceeded'), 'length')
})

t.test('deltas after stop are dropped, and pings do not reach a chat client', async t => {
  const stream = streamBetween('chat', 'messages', [sse(START, { type: 'ping' }, ...finish('end_turn'), delta(0, { type: 'text_delta', text: 'late' }))])
  t.notMatch(stream, /late|ping/)
  t.ok(stream.endsWith('data: [DONE]\n\n'))
})

t.test('an error in mid-stream ends a chat stream without [DONE]', async t => {
  const stream = streamBetween('chat', 'messages', [sse(START, { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } })])
  t.strictSame(dataOf(stream).at(-1), { error: { message: 'Overloaded', type: 'server_error', param: null, code: 'overloaded_error' } })
  t.notMatch(stream, 'DONE')
})
