import t from 'tap'
import type { JsonObject } from '../../../src/protocols/neutral/json.ts'
import { bodyBetween, dataOf, sse, streamBetween, upstreamSide } from '../../support/translation.ts'

/*
 * A response that failed comes with 200, or in a stream: its code says what a client gets instead.
 */

const CODES: readonly (readonly [code: string, status: number, messages: string, generate: string])[] = [
  ['context_length_exceeded', 400, 'invalid_request_error', 'INVALID_ARGUMENT'],
  ['invalid_prompt', 400, 'invalid_request_error', 'INVALID_ARGUMENT'],
  ['insufficient_quota', 429, 'billing_error', 'RESOURCE_EXHAUSTED'],
  ['rate_limit_exceeded', 429, 'rate_limit_error', 'RESOURCE_EXHAUSTED'],
  ['server_is_overloaded', 503, 'overloaded_error', 'UNAVAILABLE'],
  ['slow_down', 503, 'overloaded_error', 'UNAVAILABLE'],
  ['invalid_image_format', 400, 'invalid_request_error', 'INVALID_ARGUMENT'],
  ['server_error', 500, 'api_error', 'INTERNAL'],
]

for (const [code, status, type, name] of CODES) {
  const failed = { id: 'resp_1', object: 'response', status: 'failed', error: { code, message: 'It failed.' }, output: [] }
  const begin: JsonObject = { type: 'response.created', response: { id: 'resp_1', model: 'm', output: [] } }
  t.test(`${code} has the status ${status}`, async t => t.match(upstreamSide('responses').readError(500, failed), { status, code }))
  t.test(`${code} in a body becomes an error of the client's protocol`, async t => {
    t.match(bodyBetween('messages', 'responses', failed), { error: { type, message: /It failed/ } })
    t.match(bodyBetween('generate', 'responses', failed), { error: { code: status, status: name } })
    t.match(bodyBetween('chat', 'responses', failed), { error: { code, message: 'It failed.' } })
  })
  for (const [what, event] of [
    ['response.failed', { type: 'response.failed', response: failed }], ['error', { type: 'error', code, message: 'It failed.', param: null }],
    ['an error object', { type: 'error', error: { code, message: 'It failed.' } }],
  ] as const) {
    t.test(`${code} in a stream with ${what} becomes an error of the client's protocol`, async t => {
      t.match(dataOf(streamBetween('messages', 'responses', [sse(begin, event)])).at(-1), { type: 'error', error: { type, message: /It failed/ } })
      t.match(dataOf(streamBetween('generate', 'responses', [sse(begin, event)])).at(-1), { error: { code: status, status: name } })
      t.match(dataOf(streamBetween('chat', 'responses', [sse(begin, event)])).at(-1), { error: { code, message: 'It failed.' } })
    })
  }
}

t.test('context_length is also recognized by the error message in a stream, for each protocol of upstreams', async t => {
  const error = { message: 'maximum context length is 8192 tokens' }
  t.match(streamBetween('messages', 'chat', [sse({ choices: [{ delta: { content: 'x' } }] }, { error })]), /prompt is too long: maximum context/)
  t.match(streamBetween('chat', 'messages', [sse({ type: 'error', error: { type: 'invalid_request_error', message: 'prompt is too long: 9 tokens' } })]), /"code":"context_length_exceeded"/)
})

const MESSAGE = { type: 'message', id: 'msg_1', role: 'assistant', content: [{ type: 'output_text', text: 'Hi' }] }
const CALL = { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'look', arguments: '{"at":"sky"}' }
const REASONING = { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'Hm.' }], encrypted_content: 'secret' }
const OUTPUT = [REASONING, MESSAGE, CALL]
const told = (at: number, item: JsonObject): JsonObject[] => [
  { type: 'response.output_item.added', output_index: at, item: { ...item, content: [], summary: [], arguments: '' } },
  { type: 'response.output_item.done', output_index: at, item },
]
const withoutIds = (item: JsonObject): JsonObject => ({ ...item, id: null })
const STREAMS: readonly (readonly [what: string, events: readonly JsonObject[], output?: readonly JsonObject[]])[] = [
  ['nothing', []],
  ['only the message', [{ type: 'response.output_text.delta', output_index: 1, item_id: 'msg_1', content_index: 0, delta: 'Hi' }]],
  ['all but the call', [...told(0, REASONING), ...told(1, MESSAGE)]],
  ['all but the call, which has only begun', [...told(0, REASONING), ...told(1, MESSAGE), told(2, CALL)[0] as JsonObject]],
  ['all', [...told(0, REASONING), ...told(1, MESSAGE), ...told(2, CALL)]],
  ['all, without ids', [...told(0, withoutIds(REASONING)), ...told(1, withoutIds(MESSAGE)), ...told(2, withoutIds(CALL))], OUTPUT.map(withoutIds)],
  ['all, with other indexes', [...told(3, REASONING), ...told(4, MESSAGE), ...told(5, CALL)]],
]

for (const [what, events, output = OUTPUT] of STREAMS) {
  t.test(`the client gets each item once from a stream that has ${what} before its last event`, async t => {
    const stream = sse(
      { type: 'response.created', response: { id: 'resp_1', model: 'm', output: [] } }, ...events,
      { type: 'response.completed', response: { id: 'resp_1', status: 'completed', output } },
    )
    const blocks = dataOf(streamBetween('messages', 'responses', [stream])).filter(event => event['type'] === 'content_block_start')
    t.strictSame(blocks.map(event => (event['content_block'] as JsonObject)['type']).toSorted(), ['text', 'thinking', 'tool_use'])
    const chat = streamBetween('chat', 'responses', [stream])
    for (const text of ['"content":"Hi"', '"reasoning_content":"Hm."', '"name":"look"']) t.equal(chat.split(text).length, 2, text)
    t.match(chat, /sky.*"finish_reason":"tool_calls".*\[DONE\]/s)
  })
}
