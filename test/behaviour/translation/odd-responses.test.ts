import t from 'tap'
import type { Test } from 'tap'
import type { JsonObject } from '../../../src/protocols/neutral/json.ts'
import { KEY } from '../../support/gateway.ts'
import { sse } from '../../support/translation.ts'
import { MESSAGE_START, chatStream, messageEnd, messagesEvents, startTranslating, textBlock } from '../../support/translating-gateway.ts'
import type { Response } from '../../support/translating-gateway.ts'

/*
 * Responses with the status of a success that are none, or not of the form that was asked for. As long as the client has no
 * head, it gets an error with a status.
 */

const NAMES = ['chat', 'responses', 'messages', 'generate'] as const
type Name = typeof NAMES[number]

const MESSAGES = [{ role: 'user', content: 'Hi' }]
/** Path and body of the request of each client. */
const REQUESTS: Readonly<Record<Name, (stream: boolean) => readonly [path: string, body: JsonObject]>> = {
  chat: stream => ['/v1/chat/completions', { model: 'm', stream, messages: MESSAGES }],
  responses: stream => ['/v1/responses', { model: 'm', stream, input: 'Hi' }],
  messages: stream => ['/v1/messages', { model: 'm', max_tokens: 99, stream, messages: MESSAGES }],
  generate: stream => [`/v1beta/models/m:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`, { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] }],
}

const MESSAGE_ITEM = { type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: 'Hello', annotations: [] }] }
const RESPONSE = { id: 'resp_1', object: 'response', created_at: 1, model: 'm', status: 'completed', output: [MESSAGE_ITEM], usage: { input_tokens: 7, output_tokens: 2 } }
const GEMINI = { candidates: [{ content: { role: 'model', parts: [{ text: 'Hello' }] }, finishReason: 'STOP', index: 0 }], usageMetadata: { promptTokenCount: 7, candidatesTokenCount: 2, totalTokenCount: 9 } }
const CHAT_USAGE = { prompt_tokens: 7, completion_tokens: 2, total_tokens: 9 }

/** A valid response of each upstream. */
const WHOLE: Readonly<Record<Name, JsonObject>> = {
  chat: { id: 'c', object: 'chat.completion', created: 1, model: 'm', choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'Hello' } }], usage: CHAT_USAGE },
  responses: RESPONSE,
  messages: { ...MESSAGE_START.message, content: [{ type: 'text', text: 'Hello' }], stop_reason: 'end_turn', usage: { input_tokens: 7, output_tokens: 2 } },
  generate: GEMINI,
}
const STREAMED: Readonly<Record<Name, string>> = {
  chat: chatStream({ delta: { role: 'assistant', content: 'Hello' } }, { delta: {}, finish_reason: 'stop' }, { usage: CHAT_USAGE }),
  responses: sse(
    { type: 'response.created', response: { ...RESPONSE, status: 'in_progress', output: [] } },
    { type: 'response.output_item.added', output_index: 0, item: { ...MESSAGE_ITEM, content: [] } },
    { type: 'response.output_text.delta', output_index: 0, content_index: 0, item_id: 'msg_1', delta: 'Hello' },
    { type: 'response.output_item.done', output_index: 0, item: MESSAGE_ITEM }, { type: 'response.completed', response: RESPONSE },
  ).toString(),
  messages: messagesEvents(MESSAGE_START, ...textBlock(0, 'Hello'), ...messageEnd()),
  generate: sse(GEMINI).toString(),
}
/** A stream whose first event is an error. */
const ERROR_FIRST: Readonly<Record<Name, string>> = {
  chat: sse({ error: { message: 'Too busy.', type: 'server_error', code: 503 } }).toString(),
  responses: sse({ type: 'error', code: 'server_error', message: 'Too busy.', param: null }).toString(),
  messages: messagesEvents({ type: 'error', error: { type: 'overloaded_error', message: 'Too busy.' } }),
  generate: sse({ error: { code: 503, message: 'Too busy.', status: 'UNAVAILABLE' } }).toString(),
}

/** The expected shape of an error for each client. */
const SHAPES: Readonly<Record<Name, (status: number) => JsonObject>> = {
  chat: () => ({ error: { type: String, message: String } }),
  responses: () => ({ error: { type: String, message: String } }),
  messages: () => ({ type: 'error', error: { type: String, message: String } }),
  generate: status => ({ error: { code: status, message: String, status: String } }),
}

const EVENTS = 'text/event-stream'
const raw = (body: string, type = 'application/json'): Response['body'] => res => {
  res.writeHead(200, { 'content-type': type })
  res.end(body)
}

/** Invalid responses, by their fault. */
const BROKEN: Readonly<Record<string, (upstream: Name) => Response['body']>> = {
  'truncated JSON': upstream => raw(JSON.stringify(WHOLE[upstream]).slice(0, -9)),
  'truncated JSON of 300 kB': upstream => raw(JSON.stringify({ ...WHOLE[upstream], padding: 'x'.repeat(300_000) }).slice(0, -9)),
  'HTML': () => raw('<html><body>Sign in</body></html>', 'text/html'),
  'an empty body': () => raw(''),
  'a stream without events': () => raw('', EVENTS),
  'JSON that is no response': () => raw('{"status":"ok"}'),
  'JSON called a stream': upstream => raw(JSON.stringify(WHOLE[upstream]), EVENTS),
  'a stream called JSON': upstream => raw(STREAMED[upstream]),
  'a stream that is cut in its first event': upstream => raw(STREAMED[upstream].slice(0, 60), EVENTS),
}
const FAILED: Readonly<Record<string, (upstream: Name) => Response['body']>> = {
  'an error with the status 200': () => raw('{"error":{"message":"Too busy.","code":503,"status":"UNAVAILABLE"}}'),
  'a stream that begins with an error': upstream => raw(ERROR_FIRST[upstream], EVENTS),
}

interface Outcome {
  readonly status: number
  readonly type: string | null
  readonly text: string
  readonly row: Record<string, unknown>
}

type Ask = (stream: boolean) => Promise<Outcome>

/** A gateway with an upstream that sends each given body twice: for a request without and with a stream. */
async function start(t: Test, from: Name, to: Name, bodies: readonly Response['body'][]): Promise<Ask> {
  const responses = bodies.flatMap(body => [{ body }, { body }])
  const { gateway } = await startTranslating(t, { up: { speaks: to, responses } }, ', retries: 0')
  return async stream => {
    const [path, body] = REQUESTS[from](stream)
    const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
    const response = await fetch(gateway.url + path, { method: 'POST', headers, body: JSON.stringify(body) })
    const id = response.headers.get('x-gateway-request-id')
    const text = await response.text()
    const row = await gateway.waitForLog(line => line['msg'] === 'exchange' && line['request'] === id)
    return { status: response.status, type: response.headers.get('content-type'), text, row }
  }
}

for (const from of NAMES) {
  for (const to of NAMES.filter(name => name !== from)) {
    t.test(`${from} -> ${to}: an invalid response gives a 502 in the shape of the client`, async t => {
      // Gemini's stream may be one object.
      const faults = Object.keys(BROKEN).filter(fault => to !== 'generate' || fault !== 'JSON called a stream')
      const ask = await start(t, from, to, faults.map(fault => BROKEN[fault]?.(to) as Response['body']))
      for (const fault of faults) {
        for (const stream of [false, true]) {
          const { status, type, text, row } = await ask(stream)
          const name = `${fault}, ${stream ? 'stream' : 'unary'}`
          t.strictSame([status, type], [502, 'application/json'], name)
          t.match(JSON.parse(text), SHAPES[from](502), name)
          t.match(row, { status: 502, end: /^(error|upstream_cut)$/, error: /^upstream_(invalid|cut)$/ }, name)
        }
      }
    })

    t.test(`${from} -> ${to}: an error with status 200 gets an error status`, async t => {
      const ask = await start(t, from, to, Object.values(FAILED).map(respond => respond(to)))
      for (const fault of Object.keys(FAILED)) {
        for (const stream of [false, true]) {
          const { status, type, text, row } = await ask(stream)
          const name = `${fault}, ${stream ? 'stream' : 'unary'}`
          t.ok([502, 503, 529].includes(status), `${name}: ${status}`)
          t.equal(type, 'application/json', name)
          t.match(JSON.parse(text), SHAPES[from](status), name)
          t.match(text, /Too busy\./, name)
          t.match(row, { status, end: 'error' }, name)
        }
      }
    })

    t.test(`${from} -> ${to}: the client gets a body or a stream as requested, whichever the upstream sends`, async t => {
      const ask = await start(t, from, to, [raw(STREAMED[to], EVENTS), raw(JSON.stringify(WHOLE[to]))])
      const outcomes = [await ask(false), await ask(true), await ask(false), await ask(true)]
      for (const [n, { status, type, text, row }] of outcomes.entries()) {
        const name = ['a stream, asked for a body', 'a stream', 'a body', 'a body, asked for a stream'][n] as string
        t.equal(status, 200, name)
        t.match(type, n % 2 === 0 ? 'application/json' : EVENTS, name)
        t.match(n % 2 === 0 ? JSON.stringify(JSON.parse(text)) : text, '"Hello"', name)
        t.match(row, { status: 200, end: 'complete', input_tokens: 7, output_tokens: 2 }, name)
      }
    })
  }
}

for (const name of NAMES) {
  for (const stream of [true, false]) {
    if (name === 'chat') continue
    t.test(`${name} <- chat: a tool call without a name gives 502, ${stream ? 'with' : 'without'} stream: true`, async t => {
      const message = { role: 'assistant', content: null, tool_calls: [{ id: 'call_1', type: 'function', function: { arguments: '{}' } }] }
      const { gateway } = await startTranslating(t, { up: { speaks: 'chat', responses: [{ body: { id: 'c', object: 'chat.completion', choices: [{ index: 0, message, finish_reason: 'tool_calls' }] } }] } })
      const [path, body] = REQUESTS[name](stream)
      const response = await fetch(gateway.url + path, { method: 'POST', headers: { 'x-api-key': KEY, 'content-type': 'application/json' }, body: JSON.stringify(body) })
      t.equal(response.status, 502)
      t.match(await response.text(), /without a name/)
    })
  }
}
