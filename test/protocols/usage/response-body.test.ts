import t from 'tap'
import type { EndpointName } from '../../../src/protocols/endpoint/protocol.ts'
import { readBodyUsage } from '../../../src/protocols/usage/reported-usage.ts'
import { blankUsage } from '../../../src/protocols/usage/usage.ts'
import { endpointNamed } from '../endpoint-named.ts'

function read(endpoint: EndpointName, body: unknown) {
  return readBodyUsage(endpointNamed(endpoint).usage, Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)))
}

function figures(endpoint: EndpointName, body: unknown) {
  const reading = read(endpoint, body)
  if (!reading) return null
  const known = Object.entries(reading.usage).filter(([, value]) => value !== null)
  return Object.fromEntries(reading.suspect ? [...known, ['suspect', true]] : known)
}

t.test('the usage of each endpoint\'s body is read', async t => {
  const openai = { prompt_tokens: 9, completion_tokens: 12, total_tokens: 21 }
  const chat = {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content: 'say "usage": {"prompt_tokens": 1}' } }],
    usage: openai,
  }
  t.strictSame(figures('chat.completions', chat), { inputTokens: 9, outputTokens: 12 })
  t.strictSame(figures('completions', { choices: [{ text: 'x' }], usage: openai }), {
    inputTokens: 9,
    outputTokens: 12,
  })
  t.strictSame(
    figures('embeddings', {
      data: [{ embedding: [0.1, -2e-3] }],
      usage: { prompt_tokens: 8, total_tokens: 8 },
    }),
    { inputTokens: 8 },
  )
  t.strictSame(figures('responses', { output: [], usage: { input_tokens: 3, output_tokens: 4 } }), {
    inputTokens: 3,
    outputTokens: 4,
  })
  t.strictSame(
    figures('messages', {
      content: [{ type: 'text', text: 'x' }],
      usage: { input_tokens: 3, output_tokens: 4 },
    }),
    { inputTokens: 3, outputTokens: 4 },
  )
  t.strictSame(
    figures('generate.content', {
      usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 4 },
      candidates: [],
    }),
    { inputTokens: 3, outputTokens: 4 },
  )
  t.strictSame(figures('generate.embed', { embedding: {}, usageMetadata: { promptTokenCount: 3 } }), {
    inputTokens: 3,
  })
})

t.test(
  'only the top-level usage is read, and the last value of a repeated usage counts',
  async t => {
    const nested = { choices: [{ usage: { prompt_tokens: 1, completion_tokens: 1 } }], object: 'usage' }
    t.equal(read('chat.completions', nested), null)
    const twice =
      '{"usage":{"prompt_tokens":1,"completion_tokens":1},"usage":{"prompt_tokens":2,"completion_tokens":3}}'
    t.strictSame(figures('chat.completions', twice), { inputTokens: 2, outputTokens: 3 })
  },
)

t.test('generate: in an array of chunks the last usageMetadata counts', async t => {
  const chunks = [
    { candidates: [], usageMetadata: { promptTokenCount: 9, candidatesTokenCount: 1 } },
    { candidates: [], usageMetadata: { promptTokenCount: 8, candidatesTokenCount: 5 } },
    { candidates: [] },
  ]
  t.strictSame(figures('generate.stream', chunks), { inputTokens: 8, outputTokens: 5 })
  t.equal(read('generate.stream', []), null)
  t.equal(read('generate.stream', [1, 'usageMetadata', null]), null)
})

t.test('images are counted, with and without a usage in tokens', async t => {
  const data = [{ b64_json: 'AAAA' }, { url: 'https://example.test/usage' }]
  t.strictSame(figures('images.generations', { created: 1, data }), { images: 2 })
  t.strictSame(figures('images.edits', { created: 1, data, usage: { input_tokens: 5, output_tokens: 6 } }), {
    inputTokens: 5,
    outputTokens: 6,
    outputImageTokens: 6,
    images: 2,
  })
  t.equal(read('images.generations', { created: 1 }), null)
})

t.test('transcripts: usage or duration is read, and plain text and subtitles have no usage', async t => {
  t.strictSame(
    figures('audio.transcriptions', { text: 'x', usage: { type: 'duration', seconds: 3 }, duration: 2.9 }),
    { seconds: 3 },
  )
  t.strictSame(figures('audio.transcriptions', { task: 'transcribe', duration: 8.47, text: 'x' }), {
    seconds: 8.47,
  })
  t.strictSame(figures('audio.transcriptions', { duration: '8.47', text: 'x' }), { seconds: 8.47 }, "vLLM's")
  for (const duration of ['', ' ', '8.47s', '-1', '1e300', [8]]) {
    const read = figures('audio.transcriptions', { duration, text: 'x' })
    t.strictSame(read, { suspect: true }, String(duration))
  }
  t.equal(read('audio.transcriptions', { text: '"duration": 5' }), null)
  t.equal(read('audio.transcriptions', '1\n00:00:00,000 --> 00:00:01,000\n{"duration": 5}\n'), null)
  t.equal(read('audio.transcriptions', 'Just text.'), null)
})

t.test('an invalid usage is suspect, but a missing usage is not', async t => {
  for (const usage of ['12', 12, [], true]) {
    t.strictSame(read('chat.completions', { usage }), { usage: blankUsage(), suspect: true })
  }
  t.strictSame(read('chat.completions', '{"usage": {"prompt_tokens": 00}}'), {
    usage: blankUsage(),
    suspect: true,
  })
  t.equal(read('chat.completions', { usage: null }), null)
  t.equal(read('chat.completions', {}), null)
})

t.test('a body that is not an object has no usage', async t => {
  for (const body of [
    '',
    ' ',
    '[]',
    '"usage"',
    'null',
    '{',
    '{"usage"',
    '{"usage":',
    'ID3\u0000\u0001',
    '<html>',
  ]) {
    t.equal(read('chat.completions', body), null, body)
    t.equal(read('images.generations', body), null, body)
    t.equal(read('audio.transcriptions', body), null, body)
    t.equal(read('generate.content', body), null, body)
  }
})

t.test('the usage of a body is not read for endpoints that have none', async t => {
  t.equal(read('messages.count_tokens', { input_tokens: 5 }), null)
  t.equal(read('generate.count_tokens', { totalTokens: 5 }), null)
  t.equal(read('models.list', { data: [], usage: { prompt_tokens: 5 } }), null)
  t.equal(read('other', { usage: { prompt_tokens: 5, completion_tokens: 5 } }), null)
})

t.test('60 MB of base64 are skipped without becoming a string', async t => {
  const picture = 'A'.repeat(30 * 1024 * 1024)
  const usage = '{"input_tokens":5,"output_tokens":6}'
  const body = Buffer.from(`{"data":[{"b64_json":"${picture}"},{"b64_json":"${picture}"}],"usage":${usage}}`)
  const before = process.memoryUsage()
  const reading = readBodyUsage(endpointNamed('images.generations').usage, body)
  const after = process.memoryUsage()
  t.equal(reading?.usage.images, 2)
  t.equal(reading?.usage.outputTokens, 6)
  const grown = after.heapUsed + after.external - before.heapUsed - before.external
  t.ok(grown < 10 * 1024 * 1024, `${grown} bytes more`)
})
