import t from 'tap'
import { MessagesResponseWriter, writeMessagesBody, writeMessagesError } from '../../../src/protocols/messages/write-response.ts'
import type { JsonObject } from '../../../src/protocols/neutral/json.ts'
import { NO_USAGE } from '../../../src/protocols/neutral/response.ts'
import type { NeutralError, ResponseEvent, ResponsePart, StopReason, TokenUsage } from '../../../src/protocols/neutral/response.ts'
import { opened } from '../../support/capsules.ts'
import { contextOf, dataOf } from '../../support/translation.ts'

const CONTEXT = contextOf('messages')
const TEXT: ResponsePart = { type: 'text' }
const call = (id: string, more: object = {}): ResponsePart => ({ type: 'tool_call', id, name: 'look', isFreeform: false, opaque: null, ...more })
const opaque = { provider: 'p', value: 'sig' }

const bodyOf = (parts: readonly [ResponsePart, string][], reason: StopReason = 'end', usage: TokenUsage | null = null, explanation: string | null = null) =>
  writeMessagesBody({ id: 'msg_1', model: 'm', parts: parts.map(([part, text]) => ({ part, text, opaque: null })), stop: { type: 'stop', reason, sequence: null, explanation }, usage }, CONTEXT)
const contentOf = (body: JsonObject) => body['content'] as JsonObject[]

function streamOf(...events: readonly ResponseEvent[]): JsonObject[] {
  const writer = new MessagesResponseWriter(CONTEXT)
  return dataOf(events.map(event => writer.write(event)).join(''))
}

for (const [reason, expected] of [
  ['end', 'end_turn'], ['max_tokens', 'max_tokens'], ['context_window', 'model_context_window_exceeded'], ['stop_sequence', 'stop_sequence'], ['tool_calls', 'tool_use'], ['refusal', 'refusal'], ['content_filter', 'refusal'], ['pause', 'pause_turn'],
] as const) {
  t.test(`a message that ends by ${reason} has the stop reason ${expected}`, async t => {
    t.equal(bodyOf([], reason)['stop_reason'], expected)
    t.match(streamOf({ type: 'stop', reason, sequence: 'x', explanation: null }, { type: 'end' })[0], { delta: { stop_reason: expected, stop_sequence: 'x' } })
  })
}

t.test('only a refusal has an explanation', async t => {
  t.strictSame(bodyOf([], 'refusal', null, 'No.')['stop_details'], { type: 'refusal', category: null, explanation: 'No.' })
  t.equal(bodyOf([], 'end', null, 'No.')['stop_details'], null)
})

const USAGES: readonly (readonly [what: string, usage: Partial<TokenUsage>, expected: object])[] = [
  ['nothing', {}, { input_tokens: 0, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 0 }],
  ['input without the cache', { input: 100, cachedInput: 30, cacheWrite: 20, output: 5 }, { input_tokens: 50, cache_creation_input_tokens: 20, cache_read_input_tokens: 30, output_tokens: 5 }],
  ['more cache than input', { input: 10, cachedInput: 30 }, { input_tokens: 0, cache_creation_input_tokens: 0, cache_read_input_tokens: 30, output_tokens: 0 }],
  ['writes by lifetime', { input: 20, cacheWrite: 20, cacheWrite1h: 5 }, {
    input_tokens: 0, cache_creation_input_tokens: 20, cache_read_input_tokens: 0, cache_creation: { ephemeral_5m_input_tokens: 15, ephemeral_1h_input_tokens: 5 }, output_tokens: 0,
  }],
  ['reasoning', { output: 5, reasoning: 0 }, { input_tokens: 0, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 5, output_tokens_details: { thinking_tokens: 0 } }],
]

for (const [what, usage, expected] of USAGES) {
  t.test(`the usage of a message has ${what}`, async t => t.strictSame(bodyOf([], 'end', { ...NO_USAGE, ...usage })['usage'], expected))
}

t.test('parts become blocks, and media are left out', async t => {
  const image: ResponsePart = { type: 'image', mediaType: 'image/png', data: 'AAAA' }
  const body = bodyOf([[TEXT, 'Hi'], [image, ''], [{ type: 'refusal' }, 'No'], [{ type: 'thinking' }, 'Hm'], [call('toolu_1'), '{"a":1}']])
  t.match(contentOf(body), [{ type: 'text', text: 'Hi' }, { type: 'text', text: 'No' }, { type: 'thinking', thinking: 'Hm' }, { type: 'tool_use', id: 'toolu_1', name: 'look', input: { a: 1 } }])
  t.match(body, { id: 'msg_1', type: 'message', role: 'assistant', model: 'm' })
})

for (const [id, expected] of [['call_1-A', /^call_1-A$/], ['', /^toolu_unique0$/]] as const) {
  t.test(`a call with the id "${id}" has the id ${expected}`, async t => t.match(contentOf(bodyOf([[call(id), '{}']]))[0]?.['id'], expected))
}

t.test('an id that is invalid, or has a signature, is sealed in a capsule', async t => {
  t.match(opened('tool_id', contentOf(bodyOf([[call('a.b'), '{}']]))[0]?.['id']), { id: 'a.b', opaque: null })
  t.match(opened('tool_id', contentOf(bodyOf([[call('toolu_1', { opaque }), '{}']]))[0]?.['id']), { id: 'toolu_1', opaque })
})

t.test('blocks of a stream are numbered in order, and media get no number', async t => {
  const events = streamOf(
    { type: 'start', id: null, model: null, usage: { ...NO_USAGE, input: 7 } }, { type: 'part_start', index: 0, part: { type: 'image', mediaType: 'image/png', data: 'AAAA' } }, { type: 'part_end', index: 0, opaque: null },
    { type: 'part_start', index: 1, part: TEXT }, { type: 'delta', index: 1, text: 'Hi' }, { type: 'part_end', index: 1, opaque: null },
    { type: 'part_start', index: 2, part: call('toolu_1') }, { type: 'delta', index: 2, text: '{}' }, { type: 'part_end', index: 2, opaque: null },
    { type: 'usage', usage: { ...NO_USAGE, input: 7, output: 3 } }, { type: 'stop', reason: 'tool_calls', sequence: null, explanation: null }, { type: 'end' },
  )
  t.match(events, [
    { type: 'message_start', message: { id: 'msg_unique', model: 'client-model', content: [], stop_reason: null, usage: { input_tokens: 7 } } },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }, { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hi' } }, { type: 'content_block_stop', index: 0 },
    { type: 'content_block_start', index: 1, content_block: { type: 'tool_use', id: 'toolu_1', input: {} } }, { type: 'content_block_delta', index: 1, delta: { type: 'input_json_delta', partial_json: '{}' } }, { type: 'content_block_stop', index: 1 },
    { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 3 } }, { type: 'message_stop' },
  ])
  t.equal(events.length, 9)
})

t.test('thinking ends with a signature that only the gateway can open', async t => {
  const [, , signature] = streamOf({ type: 'part_start', index: 0, part: { type: 'thinking' } }, { type: 'delta', index: 0, text: 'Hm' }, { type: 'part_end', index: 0, opaque })
  const delta = signature?.['delta'] as JsonObject | undefined
  t.match(opened('opaque_value', delta?.['signature']), { opaque })
})

t.test('a stream without a stop event has no message_stop', async t => {
  t.strictSame(streamOf({ type: 'end' }), [])
  t.strictSame(streamOf({ type: 'ping' }), [{ type: 'ping' }])
})

const error = (more: Partial<NeutralError>): NeutralError => ({ kind: 'server', status: 500, message: 'broken', code: null, param: null, ...more })
for (const [kind, type] of [
  ['invalid_request', 'invalid_request_error'], ['authentication', 'authentication_error'], ['billing', 'billing_error'], ['permission', 'permission_error'], ['not_found', 'not_found_error'], ['too_large', 'request_too_large'],
  ['rate_limit', 'rate_limit_error'], ['server', 'api_error'], ['overloaded', 'overloaded_error'], ['timeout', 'timeout_error'],
] as const) {
  t.test(`an error of the kind ${kind} has the type ${type}`, async t => t.strictSame(writeMessagesError(error({ kind }), 'req_1'), { type: 'error', error: { type, message: 'broken' }, request_id: 'req_1' }))
}

t.test('a prompt that is too long has the message that Anthropic clients recognize', async t => {
  const messageOf = (message: string) => (writeMessagesError(error({ message, code: 'context_length_exceeded' }), '')['error'] as JsonObject)['message']
  t.equal(messageOf('maximum is 8192'), 'prompt is too long: maximum is 8192')
  t.equal(messageOf('your prompt is too long'), 'your prompt is too long')
  t.match(streamOf({ type: 'error', error: error({}) }), [{ type: 'error', request_id: null }])
})
