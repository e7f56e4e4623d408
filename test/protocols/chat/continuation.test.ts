import t from 'tap'
import { ChatStreamProtocol, chatObstacle, chatText } from '../../../src/protocols/chat/continuation.ts'
import { spliceBytes } from '../../../src/protocols/json/splice.ts'

const HI = [{ role: 'user', content: 'Hi' }]
const PRIOR = { inputTokens: 10, cachedInputTokens: 3, cacheWrite5mTokens: null, cacheWrite1hTokens: null, outputTokens: 4 }
const chunk = (delta: object, more: object = {}, choice: object = {}) => ({ id: 'a', object: 'o', created: 1, model: 'm', choices: [{ index: 0, delta, ...choice }], ...more })
const END = { finish_reason: 'stop' }

for (const [request, expected] of [
  [{ messages: HI }, null], [{ messages: HI, n: 1 }, null], [{ messages: HI, n: 2 }, 'several answers were asked for'], [{ messages: HI, logprobs: true }, 'log probabilities were asked for'], [{ messages: HI, logprobs: false }, null],
  [{ messages: HI, audio: { voice: 'a' } }, 'audio was asked for'], [{ messages: HI, audio: null }, null], [{ messages: HI, response_format: { type: 'text' } }, null], [{ messages: HI, response_format: { type: 'json_object' } }, 'structured output was asked for'],
  [{}, 'the request has no messages'], [{ messages: [] }, 'the request has no messages'], [{ messages: [...HI, { role: 'assistant', content: 'x' }] }, 'the request ends with a message of the assistant itself'],
] as const) {
  t.test(`the response to ${JSON.stringify(request)} ${expected === null ? 'can be continued' : `cannot be continued: ${expected}`}`, async t => t.equal(chatObstacle(request), expected))
}

for (const [what, delta, expected] of [
  ['text', { content: 'x' }, null], ['nothing', { content: null, tool_calls: [], refusal: '' }, null], ['parts', { content: [{ type: 'text' }] }, 'the stream has content that is not plain text'], ['a tool call', { tool_calls: [{}] }, 'the stream has a tool call'],
  ['a function call', { function_call: { name: 'a' } }, 'the stream has a tool call'], ['reasoning', { reasoning_content: 'Hm' }, 'the stream has reasoning'], ['reasoning of another name', { reasoning: 'Hm' }, 'the stream has reasoning'], ['a refusal', { refusal: 'No' }, 'the stream has a refusal'],
  ['audio', { audio: { id: 'a' } }, 'the stream has audio'],
] as const) {
  t.test(`a stream with ${what} ${expected === null ? 'can' : 'cannot'} be continued`, async t => t.equal(new ChatStreamProtocol({}).read(chunk(delta)), expected))
}

t.test('a stream is complete after finish_reason, or after the usage if the client requests usage', async t => {
  const plain = new ChatStreamProtocol({})
  plain.read(chunk({ content: 'x' }))
  t.strictSame([plain.finished, plain.missing, plain.completes(chunk({}, {}, END))], [false, null, true])
  plain.read(chunk({}, {}, END))
  t.equal(plain.finished, true)
  const counted = new ChatStreamProtocol({ stream_options: { include_usage: true } })
  counted.read(chunk({}, { usage: {} }))
  t.ok(counted.missing, 'usage before the finish is not complete')
  t.equal(counted.completes(chunk({}, {}, END)), false)
  counted.read(chunk({}, {}, END))
  t.ok(counted.missing)
  t.equal(counted.completes({ choices: [], usage: {} }), true)
  counted.read({ choices: [], usage: {} })
  t.equal(counted.missing, null)
})

t.test('a stream of several choices is never complete', async t => {
  for (const choices of [[{ index: 0 }, { index: 1 }], [{ index: 1 }]]) {
    const stream = new ChatStreamProtocol({})
    t.equal(stream.read({ choices }), 'the stream has several choices')
    stream.read(chunk({}, {}, END))
    t.equal(stream.finished, false)
  }
})

t.test('the next upstream gets the text so far, and a token limit that is reduced by the tokens already generated', async t => {
  const edited = (body: string, text: string, spent: number) => spliceBytes(Buffer.from(body), new ChatStreamProtocol({}).edits(Buffer.from(body), text, spent)).toString()
  t.equal(edited('{"messages":[{}],"max_tokens":10,"max_completion_tokens":20}', 'He', 4), '{"messages":[{},{"role":"assistant","content":"He"}],"max_tokens":6,"max_completion_tokens":16}')
  t.equal(edited('{"messages":[{}]}', '', 4), '{"messages":[{}]}')
})

t.test('chunks of the next upstream get the id and model of the first chunk, and no second role', async t => {
  const stream = new ChatStreamProtocol({})
  stream.read(chunk({ role: 'assistant' }, { id: '' }))
  stream.read(chunk({ content: 'He' }, { system_fingerprint: 'f' }))
  const { translate, render } = stream.createTranslation(() => PRIOR)
  const text = (part: string) => part.toUpperCase()
  t.strictSame(translate({ id: 'b', model: 'n', choices: [{ index: 0, delta: { role: 'assistant', content: '' } }] }, text), [], 'an empty chunk is not sent')
  t.strictSame(translate({ id: 'b', model: 'n', choices: [{ index: 0, delta: { role: 'assistant', content: 'llo' } }] }, text), [
    { id: 'a', object: 'o', created: 1, model: 'm', system_fingerprint: 'f', choices: [{ index: 0, delta: { content: 'LLO' } }] },
  ])
  t.match(translate({ choices: [{ index: 0, delta: {}, ...END }] }, text), [{ choices: [END] }])
  t.equal(render({ a: 1 }), 'data: {"a":1}\n\n')
})

t.test('the usage of all attempts of a continued response is summed', async t => {
  const stream = new ChatStreamProtocol({})
  stream.read(chunk({ content: 'He' }))
  const [whole] = stream.createTranslation(() => PRIOR).translate({ choices: [], usage: { prompt_tokens: 20, completion_tokens: 5, total_tokens: 25, prompt_tokens_details: { cached_tokens: 2 } } }, text => text)
  t.strictSame(whole?.['usage'], { prompt_tokens: 30, completion_tokens: 9, total_tokens: 39, prompt_tokens_details: { cached_tokens: 5 } })
})

t.test('a client that already has the end of the response gets only the usage', async t => {
  const stream = new ChatStreamProtocol({ stream_options: { include_usage: true } })
  stream.read(chunk({ content: 'Hello' }, {}, END))
  const { translate } = stream.createTranslation(() => PRIOR)
  t.strictSame(translate(chunk({ content: 'x' }), text => text), [])
  t.match(translate({ choices: [], usage: { prompt_tokens: 1 } }, text => text), [{ usage: { prompt_tokens: 11 } }])
})

t.test('the first chunk keeps its role if no earlier chunk had one', async t => {
  const [first] = new ChatStreamProtocol({}).createTranslation(() => PRIOR).translate(chunk({ role: 'assistant', content: '' }), text => text)
  t.match(first, { choices: [{ delta: { role: 'assistant', content: '' } }] })
  t.equal(chatText(chunk({ content: 'x' })), 'x')
  t.equal(chatText({ choices: [] }), '')
})
