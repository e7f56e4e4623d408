import t from 'tap'
import { ChatResponseWriter, writeChatBody } from '../../../src/protocols/chat/write-response.ts'
import type { JsonObject } from '../../../src/protocols/neutral/json.ts'
import { NO_USAGE } from '../../../src/protocols/neutral/response.ts'
import type { ResponseEvent, ResponsePart, StopReason, TokenUsage } from '../../../src/protocols/neutral/response.ts'
import { opened } from '../../support/capsules.ts'
import { contextOf } from '../../support/translation.ts'

const TEXT: ResponsePart = { type: 'text' }
const call = (id: string, more: object = {}): ResponsePart => ({ type: 'tool_call', id, name: 'look', isFreeform: false, opaque: null, ...more })
const stop = (reason: StopReason, explanation: string | null = null): ResponseEvent => ({ type: 'stop', reason, sequence: null, explanation })

function bodyOf(parts: readonly [ResponsePart, string][], reason: StopReason = 'end', usage: Partial<TokenUsage> | null = null, explanation: string | null = null): JsonObject {
  return writeChatBody({
    id: null, model: null, parts: parts.map(([part, text]) => ({ part, text, opaque: null })), stop: { type: 'stop', reason, sequence: null, explanation }, usage: usage && { ...NO_USAGE, ...usage },
  }, contextOf('chat'))
}
const choiceOf = (body: JsonObject) => (body['choices'] as JsonObject[])[0] ?? {}
const messageOf = (body: JsonObject) => choiceOf(body)['message'] as JsonObject

/** The chunks of a stream, and `[DONE]`. */
function streamOf(request: JsonObject, ...events: readonly ResponseEvent[]): (JsonObject | string)[] {
  const writer = new ChatResponseWriter(contextOf('chat', request))
  const text = events.map(event => writer.write(event)).join('')
  return text.split('\n\n').filter(line => line !== '').map(line => (line === 'data: [DONE]' ? '[DONE]' : JSON.parse(line.slice('data: '.length)) as JsonObject))
}
const deltasOf = (...events: readonly ResponseEvent[]) => streamOf({}, ...events).map(chunk => typeof chunk === 'string' ? chunk : choiceOf(chunk)['delta'])

for (const [reason, expected] of [
  ['end', 'stop'], ['max_tokens', 'length'], ['context_window', 'length'], ['stop_sequence', 'stop'], ['tool_calls', 'tool_calls'], ['refusal', 'content_filter'], ['content_filter', 'content_filter'], ['pause', 'stop'],
] as const) {
  t.test(`a chat response that ends by ${reason} has the finish_reason ${expected}`, async t => {
    t.equal(choiceOf(bodyOf([], reason))['finish_reason'], expected)
    t.match(streamOf({}, stop(reason)), [{ choices: [{ finish_reason: expected }] }])
  })
}

t.test('texts are joined, and without text the content is null', async t => {
  t.match(messageOf(bodyOf([[TEXT, 'a'], [{ type: 'thinking' }, 'Hm'], [TEXT, 'b'], [{ type: 'thinking' }, '.']])), { role: 'assistant', content: 'ab', refusal: null, reasoning_content: 'Hm.' })
  const empty = messageOf(bodyOf([]))
  t.equal(empty['content'], null)
  t.notOk('reasoning_content' in empty || 'tool_calls' in empty)
  t.match(bodyOf([]), { id: 'chatcmpl-unique', object: 'chat.completion', created: 1_700_000_000, model: 'client-model' })
})

t.test('a refusal with a refusal part ends with stop, and a refusal without a refusal part ends with content_filter', async t => {
  const refused = bodyOf([[{ type: 'refusal' }, 'No']], 'refusal', null, 'why')
  t.match(refused, { choices: [{ message: { refusal: 'No' }, finish_reason: 'stop' }] })
  t.match(bodyOf([], 'refusal', null, 'why'), { choices: [{ message: { refusal: 'why' }, finish_reason: 'content_filter' }] })
  t.equal(messageOf(bodyOf([], 'end', null, 'why'))['refusal'], null)
  const part: ResponseEvent = { type: 'part_start', index: 0, part: { type: 'refusal' } }
  t.match(streamOf({}, part, { type: 'delta', index: 0, text: 'No' }, stop('refusal', 'why')), [{ choices: [{ delta: { refusal: 'No' } }] }, { choices: [{ delta: {}, finish_reason: 'stop' }] }])
  t.strictSame(deltasOf(stop('refusal', 'why')), [{ refusal: 'why' }, {}])
  t.strictSame(deltasOf(stop('content_filter', 'why')), [{}])
})

const USAGES: readonly (readonly [what: string, usage: Partial<TokenUsage>, expected: object | undefined])[] = [
  ['nothing', {}, undefined],
  ['a reported 0', { output: 0 }, { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0, prompt_tokens_details: { cached_tokens: 0 }, completion_tokens_details: { reasoning_tokens: 0 } }],
  ['all counts', { input: 10, cachedInput: 4, cacheWrite: 2, output: 5, reasoning: 3 }, {
    prompt_tokens: 10, completion_tokens: 5, total_tokens: 15, prompt_tokens_details: { cached_tokens: 4, cache_write_tokens: 2 }, completion_tokens_details: { reasoning_tokens: 3 },
  }],
]

for (const [what, usage, expected] of USAGES) {
  t.test(`the usage of a chat response has ${what}`, async t => t.strictSame(bodyOf([], 'end', usage)['usage'], expected))
}

t.test('calls have an index, an id and arguments that can be parsed', async t => {
  const body = bodyOf([[call('call_1'), ''], [call(''), '{"a":1}'], [call('call_3', { isFreeform: true }), '']])
  t.strictSame(messageOf(body)['tool_calls'], [
    { id: 'call_1', type: 'function', function: { name: 'look', arguments: '{}' } }, { id: 'call_unique1', type: 'function', function: { name: 'look', arguments: '{"a":1}' } }, { id: 'call_3', type: 'custom', custom: { name: 'look', input: '' } },
  ])
  t.strictSame(deltasOf(
    { type: 'part_start', index: 0, part: call('call_1') }, { type: 'part_start', index: 1, part: call('call_2') }, { type: 'delta', index: 1, text: '{"a"' }, { type: 'part_end', index: 0, opaque: null },
    { type: 'delta', index: 1, text: ':1}' }, { type: 'part_end', index: 1, opaque: null },
  ), [
    { tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'look', arguments: '' } }] }, { tool_calls: [{ index: 1, id: 'call_2', type: 'function', function: { name: 'look', arguments: '' } }] },
    { tool_calls: [{ index: 1, function: { arguments: '{"a"' } }] }, { tool_calls: [{ index: 0, function: { arguments: '{}' } }] }, { tool_calls: [{ index: 1, function: { arguments: ':1}' } }] },
  ])
})

t.test('the thinking before a call is sealed in the id of the call', async t => {
  const [first, second] = messageOf(bodyOf([[{ type: 'thinking' }, 'Hm'], [call('call_1', { opaque: { provider: 'p', value: 'sig' } }), '{}'], [call('call_2'), '{}']]))['tool_calls'] as JsonObject[]
  t.match(opened('tool_id', first?.['id']), { id: 'call_1', opaque: { provider: 'p', value: 'sig' } })
  t.equal(second?.['id'], 'call_2')
})

t.test('the usage chunk is sent only if the client asks for it and usage is known', async t => {
  const usage: ResponseEvent = { type: 'usage', usage: { ...NO_USAGE, input: 7, output: 3 } }
  const asked = { stream: true, stream_options: { include_usage: true } }
  const start: ResponseEvent = { type: 'start', id: 'a', model: 'm', usage: null }
  t.match(streamOf(asked, start, usage, { type: 'end' }), [{ id: 'a', usage: null }, { id: 'a', model: 'm', choices: [], usage: { prompt_tokens: 7, total_tokens: 10 } }, '[DONE]'])
  t.strictSame(streamOf({}, usage, { type: 'end' }), ['[DONE]'])
  t.strictSame(streamOf(asked, { type: 'end' }), ['[DONE]'])
  t.notOk('usage' in (streamOf({}, start)[0] as JsonObject))
})

t.test('a stream has one role and one finish_reason', async t => {
  t.strictSame(deltasOf({ type: 'start', id: 'a', model: null, usage: null }, stop('end'), stop('max_tokens')), [{ role: 'assistant', content: '' }, {}])
  t.strictSame(deltasOf({ type: 'ping' }, { type: 'delta', index: 5, text: 'of no part' }), [])
})
