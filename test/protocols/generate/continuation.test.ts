import t from 'tap'
import { GenerateStreamProtocol, generateObstacle, generateText } from '../../../src/protocols/generate/continuation.ts'
import { spliceBytes } from '../../../src/protocols/json/splice.ts'

const CONTENTS = [{ parts: [{ text: 'Hi' }] }]
const PRIOR = { inputTokens: 10, cachedInputTokens: 3, cacheWrite5mTokens: null, cacheWrite1hTokens: null, outputTokens: 4 }
const chunk = (parts: readonly object[], candidate: object = {}, more: object = {}) => ({ candidates: [{ content: { role: 'model', parts }, ...candidate }], ...more })

for (const [config, expected] of [
  [{}, null], [{ candidateCount: 1 }, null], [{ candidateCount: 2 }, 'several answers were asked for'], [{ candidate_count: '2' }, 'several answers were asked for'], [{ responseMimeType: 'text/plain' }, null],
  [{ responseMimeType: 'application/json' }, 'structured output was asked for'], [{ response_mime_type: 'application/json' }, 'structured output was asked for'], [{ responseSchema: null, responseMimeType: 'text/plain' }, null],
  [{ responseSchema: { type: 'STRING' } }, 'structured output was asked for'], [{ response_json_schema: { type: 'string' } }, 'structured output was asked for'], [{ responseLogprobs: true }, 'log probabilities were asked for'],
  [{ responseModalities: ['TEXT'] }, null], [{ responseModalities: ['text', 'IMAGE'] }, 'something other than text was asked for'], [{ response_modalities: ['AUDIO'] }, 'something other than text was asked for'],
] as const) {
  t.test(`with ${JSON.stringify(config)} a response ${expected === null ? 'can be continued' : `cannot be continued: ${expected}`}`, async t => {
    t.equal(generateObstacle({ contents: CONTENTS, generationConfig: config }), expected)
    t.equal(generateObstacle({ contents: CONTENTS, generation_config: config }), expected)
  })
}

t.test('a request without contents cannot be continued', async t => t.equal(generateObstacle({}), 'the request has no contents'))

for (const [what, parts, expected] of [
  ['text', [{ text: 'x', thoughtSignature: 's' }], null], ['a thought', [{ text: 'x', thought: true }], 'the stream has a thought'], ['no thought', [{ text: 'x', thought: false }], null], ['a call', [{ text: 'x' }, { functionCall: {} }], 'the stream has a part of the type functionCall'],
  ['an image', [{ inlineData: {} }], 'the stream has a part of the type inlineData'], ['nothing', [], null],
] as const) {
  t.test(`a stream with ${what} ${expected === null ? 'can' : 'cannot'} be continued`, async t => t.equal(new GenerateStreamProtocol().read(chunk(parts)), expected))
}

t.test('a stream is complete after finishReason', async t => {
  const stream = new GenerateStreamProtocol()
  stream.read(chunk([{ text: 'x' }]))
  t.equal(stream.finished, false)
  t.equal(stream.completes(chunk([], { finishReason: 'STOP' })), true)
  stream.read(chunk([], { finishReason: 'STOP' }))
  t.equal(stream.finished, true)
  t.equal(new GenerateStreamProtocol().read({ candidates: [{}, {}] }), 'the stream has several choices')
})

t.test('the next upstream gets the text so far and a reduced token limit, also for names in snake case', async t => {
  const edited = (body: string, text = 'He') => spliceBytes(Buffer.from(body), new GenerateStreamProtocol().edits(Buffer.from(body), text, 4)).toString()
  const model = '{"role":"model","parts":[{"text":"He"}]}'
  t.equal(edited('{"contents":[{}],"generationConfig":{"maxOutputTokens":10}}'), `{"contents":[{},${model}],"generationConfig":{"maxOutputTokens":6}}`)
  t.equal(edited('{"generation_config":{"max_output_tokens":10},"contents":[]}'), `{"generation_config":{"max_output_tokens":6},"contents":[${model}]}`)
  t.equal(edited('{"contents":[],"maxOutputTokens":10}', ''), '{"contents":[],"maxOutputTokens":10}')
})

t.test('chunks of the next upstream get the responseId and modelVersion of the first chunk', async t => {
  const stream = new GenerateStreamProtocol()
  stream.read(chunk([{ text: 'He' }], {}, { responseId: 'a', modelVersion: 'm' }))
  const { translate, render } = stream.createTranslation(() => PRIOR)
  const text = (part: string) => part.toUpperCase()
  t.strictSame(translate(chunk([{ text: 'llo' }, { text: 'hm', thought: true }], { finishReason: 'STOP' }, { responseId: 'b', modelVersion: 'n' }), text), [
    { candidates: [{ content: { role: 'model', parts: [{ text: 'LLO' }, { text: 'hm', thought: true }] }, finishReason: 'STOP' }], responseId: 'a', modelVersion: 'm' },
  ])
  t.strictSame(translate({ x: 1 }, text), [{ x: 1, responseId: 'a', modelVersion: 'm' }])
  t.equal(render({ a: 1 }), 'data: {"a":1}\r\n\r\n')
})

t.test('the usage of all attempts is summed, also if the second attempt has no output', async t => {
  const usageOf = (usageMetadata: object) => new GenerateStreamProtocol().createTranslation(() => PRIOR).translate({ usageMetadata }, text => text)[0]?.['usageMetadata']
  t.strictSame(usageOf({ promptTokenCount: 20, candidatesTokenCount: 5, totalTokenCount: 25 }), { promptTokenCount: 30, candidatesTokenCount: 9, totalTokenCount: 39, cachedContentTokenCount: 3 })
  t.strictSame(usageOf({ promptTokenCount: 20, totalTokenCount: 20 }), { promptTokenCount: 30, totalTokenCount: 34, candidatesTokenCount: 4, cachedContentTokenCount: 3 })
})

t.test('the text of a chunk joins the text of its parts', async t => {
  t.equal(generateText(chunk([{ text: 'a' }, { functionCall: {} }, { text: 'b' }])), 'ab')
  t.equal(generateText({}), '')
})
