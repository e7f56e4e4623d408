import fc from 'fast-check'
import t from 'tap'
import { JsonCursor } from '../../../src/protocols/json/cursor.ts'
import { jsonInspection } from '../../../src/protocols/request/inspect.ts'
import type { EndpointName } from '../../../src/protocols/endpoint/protocol.ts'
import { MEDIA_TOKENS, estimateRequest, maxOutputTokens, readCharacters, estimateTokens } from '../../../src/protocols/request/request-estimate.ts'
import { endpointNamed } from '../endpoint-named.ts'

function estimate(endpoint: EndpointName, body: unknown) {
  const bytes = Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
  const scan = jsonInspection()
  scan.push(bytes)
  const json = scan.end()
  return estimateRequest(endpointNamed(endpoint), bytes, json.ok ? json : null)
}

/** Assumed tokens of a response without a bound. */
const ASSUMED = 4096

function mostOutput(endpoint: EndpointName, body: unknown): number | null {
  const { output } = estimate(endpoint, body)
  return output && maxOutputTokens(output, ASSUMED)
}

t.test('input tokens are estimated as a quarter of the bytes', async t => {
  const body = { model: 'gpt-4o', messages: [{ role: 'user', content: 'Hello, world! '.repeat(100) }] }
  const bytes = JSON.stringify(body).length
  t.equal(estimate('chat.completions', body).inputTokens, Math.ceil(bytes / 4))
})

t.test('a prompt of token ids counts one token for each id', async t => {
  for (const member of ['input', 'prompt']) {
    const tokens = Array.from({ length: 1000 }, (_, i) => i % 10)
    t.ok((estimate('embeddings', { model: 'm', [member]: tokens }).inputTokens ?? 0) >= 1000)
    t.ok((estimate('completions', { model: 'm', [member]: [tokens, tokens] }).inputTokens ?? 0) >= 2000)
  }
})

t.test('a list of short strings counts two tokens for each string', async t => {
  const count = 1_000
  const body = JSON.stringify({ tools: [{ parameters: { enum: Array.from({ length: count }, () => 'a') } }] })
  t.ok(estimateTokens(Buffer.from(body)) >= 2 * count, 'quotes and comma between two of them are a token')
  const prose = JSON.stringify({ messages: [{ role: 'user', content: 'Say in one sentence what this is about.' }] })
  t.equal(estimateTokens(Buffer.from(prose)), Math.ceil(prose.length / 4), 'prose is a quarter of its bytes')
})

t.test('the maximum output is read from each endpoint\'s fields', async t => {
  const cases: [EndpointName, unknown, number | null][] = [
    ['chat.completions', { max_tokens: 100 }, 100],
    ['chat.completions', { max_completion_tokens: 50 }, 50],
    ['chat.completions', { max_tokens: 10, max_completion_tokens: 50 }, 50],
    ['chat.completions', { max_tokens: 100, n: 3 }, 300],
    ['completions', { max_tokens: 100, n: 2, best_of: 5 }, 500],
    ['completions', { max_tokens: 100, prompt: ['a', 'b', 'c'], n: 2 }, 600],
    ['completions', { prompt: [[1, 2], [3]], max_tokens: 100 }, 200],
    ['completions', { max_tokens: 100, prompt: [1, 2, 3] }, 100],
    ['completions', { max_tokens: 100, prompt: [] }, 100],
    ['completions', { max_tokens: 100, prompt: [false, 'a'] }, 200],
    ['completions', { max_tokens: 100, prompt: 'a' }, 100],
    ['completions', { max_tokens: 100, Prompt: ['a', 'b'] }, 200],
    ['chat.completions', { max_tokens: 100, prompt: ['a', 'b'] }, 100],
    ['responses', { max_output_tokens: 70 }, 70],
    ['messages', { max_tokens: 1024, messages: [] }, 1024],
    ['generate.content', { generationConfig: { maxOutputTokens: 30, candidateCount: 2 } }, 60],
    ['generate.stream', { generation_config: { max_output_tokens: 30, candidate_count: 2 } }, 60],
    ['generate.stream', { generation_config: { maxOutputTokens: 30, candidateCount: 2 } }, 60],
    ['interactions', { generation_config: { max_output_tokens: 30 } }, 30],
    ['chat.completions', { messages: [{ max_tokens: 5 }] }, ASSUMED],
    ['chat.completions', {}, ASSUMED],
    ['chat.completions', { max_tokens: 9e15, n: 9e15 }, 1e9],
    ['embeddings', { input: 'x', max_tokens: 5 }, null],
    ['messages.count_tokens', { messages: [] }, null],
    // A field that is not of the protocol does not bound the output.
    ['responses', { max_tokens: 5 }, ASSUMED],
    ['chat.completions', { max_output_tokens: 5 }, ASSUMED],
    ['chat.completions', { maxTokens: 5 }, ASSUMED],
    ['messages', { max_completion_tokens: 5 }, ASSUMED],
    ['generate.content', { max_tokens: 5 }, ASSUMED],
    ['generate.content', { generationConfig: { maxOutput_tokens: 5 } }, ASSUMED],
    ['generate.content', { maxOutputTokens: 5 }, ASSUMED],
    ['chat.completions', { max_tokens: null }, ASSUMED],
    ['chat.completions', { max_tokens: 0 }, ASSUMED],
    ['chat.completions', '{"max_tokens":5,"max_tokens":null}', ASSUMED],
    ['chat.completions', '{"max_tokens":50000,"max_tokens":5}', 50_000],
    // Thinking tokens are added if the protocol does not count them as a part of the output.
    ['chat.completions', { max_tokens: 5, thinking_budget: 7 }, 12],
    ['chat.completions', { max_tokens: 5, reasoning: { max_tokens: 7 } }, 12],
    ['messages', { max_tokens: 5, thinking: { budget_tokens: 7 } }, 7],
    ['generate.content', { generationConfig: { maxOutputTokens: 5, thinkingConfig: { thinkingBudget: -1 } } }, 5],
  ]
  for (const [endpoint, body, expected] of cases) {
    t.equal(mostOutput(endpoint, body), expected, `${endpoint} ${JSON.stringify(body)}`)
  }
})

t.test('an output limit counts in every spelling that a server accepts', async t => {
  for (const name of ['max_tokens', 'maxTokens', 'MAX_TOKENS', 'max-tokens', 'Max_Tokens', 'maxOutput_tokens', 'MaxCompletionTokens', 'max_new_tokens',
    'num_predict', 'max_to\u212aens', 'ma\u0078_tokens', 'maxTo\u006bens', 'max_token\u017f']) {
    for (const body of [`{"max_tokens":1,"${name}":100000}`, `{"${name}":100000,"max_tokens":1}`, `{"max_tokens":1,"extra_body":{"${name}":100000}}`]) {
      t.equal(mostOutput('chat.completions', body), 100_000, body)
    }
  }
  for (const name of ['n', 'N', '\u006e', 'best_of', 'bestOf', 'candidate_count', 'CandidateCount', 'num_images', 'sampleCount']) {
    for (const body of [`{"max_tokens":2,"${name}":50}`, `{"max_tokens":2,"generationConfig":{"${name}":50}}`, `{"max_tokens":2,"extra_body":{"parameters":{"${name}":50}}}`]) {
      t.equal(mostOutput('chat.completions', body), 100, body)
    }
  }
})

t.test('an ambiguous number is reported as a fault, and its largest possible value counts', async t => {
  const cases: [string, number][] = [
    ['1000000.5', 1_000_001], ['"1000000"', 1_000_000], ['"1_000_000"', 1_000_000], ['1e6', 1_000_000], ['1E+6', 1_000_000], ['"+50"', 50],
    ['" 50 "', 50], ['"50.9abc"', 51], ['5.0', 5], ['-5', ASSUMED], ['-0', ASSUMED], ['true', ASSUMED], ['"inf"', 1e9], ['"Infinity"', 1e9], ['[5]', ASSUMED],
    ['{"value":5}', ASSUMED], ['"many"', ASSUMED],
  ]
  for (const [value, expected] of cases) {
    const body = `{"extra_body":{"Max_tokens":${value}}}`
    t.equal(mostOutput('chat.completions', body), Math.max(ASSUMED, expected), value)
    t.equal(estimate('chat.completions', body).output?.fault, 'extra_body.Max_tokens', value)
    t.equal(estimate('chat.completions', `{"n":${value}}`).output?.fault, 'n', value)
  }
  for (const value of ['0', '7', '123456789012345678901234567890', 'null']) t.equal(estimate('chat.completions', `{"max_tokens":${value}}`).output?.fault, null, value)
})

t.test('an output limit with an escaped name counts', async t => {
  for (const name of ['max_tok\\u0065ns', [...'max_tokens'].map(escaped).join('')]) {
    const body = `{"max_tokens":1,"${name}":100000,"messages":[]}`
    t.equal(mostOutput('chat.completions', body), 100_000, name)
  }
  t.equal(mostOutput('chat.completions', '{"max_tokens":1,"max_\\ud800okens":5}'), 1)
})

t.test('the number of choices is read even if there is no output limit', async t => {
  const cases: [EndpointName, unknown, number][] = [
    ['chat.completions', {}, 1],
    ['chat.completions', { n: 3 }, 3],
    ['chat.completions', { n: 0 }, 1],
    ['completions', { prompt: ['a', 'b'], best_of: 2 }, 4],
    ['generate.content', { generationConfig: { candidateCount: 2 } }, 2],
    ['completions', { prompt: ['a', 'b', {}] }, 3],
    ['completions', { prompt: [1, 2, 'a'] }, 1],
    ['chat.completions', { n: 9e15 }, 1e9],
  ]
  for (const [endpoint, body, responses] of cases) {
    t.match(estimate(endpoint, body).output, { responses, bound: null }, `${endpoint} ${JSON.stringify(body)}`)
  }
})

t.test('an image counts as a fixed number of tokens, and long text counts in full', async t => {
  const base64 = Buffer.alloc(300_000, 'picture').toString('base64')
  const frame = JSON.stringify({ messages: [{ content: [{ image_url: { url: '' } }] }] }).length
  for (const url of [`data:image/png;base64,${base64}`, base64, base64.replaceAll('c', '\\/')]) {
    const body = `{"messages":[{"content":[{"image_url":{"url":"${url}"}}]}]}`
    t.equal(estimateTokens(Buffer.from(body)), MEDIA_TOKENS + Math.ceil((frame - 1) / 4), url.slice(0, 30))
  }
  const text = 'word '.repeat(100_000)
  t.ok(estimateTokens(Buffer.from(JSON.stringify({ content: text }))) > 120_000)
  const letters = 'A'.repeat(600)
  for (const lure of [`${letters} ${text}`, `${letters} ${text} ${letters}`, `${letters}${text}`]) {
    t.ok(
      estimateTokens(Buffer.from(JSON.stringify({ content: lure }))) > 120_000, 'text behind a lure of base64',
    )
  }
  const tail = `${'A'.repeat(400_000)} ${'word '.repeat(20)}`
  t.ok(estimateTokens(Buffer.from(JSON.stringify({ content: tail }))) > 100_000)
})

t.test('a part that is declared as an image counts as one image, of any size', async t => {
  const url = 'https://example.com/a.png'
  for (const part of [
    { type: 'image_url', image_url: { url } }, { type: 'input_image', image_url: url }, { type: 'image', source: { type: 'url', url } }, { type: 'input_file', file_id: 'file-1' },
    { inlineData: { data: 'AAAA' } }, { fileData: { fileUri: url } }, { 'ty\u0070e': 'im\u0061ge' },
  ]) {
    const text = JSON.stringify({ messages: [{ content: Array.from({ length: 5 }, () => part) }] }).replaceAll('\\\\u', '\\u')
    t.ok(estimateTokens(Buffer.from(text)) > 5 * MEDIA_TOKENS, text.slice(0, 80))
  }
  t.ok(estimateTokens(Buffer.from('{"messages":[{"name":"image","content":"image"}]}')) < 20)
})

t.test('text that looks like base64 counts in full', async t => {
  const words: readonly (readonly [name: string, word: string])[] = [['letters', 'A'.repeat(400_000)], ['a capsule', `Gateway1${'q1bKBAA'.repeat(57_143)}`], ['zeros that are escaped', '\u0000'.repeat(67_000)]]
  for (const [name, word] of words) {
    for (const body of [
      { messages: [{ role: 'user', content: word }] }, { messages: [{ role: 'user', content: [{ type: 'text', text: word }] }] }, { messages: [], stop: [word] },
      { input: word }, { contents: [{ parts: [{ text: word }] }] }, { tools: [{ description: word }] }, [word], word, { [word]: 1 },
    ]) {
      t.ok(estimateTokens(Buffer.from(JSON.stringify(body))) > 99_000, `${name} in ${JSON.stringify(body).slice(0, 60)}`)
      t.ok(estimateTokens(Buffer.from(JSON.stringify(body, null, 4))) > 99_000, `${name} in ${JSON.stringify(body).slice(0, 60)}, with white space`)
    }
  }
})

t.test('data with a text type counts in full, and an image in the same request counts as an image', async t => {
  const data = 'A'.repeat(400_000)
  const picture = { source: { type: 'base64', media_type: 'image/png', data } }
  for (const source of [
    { type: 'text', data }, { data, type: 'text' }, { media_type: 'text/plain', data }, { data, more: { data: 'x' }, mimeType: 'application/json' },
    { mime_type: 'TEXT/HTML', data },
  ]) {
    for (const text of [JSON.stringify({ messages: [{ source }, picture] }), JSON.stringify({ source }).replace('type":', 'typ\\u0065":')]) {
      const tokens = estimateTokens(Buffer.from(text))
      t.ok(tokens > 99_000 && tokens < 110_000, `${tokens}: ${text.slice(0, 60)}`)
    }
  }
  t.ok(estimateTokens(Buffer.from(JSON.stringify({ file_data: `data:text/csv;base64,${data}` }))) > 99_000)
  t.ok(estimateTokens(Buffer.from(JSON.stringify({ file_data: `data:application/pdf;base64,${data}` }))) < 5_000)
  t.ok(estimateTokens(Buffer.from(JSON.stringify({ call_id: data }))) > 99_000, 'an id is no image')
})

t.test('a body that is not a JSON object has no estimate', async t => {
  for (const body of ['', '--boundary\r\ncontent-disposition: form-data', '[1]', 'null']) {
    const nothing = { inputTokens: null, mediaTokens: 0, output: null }
    t.strictSame(estimate('audio.transcriptions', body), nothing, body)
  }
})

t.test('a body with very much nesting or quoting is estimated', async t => {
  const configs = `${'{"generationConfig":'.repeat(900)}1${'}'.repeat(900)}`
  t.ok(estimate('generate.content', configs).inputTokens)
  t.ok(estimate('chat.completions', `{"a":${'['.repeat(900)}${']'.repeat(900)}}`).inputTokens)
  t.ok((estimate('chat.completions', `{"a":"${'\\"'.repeat(5_000_000)}"}`).inputTokens ?? 0) > 2_000_000)
  t.ok((estimate('chat.completions', `{${'"a":"b",'.repeat(1_500_000)}"c":1}`).inputTokens ?? 0) > 2_000_000)
})

t.test('fields that were found while the body arrived are not read again', async t => {
  const walked = t.capture(JsonCursor.prototype, 'nextMember')
  const body = `{"max_tokens":5,${'"a":"b",'.repeat(1_000)}"n":2,"prompt":["a","b"]}`
  t.equal(mostOutput('completions', body), 20)
  t.same(walked(), [])
})

t.test('speech: characters are counted as code points of the input', async t => {
  const characters = (body: unknown) => readCharacters(Buffer.from(JSON.stringify(body)))
  t.equal(characters({ model: 'tts-1', input: 'Hello', voice: 'alloy' }), 5)
  t.equal(characters({ input: 'grüß 你好 \u{1f600}\u{1f600}' }), 10)
  t.equal(characters({ input: '"\\\n' }), 3)
  t.equal(characters({ input: '' }), 0)
  t.equal(characters({ input: 5 }), null)
  t.equal(characters({}), null)
  t.equal(readCharacters(Buffer.from('--form')), null)
  t.equal(readCharacters(Buffer.from('{"input":"abc","input":"a"}')), 3, 'the longest input counts')
  t.equal(readCharacters(Buffer.from('{"input":"a","input":[]}')), 1)
})

t.test('an escaped character counts as one code point', async () => {
  const written = [
    'a', 'é', '你', '\u{1f600}', '\\n', '\\"', '\\\\', '\\u0061', '\\u4f60', '\\ud83d\\ude00', '\\ud83d', '\\ude00',
  ]
  fc.assert(fc.property(fc.array(fc.constantFrom(...written)), parts => {
    const json = `"${parts.join('')}"`
    return readCharacters(Buffer.from(`{"input":${json}}`)) === [...JSON.parse(json) as string].length
  }))
})

t.test('counting characters creates no string', async t => {
  const body = Buffer.from(`{"input":"${'grüß dich '.repeat(1 << 21)}"}`)
  const before = process.memoryUsage()
  t.equal(readCharacters(body), 10 << 21)
  const { heapUsed, external } = process.memoryUsage()
  t.ok(heapUsed + external - before.heapUsed - before.external < body.length / 2)
})

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}
