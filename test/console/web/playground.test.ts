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
import { parseTools } from '../../../src/console/web/src/pages/playground/tools.ts'

const PROMPT: Prompt = {
  protocol: 'chat', model: 'm', system: '', text: 'hello', images: [], tools: [],
  maxTokens: null, temperature: null, topP: null, stop: [], stream: false,
}

t.test('events are parsed wherever the stream is split, with each line ending', async () => {
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

t.test('an event without data and an incomplete event are not reported', async t => {
  const reader = new EventReader()
  t.strictSame(reader.push('event: ping\n\ndata: half'), [])
  t.strictSame(reader.push('\n\n'), [{ name: null, data: 'half' }])
})

t.test('an error response of the console is reported with the message of the response', async t => {
  const reported: Progress[] = []
  await run(callOf(PROMPT), {
    protocol: 'chat', signal: new AbortController().signal, now: () => 0,
    send: async () => Response.json({ code: 'forbidden', message: 'not for viewers' }, { status: 403 }),
    onProgress: progress => reported.push(progress),
  })
  t.match(reported.at(-1), { phase: 'failed', status: 403, error: 'not for viewers' })
})

t.test('text, finish reason and usage are read from responses of each protocol', async t => {
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

t.test('streamed tool calls are joined in each protocol', async t => {
  const calls = async (protocol: Prompt['protocol'], events: readonly unknown[]) => {
    const reported: Progress[] = []
    const body = events.map(event => `data: ${JSON.stringify(event)}\n\n`).join('')
    await run(callOf(PROMPT), {
      protocol, signal: new AbortController().signal, now: () => 0, onProgress: progress => reported.push(progress),
      send: async () => new Response(body, { headers: { 'content-type': 'text/event-stream' } }),
    })
    return reported.at(-1)?.toolCalls.map(({ name, input }) => `${name} ${input}`)
  }
  const chat = (index: number, call: object) => ({ choices: [{ delta: { tool_calls: [{ index, function: call }] } }] })
  const expected = ['one {"a":1}', 'two {}']
  t.same(await calls('chat', [
    chat(0, { name: 'one', arguments: '' }), chat(0, { arguments: '{"a"' }), chat(0, { arguments: ':1}' }), chat(1, { name: 'two', arguments: '{}' }),
  ]), expected)
  t.same(await calls('responses', [
    { type: 'response.output_item.added', output_index: 0, item: { type: 'message' } },
    { type: 'response.output_item.added', output_index: 1, item: { type: 'function_call', name: 'one', arguments: '' } },
    { type: 'response.function_call_arguments.delta', output_index: 1, delta: '{"a":1}' },
    { type: 'response.output_item.added', output_index: 2, item: { type: 'function_call', name: 'two', arguments: '' } },
    { type: 'response.function_call_arguments.delta', output_index: 2, delta: '{}' },
  ]), expected)
  t.same(await calls('messages', [
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'content_block_start', index: 1, content_block: { type: 'tool_use', name: 'one', input: {} } },
    { type: 'content_block_delta', index: 1, delta: { type: 'input_json_delta', partial_json: '{"a":' } },
    { type: 'content_block_delta', index: 1, delta: { type: 'input_json_delta', partial_json: '1}' } },
    { type: 'content_block_start', index: 2, content_block: { type: 'tool_use', name: 'two', input: {} } },
    { type: 'content_block_delta', index: 2, delta: { type: 'input_json_delta', partial_json: '{}' } },
  ]), expected)
  t.same(await calls('generate', [
    { candidates: [{ content: { parts: [{ functionCall: { name: 'one', args: { a: 1 } } }] } }] },
    { candidates: [{ content: { parts: [{ functionCall: { name: 'two' } }] } }] },
  ]), expected)
  const whole = (protocol: Prompt['protocol'], body: unknown) =>
    readResponse(protocol, JSON.stringify(body)).toolCalls.map(({ name, input }) => `${name} ${input}`)
  t.same(whole('chat', { choices: [{ message: { tool_calls: [{ function: { name: 'one', arguments: '{"a":1}' } }] } }] }), ['one {"a":1}'])
  t.same(whole('responses', { output: [{ type: 'function_call', name: 'one', arguments: '{"a":1}' }] }), ['one {"a":1}'])
  t.same(whole('messages', { content: [{ type: 'tool_use', name: 'one', input: { a: 1 } }] }), ['one {"a":1}'])
})

t.test('tool definitions are parsed in the format of each vendor', async t => {
  const tool = { name: 'a', description: 'b', parameters: { type: 'object' } }
  for (const text of [
    '[{"name":"a","description":"b","parameters":{"type":"object"}}]', '[{"name":"a","description":"b","input_schema":{"type":"object"}}]',
    '[{"type":"function","function":{"name":"a","description":"b","parameters":{"type":"object"}}}]',
  ]) t.same(parseTools(text), [tool])
  t.same(parseTools(' '), [])
  for (const [text, problem] of [['{}', /list/], ['[{}]', /Tool 1 has no name/], ['[{"name":"a","parameters":[]}]', /parameters of a/], ['[', /JSON/]] as const) {
    t.throws(() => parseTools(text), problem)
  }
})

t.test('errors are read from responses of each protocol', async t => {
  t.equal(readResponse('chat', '{"error":{"message":"no such model","code":"model_not_found"}}').error,
    'no such model')
  t.equal(readEvent('messages', '{"type":"error","error":{"type":"api_error","message":"cut"}}').error, 'cut')
  t.equal(readEvent('responses', '{"type":"error","message":"cut"}').error, 'cut')
  t.equal(readEvent('responses', '{"type":"response.failed","response":{"error":{"message":"cut"}}}').error,
    'cut')
  t.match(readResponse('chat', '<html>').error, /not valid JSON/)
})

t.test('reading an invalid event or response does not throw', async () => {
  fc.assert(fc.property(fc.constantFrom(...PROTOCOLS), fc.oneof(fc.json(), fc.string()), (protocol, text) => {
    readEvent(protocol, text)
    readResponse(protocol, text)
  }))
})

t.test('a value that is written as JavaScript evaluates to the same value', async t => {
  const odd = fc.constant(JSON.parse('{"__proto__":{"a":1},"a-b":-0}') as fc.JsonValue)
  fc.assert(fc.property(fc.oneof({ weight: 9, arbitrary: fc.jsonValue() }, odd), value => {
    const back: unknown = runInNewContext(`JSON.stringify(${javascript({ value })})`)
    t.equal(back, JSON.stringify({ value }))
  }))
})

t.test('the shell passes a quoted word unchanged', async t => {
  for (const text of ["it's", '$(id) `id` "$HOME" \\', "''", 'two\nlines', '-n', '']) {
    t.equal(execFileSync('sh', ['-c', `printf %s ${shell(text)}`], { encoding: 'utf8' }), text)
  }
})

t.test('the request has the fields, headers and path that its protocol requires', async t => {
  t.equal(callOf({ ...PROMPT, protocol: 'messages' }).body['max_tokens'], 1024, 'the Messages protocol requires max_tokens')
  t.ok(callOf({ ...PROMPT, protocol: 'messages' }).headers['anthropic-version'])
  t.equal(callOf({ ...PROMPT, protocol: 'generate', stream: true }).path,
    '/v1beta/models/m:streamGenerateContent?alt=sse')
  t.equal(callOf({ ...PROMPT, protocol: 'generate', model: 'a b?/ü' }).path,
    '/v1beta/models/a%20b%3F/%C3%BC:generateContent')
  t.notOk('temperature' in callOf(PROMPT).body, 'an empty field is not sent')
})

t.test('code samples contain the base URL and a placeholder for the key', async t => {
  for (const protocol of PROTOCOLS) {
    for (const { language, code } of snippets({ ...PROMPT, protocol, stream: true },
      'https://gateway.example')) {
      t.match(code, 'https://gateway.example', `${protocol}, ${language}`)
      t.match(code, 'YOUR_API_KEY', `${protocol}, ${language}`)
    }
  }
})

t.test('the base URL has an address that the browser can reach', async t => {
  const at = (url: string) => new URL(url)
  t.equal(baseUrlFor('http://0.0.0.0:8080', at('http://gateway.example:8081')), 'http://gateway.example:8080')
  t.equal(baseUrlFor('http://127.0.0.1:8080', at('http://localhost:8081')), 'http://127.0.0.1:8080')
  t.equal(baseUrlFor('http://127.0.0.1:8080', at('https://console.example')), 'https://console.example',
    'a loopback address is not reachable')
  t.equal(baseUrlFor('https://10.0.0.7:8443', at('https://10.0.0.7:8444')), 'https://10.0.0.7:8443')
  t.equal(baseUrlFor(null, at('http://127.0.0.1:8081')), 'http://127.0.0.1:8081')
})
