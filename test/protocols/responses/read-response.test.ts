import fc from 'fast-check'
import t from 'tap'
import type { JsonObject } from '../../../src/protocols/neutral/json.ts'
import { opened } from '../../support/capsules.ts'
import { PROVIDER, bodyBetween, dataOf, requestBetween, sse, streamBetween } from '../../support/translation.ts'

const USAGE = {
  input_tokens: 20, input_tokens_details: { cached_tokens: 4 }, output_tokens: 9, output_tokens_details: { reasoning_tokens: 5 }, total_tokens: 29,
}
const REASONING = { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'Hm.' }], encrypted_content: 'secret-reasoning' }
const MESSAGE = { type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: 'I look.', annotations: [] }] }
const CALL = { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'look', arguments: '{"at":"sky"}', status: 'completed' }
const BODY = { id: 'resp_1', object: 'response', model: 'gpt', status: 'completed', error: null, incomplete_details: null, output: [REASONING, MESSAGE, CALL], usage: USAGE }

const STREAM: JsonObject[] = [
  { type: 'response.created', response: { id: 'resp_1', model: 'gpt', status: 'in_progress', output: [] } },
  { type: 'response.in_progress', response: { id: 'resp_1', model: 'gpt' } },
  { type: 'response.output_item.added', output_index: 0, item: { ...REASONING, summary: [], encrypted_content: 'not whole' } },
  { type: 'response.reasoning_summary_part.added', output_index: 0, summary_index: 0, part: { type: 'summary_text', text: '' } },
  { type: 'response.reasoning_summary_text.delta', output_index: 0, summary_index: 0, delta: 'Hm.' },
  { type: 'response.reasoning_summary_text.done', output_index: 0, summary_index: 0, text: 'Hm.' },
  { type: 'response.output_item.done', output_index: 0, item: REASONING },
  { type: 'response.output_item.added', output_index: 1, item: { ...MESSAGE, content: [] } },
  { type: 'response.content_part.added', output_index: 1, content_index: 0, part: { type: 'output_text', text: '' } },
  { type: 'response.output_text.delta', output_index: 1, content_index: 0, delta: 'I ' },
  { type: 'response.output_text.delta', output_index: 1, content_index: 0, delta: 'look.' },
  { type: 'response.output_text.done', output_index: 1, content_index: 0, text: 'I look.' },
  { type: 'response.output_item.done', output_index: 1, item: MESSAGE },
  { type: 'response.output_item.added', output_index: 2, item: { ...CALL, arguments: '' } },
  { type: 'response.function_call_arguments.delta', output_index: 2, delta: '{"at":' },
  { type: 'response.function_call_arguments.delta', output_index: 2, delta: '"sky"}' },
  { type: 'response.function_call_arguments.done', output_index: 2, arguments: '{"at":"sky"}' },
  { type: 'response.output_item.done', output_index: 2, item: CALL },
  { type: 'response.completed', response: BODY },
]

t.test('a stream becomes messages events: thinking, text, a tool call, and the usage', async t => {
  const events = dataOf(streamBetween('messages', 'responses', [sse(...STREAM)]))
  const blocks = events.filter(event => event['type'] === 'content_block_start').map(event => (event['content_block'] as JsonObject)['type'])
  t.strictSame(blocks, ['thinking', 'text', 'tool_use'])
  t.match(events.at(-2), {
    type: 'message_delta', delta: { stop_reason: 'tool_use' },
    usage: { input_tokens: 16, cache_read_input_tokens: 4, output_tokens: 9 },
  })
  t.equal(events.at(-1)?.['type'], 'message_stop')
  const signature = events.flatMap(event => (event['delta'] as JsonObject | undefined)?.['signature'] ?? [])[0] as string
  t.strictSame(opened('opaque_value', signature)?.opaque, { provider: PROVIDER, value: 'secret-reasoning' }, 'the last signature is that of the completed item')
})

t.test('encrypted reasoning goes back only to its provider', async t => {
  const content = bodyBetween('messages', 'responses', BODY)['content']
  const next = { max_tokens: 100, messages: [{ role: 'user', content: 'Look' }, { role: 'assistant', content }, { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'call_1', content: 'blue' }] }] }
  const { body } = requestBetween('messages', 'responses', next)
  t.match((body['input'] as JsonObject[])[1], { type: 'reasoning', summary: [{ text: 'Hm.' }], encrypted_content: 'secret-reasoning' })
  t.notMatch(JSON.stringify(requestBetween('messages', 'responses', next, 'gpt', 'another').body), 'secret-reasoning')
})

t.test('a responses body becomes a chat body', async t => {
  t.match(bodyBetween('chat', 'responses', BODY), {
    model: 'gpt',
    choices: [{ finish_reason: 'tool_calls', message: { content: 'I look.', reasoning_content: 'Hm.', tool_calls: [{ function: { name: 'look', arguments: '{"at":"sky"}' } }] } }],
    usage: { prompt_tokens: 20, completion_tokens: 9, prompt_tokens_details: { cached_tokens: 4 }, completion_tokens_details: { reasoning_tokens: 5 } },
  })
})

t.test('stop reasons, refusals and failures become stop reasons and errors of messages', async t => {
  const ended = (more: JsonObject) => bodyBetween('messages', 'responses', { ...BODY, output: [MESSAGE], ...more })
  t.equal(ended({})['stop_reason'], 'end_turn')
  t.equal(ended({ status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } })['stop_reason'], 'max_tokens')
  t.equal(ended({ status: 'incomplete', incomplete_details: { reason: 'content_filter' } })['stop_reason'], 'refusal')
  t.equal(ended({ output: [{ ...MESSAGE, content: [{ type: 'refusal', refusal: 'No.' }] }] })['stop_reason'], 'refusal')
  const failed = { type: 'response.failed', response: { error: { code: 'rate_limit_exceeded', message: 'slow down' } } }
  t.match(streamBetween('messages', 'responses', [sse(STREAM[0] as JsonObject, failed)]), /event: error\ndata: .*rate_limit_error.*slow down/)
  const event = { type: 'error', code: 'server_error', message: 'broken', param: null }
  t.match(streamBetween('chat', 'responses', [sse(STREAM[0] as JsonObject, event)]), /"message":"broken"/)
})

t.test('a stream that is cut has no [DONE]', async t => {
  t.notMatch(streamBetween('chat', 'responses', [sse(...STREAM.slice(0, -1))]), 'DONE')
})

t.test('property: the events do not depend on the chunk boundaries', async t => {
  const bytes = sse(...STREAM)
  const whole = streamBetween('messages', 'responses', [bytes])
  fc.assert(fc.property(fc.array(fc.nat(bytes.length), { maxLength: 8 }), cuts => {
    const at = [0, ...cuts.sort((a, b) => a - b), bytes.length]
    const chunks = at.slice(1).map((end, n) => bytes.subarray(at[n], end))
    return streamBetween('messages', 'responses', chunks) === whole
  }), { numRuns: 50 })
  t.pass('each of 50')
})
