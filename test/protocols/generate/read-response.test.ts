import fc from 'fast-check'
import t from 'tap'
import type { JsonObject } from '../../../src/protocols/neutral/json.ts'
import { StreamTranslator } from '../../../src/protocols/neutral/translate/translate-response.ts'
import { opened } from '../../support/capsules.ts'
import { PROVIDER, bodyBetween, clientSide, contextOf, dataOf, sse, streamBetween, upstreamSide } from '../../support/translation.ts'

const chunk = (parts: JsonObject[], more: JsonObject = {}, usageMetadata: JsonObject = { promptTokenCount: 10 }): JsonObject => ({
  candidates: [{ content: { role: 'model', parts }, index: 0, ...more }], usageMetadata, modelVersion: 'gemini-3-pro', responseId: 'r1',
})
const LAST = { promptTokenCount: 10, cachedContentTokenCount: 4, candidatesTokenCount: 5, thoughtsTokenCount: 3, totalTokenCount: 18 }
const UPSTREAM = [
  chunk([{ text: 'Hm', thought: true }]), chunk([{ text: 'm.', thought: true }]), chunk([{ text: 'I ' }]), chunk([{ text: 'look.' }]),
  chunk([{ functionCall: { name: 'f', args: { x: 'ü' } }, thoughtSignature: 'SIG' }, { functionCall: { name: 'g', args: {} } }]),
  chunk([{ text: '', thoughtSignature: 'END' }], { finishReason: 'STOP' }, LAST),
]

/** Translates a stream of a generate upstream, which has no last event. */
function whole(to: string, upstream: readonly JsonObject[], body: JsonObject = {}): string {
  const translator = new StreamTranslator(clientSide(to), upstreamSide('generate'), contextOf(to, body), PROVIDER)
  for (const event of upstream) translator.event('', event)
  translator.end()
  return translator.take().toString()
}

t.test('a Gemini stream becomes a message: thinking, text, parallel calls, signatures, usage', async t => {
  const events = dataOf(whole('messages', UPSTREAM))
  const starts = events.filter(({ type }) => type === 'content_block_start').map(event => event['content_block'] as JsonObject)
  t.match(starts, [{ type: 'thinking' }, { type: 'text' }, { type: 'tool_use', name: 'f' }, { type: 'tool_use', name: 'g' }, { type: 'redacted_thinking' }])
  t.strictSame(opened('tool_id', starts[2]?.['id'])?.opaque, { provider: PROVIDER, value: 'SIG' })
  t.strictSame(opened('opaque_value', starts[4]?.['data'])?.opaque, { provider: PROVIDER, value: 'END' }, 'a signature in a separate part')
  t.not(starts[2]?.['id'], starts[3]?.['id'])
  t.match(events[0], { message: { usage: { input_tokens: 10 } } }, 'usage that is known at the start')
  t.match(events.at(-2), { delta: { stop_reason: 'tool_use' }, usage: { input_tokens: 6, cache_read_input_tokens: 4, output_tokens: 8, output_tokens_details: { thinking_tokens: 3 } } })
  t.match(events.at(-1), { type: 'message_stop' })
})

t.test('a Gemini body becomes a message', async t => {
  const response = bodyBetween('messages', 'generate', { ...chunk(UPSTREAM.flatMap(({ candidates }) => (candidates as { content: { parts: JsonObject[] } }[])[0]?.content.parts ?? []), { finishReason: 'STOP' }), usageMetadata: LAST })
  t.match(response, { stop_reason: 'tool_use', content: [{ type: 'thinking', thinking: 'Hmm.' }, { text: 'I look.' }, { name: 'f', input: { x: 'ü' } }, { name: 'g' }, { type: 'redacted_thinking' }] })
})

t.test('a blocked prompt and a filtered response have a stop reason in each protocol', async t => {
  t.match(bodyBetween('chat', 'generate', { promptFeedback: { blockReason: 'SAFETY' } }), { choices: [{ finish_reason: 'content_filter' }] })
  t.match(bodyBetween('messages', 'generate', chunk([], { finishReason: 'SAFETY', finishMessage: 'Unsafe.' })), { stop_reason: 'refusal', stop_details: { explanation: 'Unsafe.' } })
})

t.test('a finishReason in each chunk ends the stream once', async t => {
  const events = dataOf(whole('chat', [chunk([{ text: 'a' }], { finishReason: 'STOP' }), chunk([{ text: 'b' }], { finishReason: 'STOP' })]))
  t.strictSame(events.map(event => (event['choices'] as JsonObject[])[0]).filter(choice => choice?.['finish_reason'] !== null).length, 1)
})

t.test('an error in mid-stream is translated, also if it is inside a list', async t => {
  const events = dataOf(whole('messages', [chunk([{ text: 'a' }]), { error: { code: 503, message: 'overloaded', status: 'UNAVAILABLE' } }]))
  t.match(events.at(-1), { type: 'error', error: { type: 'overloaded_error', message: 'overloaded' } })
  t.match(upstreamSide('generate').readError(400, [{ error: { code: 400, message: 'bad', status: 'INVALID_ARGUMENT' } }]), { message: 'bad', status: 400 })
})

const CHAT = [
  { delta: { role: 'assistant', reasoning_content: 'Hm.' } }, { delta: { content: 'I look.' } },
  { delta: { tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'f', arguments: '{"x":"' } }] } },
  { delta: { tool_calls: [{ index: 1, id: 'call_2', type: 'function', function: { name: 'g', arguments: '' } }] } },
  { delta: { tool_calls: [{ index: 0, function: { arguments: 'ü"}' } }] } }, { delta: {}, finish_reason: 'tool_calls' },
].map(choice => ({ id: 'c1', model: 'm', choices: [{ index: 0, finish_reason: null, ...choice }] }))
const USAGE = { id: 'c1', model: 'm', choices: [], usage: { prompt_tokens: 10, completion_tokens: 8, prompt_tokens_details: { cached_tokens: 4 }, completion_tokens_details: { reasoning_tokens: 3 } } }

t.test('a chat stream becomes a Gemini stream with complete calls and separate thoughts', async t => {
  const events = dataOf(streamBetween('generate', 'chat', [sse(...CHAT, USAGE, '[DONE]')]))
  const parts = events.flatMap(event => (event['candidates'] as [{ content: { parts: JsonObject[] } }])[0].content.parts)
  t.match(parts, [{ text: 'Hm.', thought: true }, { text: 'I look.' }, { functionCall: { id: 'call_1', name: 'f', args: { x: 'ü' } } }, { functionCall: { id: 'call_2', name: 'g', args: {} } }, { text: '' }])
  t.match(events.at(-1), {
    candidates: [{ finishReason: 'STOP' }], modelVersion: 'm', responseId: 'c1',
    usageMetadata: { promptTokenCount: 10, cachedContentTokenCount: 4, candidatesTokenCount: 5, thoughtsTokenCount: 3, totalTokenCount: 18 },
  })
})

t.test('property: the stream does not depend on the chunk boundaries', async t => {
  const bytes = sse(...CHAT, USAGE, '[DONE]')
  const expected = streamBetween('generate', 'chat', [bytes])
  fc.assert(fc.property(fc.array(fc.nat(bytes.length), { maxLength: 8 }), cuts => {
    const at = [0, ...cuts.toSorted((a, b) => a - b), bytes.length]
    t.equal(streamBetween('generate', 'chat', at.slice(1).map((end, n) => bytes.subarray(at[n], end))), expected)
  }), { numRuns: 30 })
})

t.test('without alt=sse the stream is one JSON array', async t => {
  const translator = new StreamTranslator(clientSide('generate'), upstreamSide('chat'), { ...contextOf('generate'), isEventStream: false }, PROVIDER)
  for (const event of [...CHAT, USAGE, undefined]) translator.event('', event)
  t.match((JSON.parse(translator.take().toString()) as JsonObject[]).at(-1), { usageMetadata: { totalTokenCount: 18 } })
})
