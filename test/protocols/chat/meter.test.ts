import t from 'tap'
import { endpointNamed } from '../endpoint-named.ts'
import { readableMeter } from '../../support/readable-meter.ts'

function metered(...events: readonly (object | string)[]) {
  const meter = readableMeter(endpointNamed('chat.completions'))
  for (const event of events) meter.push(Buffer.from(`data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`))
  return meter
}

const chunk = (delta: object, choice: object = {}) => ({ choices: [{ index: 0, delta, ...choice }] })

const TEXTS: readonly (readonly [what: string, event: object, content: number, reasoning: number, tool: number])[] = [
  ['text', chunk({ content: 'four' }), 4, 0, 0], ['text of legacy completions', { choices: [{ text: 'four' }] }, 4, 0, 0], ['a refusal', chunk({ refusal: 'four' }), 4, 0, 0], ['reasoning', chunk({ reasoning_content: 'four' }), 0, 4, 0],
  ['reasoning under two names', chunk({ reasoning_content: 'four', reasoning: 'four' }), 0, 4, 0], ['an empty reasoning before another', chunk({ reasoning_content: '', reasoning: 'four' }), 0, 4, 0],
  ['parts of text', chunk({ content: [{ type: 'text', text: 'four' }, 5, { text: 'two' }] }), 7, 0, 0], ['parts of thinking', chunk({ content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'four' }] }] }), 0, 4, 0],
  ['arguments', chunk({ tool_calls: [{ index: 0, function: { name: 'not counted', arguments: 'four' } }] }), 0, 0, 4], ['a call that is none', chunk({ tool_calls: [5, { function: { arguments: 'four' } }] }), 0, 0, 4], ['input of a custom tool', chunk({ tool_calls: [{ custom: { input: 'four' } }] }), 0, 0, 4], ['a function call', chunk({ function_call: { arguments: 'four' } }), 0, 0, 4],
  ['a transcript', chunk({ audio: { transcript: 'four' } }), 4, 0, 0], ['a role', chunk({ role: 'assistant', content: null }), 0, 0, 0], ['a text as it is on the wire', chunk({ content: 'é"' }), 4, 0, 0], ['content that is no text', chunk({ content: { a: [1] }, refusal: 'four' }), 4, 0, 0], ['choices that are no list', { choices: { delta: { content: 'four' } } }, 0, 0, 0],
]

for (const [what, event, content, reasoning, tool] of TEXTS) {
  t.test(`the bytes of a chat stream are counted: ${what}`, async t => t.match(metered(event).generatedBytes, { content, reasoning, tool }))
}

const ENDS: readonly (readonly [what: string, events: readonly (object | string)[], terminated: boolean, hasEnd: boolean])[] = [
  ['[DONE]', [chunk({}), '[DONE]'], true, false], ['[DONE] and white space', ['  [DONE] \t'], true, false], ['a finish_reason', [chunk({ content: 'a' }), chunk({}, { finish_reason: 'stop' })], false, true], ['an empty finish_reason', [chunk({}, { finish_reason: '' })], false, false],
  ['a finish_reason of null', [chunk({}, { finish_reason: null })], false, false], ['one of two choices', [chunk({}, { index: 1 }), chunk({}, { finish_reason: 'stop' })], false, false],
  ['both choices', [chunk({}, { index: 1, finish_reason: 'stop' }), chunk({}, { finish_reason: 'stop' })], false, true], ['[DONE] in a text', [chunk({ content: '[DONE]' })], false, false], ['nothing', [], false, false],
]

for (const [what, events, terminated, hasEnd] of ENDS) {
  t.test(`a chat stream with ${what} ${terminated ? 'is complete' : hasEnd ? 'lacks only [DONE]' : 'is not complete'}`, async t => {
    const meter = metered(...events)
    t.equal(meter.terminated, terminated)
    t.equal(meter.missingEnd?.toString() ?? null, hasEnd ? 'data: [DONE]\n\n' : null)
  })
}

for (const [what, event] of [
  ['in the chunk', { choices: [], usage: { prompt_tokens: 5, completion_tokens: 2 } }], ['in x_groq', { choices: [], x_groq: { id: 'a', usage: { prompt_tokens: 5, completion_tokens: 2 } } }],
  ['in a choice', chunk({}, { usage: { prompt_tokens: 5, completion_tokens: 2 } })],
] as const) {
  t.test(`the usage of a chat stream is read ${what}`, async t => {
    const meter = metered(chunk({ content: 'four' }), event)
    t.match(meter.reading()?.usage, { inputTokens: 5, outputTokens: 2 })
    t.equal(meter.isOutputReported, true)
  })
}

t.test('output is not reported if the usage is null, or if text follows the usage', async t => {
  t.equal(metered({ ...chunk({ content: 'a' }), usage: null }).isOutputReported, false)
  t.equal(metered({ choices: [], usage: { prompt_tokens: 5, completion_tokens: 2 } }, chunk({ content: 'more' })).isOutputReported, false)
})

t.test('the tokens of an image or audio cannot be counted', async t => {
  t.equal(metered(chunk({ content: 'a' })).uncountable, false)
  t.equal(metered(chunk({ images: [{}] })).uncountable, true)
  t.equal(metered(chunk({ images: [] })).uncountable, false)
  t.equal(metered(chunk({ audio: { data: 'AAAA' } })).uncountable, true)
})

t.test('a service tier and an error are recognized', async t => {
  t.equal(metered({ service_tier: 'flex', choices: [] }).serviceTier, 'flex')
  t.equal(metered({ error: { message: 'x' } }).sawError, true)
  t.equal(metered({ error: null, choices: [] }).sawError, false)
})

t.test('sawContent is true from the first text or call', async t => {
  t.equal(metered(chunk({ role: 'assistant', content: '' })).sawContent, false)
  t.equal(metered(chunk({ content: 'a' })).sawContent, true)
  t.equal(metered(chunk({ tool_calls: [{ index: 0, function: { name: 'look' } }] })).sawContent, true)
})
