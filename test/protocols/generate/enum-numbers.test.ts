import t from 'tap'
import { createStreamMeter } from '../../../src/protocols/endpoint/create-stream-meter.ts'
import { classifyPath } from '../../../src/protocols/classify-path.ts'
import type { JsonObject } from '../../../src/protocols/neutral/json.ts'
import { bodyBetween, dataOf, requestBetween, sse, streamBetween } from '../../support/translation.ts'

/*
 * Google's enums are words, or numbers where the client asks for `$alt=json;enum-encoding=int`.
 */

const candidate = (finishReason: unknown, text = 'Hi'): JsonObject => ({ candidates: [{ content: { parts: text === '' ? [] : [{ text }] }, finishReason, index: 0 }] })

const REASONS: readonly (readonly [given: unknown, text: string, stop: string])[] = [
  ['STOP', 'Hi', 'end_turn'], [1, 'Hi', 'end_turn'], [1, '', 'end_turn'], [2, 'Hi', 'max_tokens'], ['MAX_TOKENS', '', 'max_tokens'],
  [3, 'Hi', 'refusal'], [8, '', 'refusal'], [14, '', 'refusal'], ['MODEL_ARMOR', '', 'refusal'], ['IMAGE_PROHIBITED_CONTENT', '', 'refusal'],
  ['NEWER_REASON', '', 'refusal'], ['NEWER_REASON', 'Hi', 'end_turn'], [99, '', 'refusal'], [99, 'Hi', 'end_turn'], ['MALFORMED_FUNCTION_CALL', '', 'refusal'],
]
for (const [given, text, stop] of REASONS) {
  t.test(`finishReason ${String(given)} with ${text === '' ? 'no' : 'a'} text becomes ${stop}`, async t => {
    t.match(bodyBetween('messages', 'generate', candidate(given, text)), { stop_reason: stop })
    const stream = streamBetween('messages', 'generate', [sse(candidate(undefined, text), candidate(given, ''))], {}, true)
    t.match(dataOf(stream).at(-2), { type: 'message_delta', delta: { stop_reason: stop } })
  })
}

t.test('a blocked prompt is recognized by the name or the number of its reason', async t => {
  for (const blockReason of ['SAFETY', 1, 4, 99]) t.match(bodyBetween('chat', 'generate', { promptFeedback: { blockReason } }), { choices: [{ finish_reason: 'content_filter' }] })
})

for (const [what, reason, isWhole] of [['a number', 1, true], ['a word', 'STOP', true], ['zero', 0, false], ['null', null, false]] as const) {
  t.test(`a stream whose finishReason is ${what} is ${isWhole ? 'complete' : 'cut'}`, async t => {
    const meter = createStreamMeter(classifyPath('/v1beta/models/m:streamGenerateContent').endpoint, { contentType: 'text/event-stream' })
    const reader = meter.createReader(meter)
    reader.push(sse(candidate(reason)))
    reader.end()
    t.equal(meter.terminated, isWhole)
  })
}

t.test('schema types and the calling mode of a request can be numbers', async t => {
  const { body } = requestBetween('generate', 'chat', {
    contents: [{ parts: [{ text: 'Hi' }] }], toolConfig: { functionCallingConfig: { mode: 2 } },
    tools: [{ functionDeclarations: [{ name: 'look', parameters: { type: 6, properties: { at: { type: 1 }, n: { type: 3, nullable: true }, all: { type: 5, items: { type: 4 } } } } }] }],
  })
  t.match(body, {
    tool_choice: 'required',
    tools: [{ function: { parameters: { type: 'object', properties: { at: { type: 'string' }, n: { type: ['integer', 'null'] }, all: { type: 'array', items: { type: 'boolean' } } } } } }],
  })
})
