import t from 'tap'
import type { JsonObject } from '../../../src/protocols/neutral/json.ts'
import { opened } from '../../support/capsules.ts'
import { PROVIDER, bodyBetween, dataOf, requestBetween, sse, streamBetween } from '../../support/translation.ts'

const chunk = (delta: JsonObject, finish: string | null = null): JsonObject => ({ id: 'c1', model: 'qwen', choices: [{ index: 0, delta, finish_reason: finish }] })
const call = (index: number, id: string, args: string): JsonObject => ({ tool_calls: [{ index, id, type: 'function', function: { name: 'look', arguments: args } }] })
const USAGE = { choices: [], usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 } }

const CHAT = [
  chunk({ role: 'assistant', content: '' }), chunk({ reasoning_content: 'Hm.' }), chunk({ content: 'I look.' }),
  chunk(call(0, 'c1', '{"at":1}')), chunk(call(1, 'c2', '')), chunk({}, 'tool_calls'), USAGE, '[DONE]',
]

t.test('each part becomes one item with its own index, which is added once and done once', async t => {
  const events = dataOf(streamBetween('responses', 'chat', [sse(...CHAT)]))
  t.equal(events[0]?.['type'], 'response.created')
  t.strictSame(events.map(event => event['sequence_number']), events.map((_, n) => n))
  const indices = (type: string) => events.filter(event => event['type'] === type).map(event => event['output_index'])
  t.strictSame(indices('response.output_item.added'), [0, 1, 2, 3])
  t.strictSame(indices('response.output_item.done').sort(), [0, 1, 2, 3])
  const last = events.at(-1) as JsonObject
  t.match(last, { type: 'response.completed', response: { status: 'completed', usage: { input_tokens: 7, output_tokens: 3, total_tokens: 10 } } })
  const { output } = last['response'] as { readonly output: JsonObject[] }
  t.match(output.map(({ type }) => type), ['reasoning', 'message', 'function_call', 'function_call'])
  t.match(output[2], { call_id: 'c1', name: 'look', arguments: '{"at":1}', status: 'completed' })
  t.match(output[3], { call_id: 'c2', arguments: '{}' })
})

t.test('a body has status, output and usage of the response', async t => {
  const body = bodyBetween('responses', 'messages', {
    id: 'msg_1', model: 'claude', content: [{ type: 'text', text: 'Hel' }], stop_reason: 'max_tokens', usage: { input_tokens: 7, output_tokens: 2 },
  })
  t.match(body, {
    object: 'response', status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' }, model: 'claude',
    output: [{ type: 'message', content: [{ type: 'output_text', text: 'Hel' }] }], usage: { input_tokens: 7, output_tokens: 2 },
  })
})

t.test('signatures of thinking come back from a client that keeps only standard fields', async t => {
  const response = {
    id: 'msg_1', model: 'claude', stop_reason: 'tool_use', usage: { input_tokens: 7, output_tokens: 2 },
    content: [
      { type: 'thinking', thinking: 'Hm.', signature: 'sig' }, { type: 'redacted_thinking', data: 'hidden' },
      { type: 'tool_use', id: 'toolu_1', name: 'look', input: {} },
    ],
  }
  const { output } = bodyBetween('responses', 'messages', response) as { readonly output: readonly JsonObject[] }
  t.strictSame(opened('opaque_value', output[0]?.['encrypted_content'])?.thinking, [{ text: 'Hm.', opaque: { provider: PROVIDER, value: 'sig' } }])
  const next = {
    reasoning: { effort: 'low' },
    input: [{ role: 'user', content: 'Look' }, ...output, { type: 'function_call_output', call_id: 'toolu_1', output: 'blue' }],
  }
  t.match(requestBetween('responses', 'messages', next).body['messages'], [
    { role: 'user' },
    { role: 'assistant', content: [{ type: 'thinking', thinking: 'Hm.', signature: 'sig' }, { type: 'redacted_thinking', data: 'hidden' }, { type: 'tool_use', id: 'toolu_1' }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1' }] },
  ])
  t.notMatch(JSON.stringify(requestBetween('responses', 'messages', next, 'm', 'another').body), /sig|hidden/)
})

t.test('the input of a custom tool call is text', async t => {
  const body = { input: 'Patch', tools: [{ type: 'custom', name: 'apply_patch' }] }
  const stream = streamBetween('responses', 'chat', [sse(
    chunk({ tool_calls: [{ index: 0, id: 'c1', function: { name: 'apply_patch', arguments: '{"input":"*** ' } }] }),
    chunk({ tool_calls: [{ index: 0, function: { arguments: 'Begin"}' } }] }), chunk({}, 'tool_calls'), '[DONE]',
  )], body)
  const done = dataOf(stream).find(({ type }) => type === 'response.output_item.done')
  t.match(done, { item: { type: 'custom_tool_call', call_id: 'c1', name: 'apply_patch', input: '*** Begin' } })
})

t.test('an error in mid-stream becomes an error event, and ends the stream', async t => {
  const events = dataOf(streamBetween('responses', 'chat', [sse(chunk({ content: 'Hi' }), { error: { message: 'broken', code: 502 } }, '[DONE]')]))
  t.match(events.at(-1), { type: 'error', message: 'broken' })
})
