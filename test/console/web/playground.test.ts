import { execFileSync } from 'node:child_process'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import t from 'tap'
import { baseUrlFor } from '../../../src/console/web/src/pages/playground/base-url.ts'
import { EventReader } from '../../../src/console/web/src/pages/playground/events.ts'
import { javascript, shell } from '../../../src/console/web/src/pages/playground/literals.ts'
import { readResponse, readEvent } from '../../../src/console/web/src/pages/playground/parse-response.ts'
import { callOf, PROTOCOLS } from '../../../src/console/web/src/pages/playground/prompt.ts'
import type { Prompt } from '../../../src/console/web/src/pages/playground/prompt.ts'
import { run } from '../../../src/console/web/src/pages/playground/run.ts'
import type { Progress } from '../../../src/console/web/src/pages/playground/run.ts'
import { snippets } from '../../../src/console/web/src/pages/playground/snippets.ts'

const PROMPT: Prompt = {
  protocol: 'chat', model: 'm', system: '', text: 'hello', maxTokens: null, temperature: null, stream: false,
}

t.test('events are parsed from any pieces, with any line ending', async () => {
  fc.assert(fc.property(
    fc.array(fc.record({
      name: fc.constantFrom(null, 'ping'),
      data: fc.array(fc.stringMatching(/^[^\r\n]*$/), { minLength: 1 }),
    })),
    fc.constantFrom('\n', '\r\n', '\r'),
    fc.array(fc.nat({ max: 400 })),
    (events, end, cuts) => {
      const stream = events.map(({ name, data }) =>
        [...name === null ? [] : [`event: ${name}`], ': a comment', ...data.map(line => `data: ${line}`), '',
          ''].join(end),
      ).join('') + (end === '\r' ? ':' : '')
      const reader = new EventReader()
      const places = [0, ...cuts.filter(at => at < stream.length).sort((a, b) => a - b), stream.length]
      const found = places.slice(1).flatMap((at, n) => reader.push(stream.slice(places[n], at)))
      t.strictSame(found, events.map(({ name, data }) => ({ name, data: data.join('\n') })))
    },
  ))
})

t.test('an event without data or without an end is not reported', async t => {
  const reader = new EventReader()
  t.strictSame(reader.push('event: ping\n\ndata: half'), [])
  t.strictSame(reader.push('\n\n'), [{ name: null, data: 'half' }])
})

t.test('an error of the console itself is reported with its message', async t => {
  const reported: Progress[] = []
  await run(callOf(PROMPT), {
    protocol: 'chat', signal: new AbortController().signal, now: () => 0,
    send: async () => Response.json({ code: 'forbidden', message: 'not for viewers' }, { status: 403 }),
    onProgress: progress => reported.push(progress),
  })
  t.match(reported.at(-1), { phase: 'failed', status: 403, error: 'not for viewers' })
})

t.test('text, finish reason and usage are read in each protocol', async t => {
  const read = (protocol: Prompt['protocol'], event: unknown) => readEvent(protocol, JSON.stringify(event))
  t.match(read('chat',
    { choices: [{ delta: { content: 'a', reasoning_content: 'b' }, finish_reason: 'stop' }] }),
    { text: 'a', reasoning: 'b', finish: 'stop', isLast: false })
  t.match(read('chat',
    { choices: [], usage: { prompt_tokens: 3, prompt_tokens_details: { cached_tokens: 1 } } }),
    { text: '', usage: { prompt_tokens: 3, 'prompt_tokens_details.cached_tokens': 1 } })
  t.match(readEvent('chat', '[DONE]'), { isLast: true, error: null })
  t.match(read('responses', { type: 'response.output_text.delta', delta: 'a' }), { text: 'a', isLast: false })
  t.match(read('responses',
    { type: 'response.completed', response: { error: null, usage: { input_tokens: 2 } } }),
    { isLast: true, error: null, usage: { input_tokens: 2 } })
  t.match(read('messages', { type: 'message_start', message: { usage: { input_tokens: 9 } } }),
    { usage: { input_tokens: 9 } })
  t.match(read('messages', { type: 'content_block_delta', delta: { type: 'text_delta', text: 'a' } }),
    { text: 'a' })
  t.match(read('messages', { type: 'message_stop' }), { isLast: true })
  t.match(read('generate', {
    candidates: [{ content: { parts: [{ text: 'r', thought: true }, { text: 'a' }] }, finishReason: 'STOP' }],
    usageMetadata: { promptTokenCount: 4, promptTokensDetails: [{ modality: 'TEXT', tokenCount: 4 }] },
  }), { text: 'a', reasoning: 'r', finish: 'STOP', isLast: true, usage: { promptTokenCount: 4 } })
})

t.test('errors are read in each protocol', async t => {
  t.equal(readResponse('chat', '{"error":{"message":"no such model","code":"model_not_found"}}').error,
    'no such model')
  t.equal(readEvent('messages', '{"type":"error","error":{"type":"api_error","message":"cut"}}').error, 'cut')
  t.equal(readEvent('responses', '{"type":"error","message":"cut"}').error, 'cut')
  t.equal(readEvent('responses', '{"type":"response.failed","response":{"error":{"message":"cut"}}}').error,
    'cut')
  t.match(readResponse('chat', '<html>').error, /not valid JSON/)
})

t.test('reading a response never throws', async () => {
  fc.assert(fc.property(fc.constantFrom(...PROTOCOLS), fc.oneof(fc.json(), fc.string()), (protocol, text) => {
    readEvent(protocol, text)
    readResponse(protocol, text)
  }))
})

t.test('JavaScript literals evaluate to their value', async t => {
  const odd = fc.constant(JSON.parse('{"__proto__":{"a":1},"a-b":-0}') as fc.JsonValue)
  fc.assert(fc.property(fc.oneof({ weight: 9, arbitrary: fc.jsonValue() }, odd), value => {
    const back: unknown = runInNewContext(`JSON.stringify(${javascript({ value })})`)
    t.equal(back, JSON.stringify({ value }))
  }))
})

t.test('a quoted shell word is passed unchanged', async t => {
  for (const text of ["it's", '$(id) `id` "$HOME" \\', "''", 'two\nlines', '-n', '']) {
    t.equal(execFileSync('sh', ['-c', `printf %s ${shell(text)}`], { encoding: 'utf8' }), text)
  }
})

t.test('required fields are in the request', async t => {
  t.equal(callOf({ ...PROMPT, protocol: 'messages' }).body['max_tokens'], 1024, 'the Messages protocol requires max_tokens')
  t.ok(callOf({ ...PROMPT, protocol: 'messages' }).headers['anthropic-version'])
  t.equal(callOf({ ...PROMPT, protocol: 'generate', stream: true }).path,
    '/v1beta/models/m:streamGenerateContent?alt=sse')
  t.equal(callOf({ ...PROMPT, protocol: 'generate', model: 'a b?/ü' }).path,
    '/v1beta/models/a%20b%3F/%C3%BC:generateContent')
  t.notOk('temperature' in callOf(PROMPT).body, 'an empty field is not sent')
})

t.test('samples have the base URL and no key', async t => {
  for (const protocol of PROTOCOLS) {
    for (const { language, code } of snippets({ ...PROMPT, protocol, stream: true },
      'https://gateway.example')) {
      t.match(code, 'https://gateway.example', `${protocol}, ${language}`)
      t.match(code, 'YOUR_API_KEY', `${protocol}, ${language}`)
    }
  }
})

t.test('the base URL is an address that the browser can reach', async t => {
  const at = (url: string) => new URL(url)
  t.equal(baseUrlFor('http://0.0.0.0:8080', at('http://gateway.example:8081')), 'http://gateway.example:8080')
  t.equal(baseUrlFor('http://127.0.0.1:8080', at('http://localhost:8081')), 'http://127.0.0.1:8080')
  t.equal(baseUrlFor('http://127.0.0.1:8080', at('https://console.example')), 'https://console.example',
    'a loopback address is not reachable')
  t.equal(baseUrlFor('https://10.0.0.7:8443', at('https://10.0.0.7:8444')), 'https://10.0.0.7:8443')
  t.equal(baseUrlFor(null, at('http://127.0.0.1:8081')), 'http://127.0.0.1:8081')
})
