import t from 'tap'
import { endpointNamed } from '../endpoint-named.ts'
import { readableMeter } from '../../support/readable-meter.ts'

function metered(...events: readonly object[]) {
  const meter = readableMeter(endpointNamed('generate.stream'))
  for (const event of events) meter.push(Buffer.from(`data: ${JSON.stringify(event)}\r\n\r\n`))
  return meter
}

const chunk = (parts: readonly object[], candidate: object = {}) => ({ candidates: [{ content: { parts, role: 'model' }, ...candidate }] })
const END = { finishReason: 'STOP' }

const TEXTS: readonly (readonly [what: string, parts: readonly object[], content: number, reasoning: number, tool: number])[] = [
  ['text', [{ text: 'four' }], 4, 0, 0], ['a thought', [{ text: 'four', thought: true }], 0, 4, 0], ['no thought', [{ thought: false, text: 'four' }], 4, 0, 0], ['several parts', [{ text: 'four' }, { text: 'two' }], 7, 0, 0],
  ['arguments', [{ functionCall: { name: 'look', args: { a: 1 } } }], 0, 0, 7], ['code', [{ executableCode: { code: '1+1' } }], 0, 0, 3], ['an image', [{ inlineData: { data: 'AAAA' } }], 0, 0, 0], ['nothing', [], 0, 0, 0],
]

for (const [what, parts, content, reasoning, tool] of TEXTS) {
  t.test(`the bytes of a Gemini stream are counted: ${what}`, async t => t.match(metered(chunk(parts)).generatedBytes, { content, reasoning, tool }))
}

const ENDS: readonly (readonly [what: string, events: readonly object[], expected: boolean])[] = [
  ['nothing', [], false], ['text', [chunk([{ text: 'a' }])], false], ['a finishReason', [chunk([{ text: 'a' }], END)], true], ['a finishReason by number', [chunk([], { finishReason: 1 })], true], ['an unspecified one', [chunk([], { finishReason: 'FINISH_REASON_UNSPECIFIED' })], false],
  ['an unspecified number', [chunk([], { finishReason: 0 })], false], ['an empty one', [chunk([], { finishReason: '' })], false], ['more text after it', [chunk([], END), chunk([{ text: 'a' }])], false],
  ['one of two candidates', [chunk([], { index: 1 }), chunk([], END)], false], ['both candidates', [{ candidates: [{ index: 0, ...END }, { index: 1, ...END }] }], true],
  ['a blocked prompt', [{ promptFeedback: { blockReason: 'SAFETY' } }], true], ['an unspecified block', [{ promptFeedback: { blockReason: 'BLOCK_REASON_UNSPECIFIED' } }], false],
]

for (const [what, events, expected] of ENDS) {
  t.test(`a Gemini stream with ${what} is ${expected ? 'complete' : 'not complete'}`, async t => t.equal(metered(...events).terminated, expected))
}

t.test('an array is complete once it is closed, and a single object is not a stream', async t => {
  const read = (text: string) => {
    const meter = readableMeter(endpointNamed('generate.stream'))
    meter.push(Buffer.from(text))
    return meter.terminated
  }
  const last = JSON.stringify(chunk([{ text: 'a' }], END))
  t.equal(read(`[${last}`), false)
  t.equal(read(`[${last}]`), true)
  t.equal(read(`[${JSON.stringify(chunk([]))}]`), false)
  t.equal(read(last), null)
})

t.test('the last usage counts, and the output is reported only if the last usage has an output count', async t => {
  const first = { ...chunk([{ text: 'four' }]), usageMetadata: { promptTokenCount: 5, totalTokenCount: 5 } }
  const meter = metered(first)
  t.equal(meter.isOutputReported, false)
  t.match(meter.reading()?.usage, { inputTokens: 5, outputTokens: null })
  const whole = metered(first, { ...chunk([], END), usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 2, thoughtsTokenCount: 3, totalTokenCount: 10 } })
  t.equal(whole.isOutputReported, true)
  t.match(whole.reading()?.usage, { inputTokens: 5, outputTokens: 5, reasoningTokens: 3 })
})

t.test('an absent count is 0 only at the end of a response without output', async t => {
  const usageMetadata = { promptTokenCount: 5, totalTokenCount: 5 }
  t.equal(metered({ ...chunk([], END), usageMetadata }).reading()?.usage.outputTokens, 0)
  t.equal(metered({ ...chunk([]), usageMetadata }).reading()?.usage.outputTokens, null)
  t.equal(metered({ ...chunk([{ text: 'a' }], END), usageMetadata }).reading()?.usage.outputTokens, null)
  t.equal(metered({ ...chunk([{ functionCall: { name: 'a' } }], END), usageMetadata }).reading()?.usage.outputTokens, null)
})

t.test('the output tokens of an image cannot be counted, and an error is recognized', async t => {
  t.equal(metered(chunk([{ text: 'a' }])).uncountable, false)
  t.equal(metered(chunk([{ inlineData: { data: 'AAAA' } }])).uncountable, true)
  t.equal(metered({ error: { code: 503 } }).sawError, true)
  t.equal(metered(chunk([])).sawError, false)
  t.equal(metered(chunk([{ functionCall: {} }])).sawContent, true)
})

t.test('an incomplete last event is not counted', async t => {
  const meter = readableMeter(endpointNamed('generate.stream'))
  meter.push(Buffer.from('data: {"candidates":[{"content":{"parts":[{"text":"four'))
  meter.end()
  t.match(meter.generatedBytes, { content: 0 })
})
