import t from 'tap'
import { GenerateResponseWriter, writeGenerateBody, writeGenerateError } from '../../../src/protocols/generate/write-response.ts'
import type { JsonObject } from '../../../src/protocols/neutral/json.ts'
import { NO_USAGE } from '../../../src/protocols/neutral/response.ts'
import type { NeutralError, ResponseEvent, ResponsePart, StopReason, TokenUsage } from '../../../src/protocols/neutral/response.ts'
import { opened } from '../../support/capsules.ts'
import { contextOf, dataOf } from '../../support/translation.ts'

const CONTEXT = contextOf('generate')
const TEXT: ResponsePart = { type: 'text' }
const opaque = { provider: 'p', value: 'sig' }
const call = (id: string, more: object = {}): ResponsePart => ({ type: 'tool_call', id, name: 'look', isFreeform: false, opaque: null, ...more })
const stop = (reason: StopReason = 'end'): ResponseEvent => ({ type: 'stop', reason, sequence: null, explanation: null })

const bodyOf = (parts: readonly [ResponsePart, string][], reason: StopReason = 'end', usage: Partial<TokenUsage> | null = null) =>
  writeGenerateBody({ id: 'r', model: 'm', parts: parts.map(([part, text]) => ({ part, text, opaque: null })), stop: { type: 'stop', reason, sequence: null, explanation: null }, usage: usage && { ...NO_USAGE, ...usage } }, CONTEXT)
const candidateOf = (body: JsonObject) => (body['candidates'] as JsonObject[])[0] ?? {}
const partsOf = (body: JsonObject) => (candidateOf(body)['content'] as JsonObject)['parts'] as JsonObject[]

function textOf(isEventStream: boolean, ...events: readonly ResponseEvent[]): string {
  const writer = new GenerateResponseWriter({ ...CONTEXT, isEventStream })
  return events.map(event => writer.write(event)).join('')
}

for (const [reason, expected] of [
  ['end', 'STOP'], ['max_tokens', 'MAX_TOKENS'], ['context_window', 'MAX_TOKENS'], ['stop_sequence', 'STOP'], ['tool_calls', 'STOP'], ['refusal', 'SAFETY'], ['content_filter', 'SAFETY'], ['pause', 'STOP'],
] as const) {
  t.test(`a response that ends by ${reason} has the finishReason ${expected}`, async t => {
    t.equal(candidateOf(bodyOf([], reason))['finishReason'], expected)
    t.match(dataOf(textOf(true, stop(reason), { type: 'end' })), [{ candidates: [{ finishReason: expected }] }])
  })
}

const USAGES: readonly (readonly [what: string, usage: Partial<TokenUsage>, expected: object | undefined])[] = [
  ['nothing', {}, undefined],
  ['input alone', { input: 7 }, { promptTokenCount: 7, candidatesTokenCount: 0, totalTokenCount: 7 }],
  ['thoughts beside the candidates', { input: 7, cachedInput: 2, output: 5, reasoning: 3 }, { promptTokenCount: 7, cachedContentTokenCount: 2, thoughtsTokenCount: 3, candidatesTokenCount: 2, totalTokenCount: 12 }],
  ['output alone', { output: 5 }, { promptTokenCount: 0, candidatesTokenCount: 5, totalTokenCount: 5 }],
  ['more thoughts than output', { output: 5, reasoning: 8 }, { promptTokenCount: 0, thoughtsTokenCount: 8, candidatesTokenCount: 0, totalTokenCount: 5 }],
]

for (const [what, usage, expected] of USAGES) {
  t.test(`the usage of a response has ${what}`, async t => t.strictSame(bodyOf([], 'end', usage)['usageMetadata'], expected))
}

t.test('parts keep their order, and empty texts are left out', async t => {
  const body = bodyOf([[TEXT, 'a'], [TEXT, ''], [{ type: 'refusal' }, 'No'], [call('call_1'), '{"a":1}'], [call(''), ''], [{ type: 'image', mediaType: 'image/png', data: 'AAAA' }, '']])
  t.strictSame(partsOf(body), [
    { text: 'a' }, { text: 'No' }, { functionCall: { id: 'call_1', name: 'look', args: { a: 1 } } }, { functionCall: { name: 'look', args: {} } }, { inlineData: { mimeType: 'image/png', data: 'AAAA' } },
  ])
  t.match(body, { modelVersion: 'm', responseId: 'r', candidates: [{ index: 0, content: { role: 'model' } }] })
})

t.test('the thinking before a call is sealed in the signature of the call', async t => {
  const [thought, called] = partsOf(bodyOf([[{ type: 'thinking' }, 'Hm'], [call('a', { opaque }), '{}']]))
  t.strictSame(thought, { text: 'Hm', thought: true })
  t.match(opened('opaque_value', called?.['thoughtSignature']), { opaque })
})

t.test('a stream has one chunk for each text and one chunk for each complete call', async t => {
  const chunks = dataOf(textOf(true,
    { type: 'start', id: null, model: null, usage: null }, { type: 'part_start', index: 0, part: { type: 'thinking' } }, { type: 'delta', index: 0, text: 'Hm' }, { type: 'part_end', index: 0, opaque: null },
    { type: 'part_start', index: 1, part: TEXT }, { type: 'delta', index: 1, text: 'Hi' }, { type: 'part_end', index: 1, opaque: null },
    { type: 'part_start', index: 2, part: call('a') }, { type: 'delta', index: 2, text: '{"a"' }, { type: 'delta', index: 2, text: ':1}' }, { type: 'part_end', index: 2, opaque: null },
    { type: 'usage', usage: { ...NO_USAGE, input: 1, output: 2 } }, stop('tool_calls'), { type: 'end' }))
  t.match(chunks.map(partsOf), [[{ text: 'Hm', thought: true }], [{ text: 'Hi' }], [{ functionCall: { id: 'a', args: { a: 1 } } }], [{ text: '' }]])
  t.match(chunks.at(-1), { modelVersion: 'client-model', responseId: 'unique', usageMetadata: { totalTokenCount: 3 }, candidates: [{ finishReason: 'STOP' }] })
  t.equal(chunks.length, 4)
})

t.test('a stream that is not sent as events is one JSON array', async t => {
  const start: ResponseEvent = { type: 'part_start', index: 0, part: TEXT }
  const text = textOf(false, start, { type: 'delta', index: 0, text: 'a' }, { type: 'delta', index: 0, text: 'b' }, stop(), { type: 'end' })
  t.match((JSON.parse(text) as JsonObject[]).map(partsOf), [[{ text: 'a' }], [{ text: 'b' }], [{ text: '' }]])
  const broken = JSON.parse(textOf(false, start, { type: 'delta', index: 0, text: 'a' }, { type: 'error', error: { kind: 'server', status: 500, message: 'broken', code: null, param: null } })) as JsonObject[]
  t.match(broken, [{ candidates: [{}] }, { error: { message: 'broken' } }])
})

t.test('arguments of open calls are held up to 16 MiB', async t => {
  const writer = new GenerateResponseWriter(CONTEXT)
  const begin = (index: number) => writer.write({ type: 'part_start', index, part: call(`call_${index}`) })
  const half = 'x'.repeat(8 * 1024 * 1024)
  begin(0)
  writer.write({ type: 'delta', index: 0, text: half })
  writer.write({ type: 'part_end', index: 0, opaque: null })
  begin(1)
  begin(2)
  writer.write({ type: 'delta', index: 1, text: half })
  writer.write({ type: 'delta', index: 2, text: half })
  t.throws(() => writer.write({ type: 'delta', index: 2, text: 'x' }), { message: 'the arguments of the tool calls are too long' })
})

t.test('a stream without a stop event has no last chunk', async t => t.equal(textOf(true, { type: 'end' }, { type: 'ping' }), ''))

t.test('an error has a status for its kind, and a reason if the error has a code', async t => {
  const error: NeutralError = { kind: 'rate_limit', status: 429, message: 'slow down', code: null, param: null }
  t.strictSame(writeGenerateError(error), { error: { code: 429, message: 'slow down', status: 'RESOURCE_EXHAUSTED' } })
  t.match(writeGenerateError({ ...error, code: 'quota_exceeded' }), { error: { details: [{ reason: 'QUOTA_EXCEEDED', domain: 'model-gateway' }] } })
})
