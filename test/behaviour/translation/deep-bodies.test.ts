import t from 'tap'
import { MAX_JSON_DEPTH } from '../../../src/base/json-size.ts'
import type { JsonObject } from '../../../src/protocols/neutral/json.ts'
import { KEY } from '../../support/gateway.ts'
import { startTranslating } from '../../support/translating-gateway.ts'
import { requestBetween } from '../../support/translation.ts'

/** JSON text of a schema whose properties are nested `times` times, with two levels each. */
const schema = (times: number): string => '{"type":"object","properties":{"a":'.repeat(times) + '{}' + '}}'.repeat(times)
const nested = (times: number): string => '[{"a":'.repeat(times) + '1' + '}]'.repeat(times)

interface DeepClient {
  readonly path: string
  /** The body with a schema in a tool. */
  readonly body: (schema: string) => string
  readonly named: string
  readonly shape: JsonObject
}

const CLIENTS: Readonly<Record<string, DeepClient>> = {
  chat: {
    path: '/v1/chat/completions', body: parameters => `{"model":"m","messages":[{"role":"user","content":"Hi"}],"tools":[{"type":"function","function":{"name":"f","parameters":${parameters}}}]}`,
    named: 'tools[0].function.parameters', shape: { type: 'invalid_request_error', param: /^tools\[0\].function.parameters/ },
  },
  responses: {
    path: '/v1/responses', body: parameters => `{"model":"m","input":"Hi","tools":[{"type":"function","name":"f","parameters":${parameters}}]}`,
    named: 'tools[0].parameters', shape: { type: 'invalid_request_error', param: /^tools\[0\].parameters/ },
  },
  messages: {
    path: '/v1/messages', body: parameters => `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"Hi"}],"tools":[{"name":"f","input_schema":${parameters}}]}`,
    named: 'tools[0].input_schema', shape: { type: 'invalid_request_error' },
  },
  generate: {
    path: '/v1beta/models/m:generateContent', body: parameters => `{"contents":[{"parts":[{"text":"Hi"}]}],"tools":[{"functionDeclarations":[{"name":"f","parameters":${parameters}}]}]}`,
    named: 'tools[0].functionDeclarations[0].parameters', shape: { code: 400, status: 'INVALID_ARGUMENT' },
  },
}

for (const [client, { path, body, named, shape }] of Object.entries(CLIENTS)) {
  for (const to of Object.keys(CLIENTS).filter(name => name !== client)) {
    t.test(`${client} to ${to}: a schema that is nested too deeply is refused and named, and a flatter schema is sent`, async t => {
      const { gateway, seen } = await startTranslating(t, { up: { speaks: to, responses: [{ status: 400, body: {} }] } })
      const send = async (text: string): Promise<[number, string]> => {
        const response = await fetch(gateway.url + path, { method: 'POST', body: text, headers: { 'x-api-key': KEY, 'content-type': 'application/json' } })
        return [response.status, await response.text()]
      }
      const [status, text] = await send(body(schema(4000)))
      t.equal(status, 400, text)
      t.match(JSON.parse(text), { error: shape })
      t.match((JSON.parse(text) as { error: { message: string } }).error.message, named)
      t.strictSame(seen, { up: [] })
      await send(body(schema(MAX_JSON_DEPTH / 2 - 10)))
      t.equal(seen['up']?.length, 1, 'the flatter schema is sent')
    })
  }
}

const chatCall = (text: string): JsonObject => ({ messages: [{ role: 'assistant', tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: text } }] }] })

for (const to of ['messages', 'generate', 'converse']) {
  t.test(`to ${to}: tool call arguments that are nested too deeply are refused`, async t => {
    t.throws(() => requestBetween('chat', to, chatCall(nested(5000))), { code: 'not_translatable', param: 'messages[].tool_calls[]' })
    t.doesNotThrow(() => JSON.stringify(requestBetween('chat', to, chatCall(nested(400)))))
  })
}

t.test('a response that is nested too deeply gives 502, and arguments that are nested too deeply stay text', async t => {
  const chat = (text: string): string => `{"choices":[{"finish_reason":"stop","message":{"content":"a","tool_calls":[{"id":"a","function":{"name":"f","arguments":${text}}}]}}]}`
  const responses = [chat(`{"a":${nested(50_000)}}`), chat(JSON.stringify(nested(5000)))].map(text => ({
    body: (res: { writeHead(status: number, headers: Record<string, string>): void, end(text: string): void }) => {
      res.writeHead(200, { 'content-type': 'application/json' })
      res.end(text)
    },
  }))
  const { gateway } = await startTranslating(t, { up: { speaks: 'chat', responses } })
  const body = JSON.stringify({ model: 'm', max_tokens: 5, messages: [{ role: 'user', content: 'Hi' }] })
  const ask = (): Promise<Response> => fetch(`${gateway.url}/v1/messages`, { method: 'POST', body, headers: { 'x-api-key': KEY, 'content-type': 'application/json' } })
  const refused = await ask()
  t.equal(refused.status, 502)
  t.match(await refused.json(), { error: { type: 'api_error', message: /nested more than 1000 levels deep/ } })
  t.match(await (await ask()).json(), { content: [{}, { type: 'tool_use', input: { arguments: nested(5000) } }] })
})

for (const stream of [false, true]) {
  for (const at of ['first', 'second']) {
    t.test(`if the ${at} event is nested too deeply, the error says so, ${stream ? 'with' : 'without'} stream: true`, async t => {
      const chunk = (value: string): string => `data: {"choices":[{"index":0,"delta":{"content":"a"},"extra":${value}}]}\n\n`
      const events = (at === 'first' ? '' : chunk('1')) + chunk(nested(5000))
      const { gateway } = await startTranslating(t, { up: { speaks: 'chat', responses: [{
        body: res => void res.writeHead(200, { 'content-type': 'text/event-stream' }).write(events),
      }] } }, ', retries: 0')
      const body = JSON.stringify({ model: 'm', max_tokens: 5, stream, messages: [{ role: 'user', content: 'Hi' }] })
      const response = await fetch(`${gateway.url}/v1/messages`, { method: 'POST', body, headers: { 'x-api-key': KEY, 'content-type': 'application/json' } })
      t.equal(response.status, stream && at === 'second' ? 200 : 502)
      let text = ''
      // A started stream is cut after its error event.
      await response.body?.pipeThrough(new TextDecoderStream()).pipeTo(new WritableStream({ write: piece => { text += piece } })).catch(() => {})
      t.match(text, /nested more than 1000 levels deep/)
    })
  }
}

const LONG: Readonly<Record<string, readonly [from: string, to: string, body: JsonObject]>> = {
  'parts of messages of one role': ['messages', 'generate', {
    messages: ['user', 'user'].map(role => ({ role, content: Array.from({ length: 160_000 }, () => ({ type: 'text', text: 'a' })) })),
  }],
  'parts of items of one role': ['responses', 'chat', {
    input: ['user', 'user'].map(role => ({ role, content: Array.from({ length: 160_000 }, () => ({ type: 'input_text', text: 'a' })) })),
  }],
  'pictures of a result': ['responses', 'chat', {
    input: [
      { type: 'function_call', call_id: 'a', name: 'f', arguments: '{}' },
      { type: 'function_call_output', call_id: 'a', output: Array.from({ length: 160_000 }, () => ({ type: 'input_image', image_url: 'https://example.com/a.png' })) },
    ],
  }],
  'parameters of a data URL': ['chat', 'messages', { messages: [{ role: 'user', content: [{ type: 'file', file: { file_data: `data:${';a'.repeat(4_000_000)}` } }] }] }],
  'a picture as a data URL': ['chat', 'messages', { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: `data:image/png;charset=x;BASE64,${'a'.repeat(8_000_000)}` } }] }] }],
}

for (const [name, [from, to, body]] of Object.entries(LONG)) {
  t.test(`a very long body is translated: ${name}`, async t => {
    t.doesNotThrow(() => requestBetween(from, to, body))
  })
}
