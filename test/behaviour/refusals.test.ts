import * as http2 from 'node:http2'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { KEY, startTestGateway } from '../support/gateway.ts'
import { H2Request, openSession } from '../support/http2.ts'
import { startUpstream } from '../support/upstream.ts'

let heard = 0
const upstream = await startUpstream(t, (req, res) => {
  heard++
  req.resume()
  res.end('{}')
})
const LIMITED = 'sk-limited-0123456789'
const gateway = await startTestGateway(t, `
server: { listen: 127.0.0.1:0, body_limit: 1kb }
upstreams: { up: { url: "${upstream.url}" } }
routes:
  - { model: ["gpt-*", m], to: up }
  - { path: /v1/files*, to: up }
  - { path: /v1/images/edits, to: up }
keys:
  - { name: test, key: ${KEY} }
  - { name: limited, key: ${LIMITED}, models: [m] }
`)

type Body = { type?: string; error: Record<string, unknown>; request_id?: string }

/** The shape of an error in each protocol. */
const SHAPES: Record<string, {
  path: string
  error: (status: number, code: string) => object
  top: (id: string) => object
}> = {
  chat: {
    path: '/v1/chat/completions',
    error: (status, code) => ({ message: String, type: status >= 500 ? 'server_error' : String, code }),
    top: () => ({}),
  },
  messages: {
    path: '/v1/messages',
    error: status => ({ type: MESSAGES_TYPES[status] ?? 'invalid_request_error', message: String }),
    top: id => ({ type: 'error', request_id: id }),
  },
  generate: {
    path: '/v1beta/models/m:generateContent',
    error: (status, code) => ({
      code: status, message: String, status: GENERATE_STATUSES[status] ?? 'INVALID_ARGUMENT',
      details: [{ reason: code.toUpperCase() }],
    }),
    top: () => ({}),
  },
}
const MESSAGES_TYPES: Record<number, string> = {
  401: 'authentication_error', 403: 'permission_error', 404: 'not_found_error', 413: 'request_too_large',
}
const GENERATE_STATUSES: Record<number, string> = {
  401: 'UNAUTHENTICATED', 403: 'PERMISSION_DENIED', 404: 'NOT_FOUND',
}
/** Codes that the clients of the protocol know. */
const CHAT_CODES: Record<string, string> = { missing_key: 'invalid_api_key', invalid_key: 'invalid_api_key' }

interface Refusal {
  what: string
  status: number
  code: string
  body?: string | Uint8Array<ArrayBuffer>
  path?: string
  method?: string
  headers?: Record<string, string | undefined>
  only?: readonly string[]
}

const OK = '{"model":"m","messages":[]}'
const BODY_MODEL = ['chat', 'messages']
const REFUSALS: Refusal[] = [
  { what: 'invalid JSON', status: 400, code: 'invalid_json', body: '{"model":"m",}' },
  { what: 'JSON that is cut', status: 400, code: 'invalid_json', body: '{"model":"m"' },
  { what: 'two JSON texts', status: 400, code: 'invalid_json', body: '{"model":"m"}{"model":"gpt-4"}' },
  {
    what: 'bytes that are not UTF-8', status: 400, code: 'invalid_json',
    body: new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]),
  },
  {
    what: 'a byte order mark of UTF-16', status: 400, code: 'invalid_json',
    body: new Uint8Array([0xff, 0xfe, 0x7b, 0, 0x7d, 0]),
  },
  { what: 'a JSON array', status: 400, code: 'invalid_json', body: '[]' },
  { what: 'a JSON string', status: 400, code: 'invalid_json', body: '"model"' },
  { what: 'an empty body', status: 400, code: 'empty_body', body: '' },
  { what: 'a form', status: 400, code: 'wrong_content_type', headers: {
    'content-type': 'application/x-www-form-urlencoded',
  } },
  { what: 'text', status: 400, code: 'wrong_content_type', headers: { 'content-type': 'text/plain' } },
  {
    what: 'an unknown content coding', status: 400, code: 'wrong_content_encoding',
    headers: { 'content-encoding': 'compress' },
  },
  {
    what: 'a wrong content coding', status: 400, code: 'wrong_content_encoding',
    headers: { 'content-encoding': 'gzip' },
  },
  {
    what: 'a body above the limit', status: 413, code: 'body_too_large',
    body: `{"model":"m","x":"${'x'.repeat(1100)}"}`,
  },
  { what: 'no model', status: 400, code: 'model_required', body: '{"messages":[]}', only: BODY_MODEL },
  { what: 'an empty model', status: 400, code: 'model_required', body: '{"model":""}', only: BODY_MODEL },
  { what: 'a null model', status: 400, code: 'model_required', body: '{"model":null}', only: BODY_MODEL },
  {
    what: 'a model that is a number', status: 400,
    code: 'model_required', body: '{"model":1}', only: BODY_MODEL,
  },
  {
    what: 'a model that is an object', status: 400, code: 'model_required',
    body: '{"model":{"model":"m"}}', only: BODY_MODEL,
  },
  {
    what: 'two different models', status: 400, code: 'model_ambiguous',
    body: '{"model":"m","model":"gpt-4"}', only: BODY_MODEL,
  },
  {
    what: 'two different models in two spellings of the member', status: 400, code: 'model_ambiguous',
    body: '{"model":"m","mod\\u0065l":"gpt-4"}', only: BODY_MODEL,
  },
  {
    what: 'an unknown model', status: 404, code: 'model_not_found',
    body: '{"model":"no-such-model"}', only: BODY_MODEL,
  },
  {
    what: 'a model with a very long name', status: 404, code: 'model_not_found',
    body: `{"model":"gpt-${'x'.repeat(500)}"}`, only: BODY_MODEL,
  },
  {
    what: 'a model that the key may not use', status: 403, code: 'model_not_allowed',
    body: '{"model":"gpt-4"}', headers: { authorization: `Bearer ${LIMITED}` }, only: BODY_MODEL,
  },
  { what: 'no key', status: 401, code: 'missing_key', headers: { authorization: undefined } },
  { what: 'a wrong key', status: 401, code: 'invalid_key', headers: { authorization: 'Bearer sk-wrong' } },
  {
    what: 'a key with more characters after a valid key', status: 401, code: 'invalid_key',
    headers: { authorization: `Bearer ${KEY}x` },
  },
  {
    what: 'a key in the scheme Basic', status: 401, code: 'missing_key',
    headers: { authorization: `Basic ${KEY}` },
  },
  { what: 'a wrong method', status: 405, code: 'method_not_allowed', method: 'PUT' },
  { what: 'an unknown method', status: 405, code: 'method_not_allowed', method: 'PURGE' },
]

for (const [protocol, { path, error, top }] of Object.entries(SHAPES)) {
  for (const { what, status, code, body = OK, method = 'POST', headers = {}, only } of REFUSALS) {
    if (only && !only.includes(protocol)) continue
    t.test(`${protocol}: ${what} gets ${status} ${code}, and nothing goes upstream`, async t => {
      const before = heard
      const sent = { 'authorization': `Bearer ${KEY}`, 'content-type': 'application/json', ...headers }
      const answer = await fetch(gateway.url + path, {
        method, body,
        headers: Object.entries(sent).filter((pair): pair is [string, string] => pair[1] !== undefined),
      })
      t.equal(answer.status, status)
      t.equal(answer.headers.get('content-type'), 'application/json')
      t.equal(answer.headers.get('x-gateway-version'), '0.0.0-test')
      t.equal(answer.headers.get('via'), '1.1 model-gateway')
      const id = answer.headers.get('x-gateway-request-id') as string
      t.match(id, /^[0-9a-f-]{36}$/)
      const json = (await answer.json()) as Body
      t.match(json, top(id))
      t.match(json.error, error(status, protocol === 'chat' ? (CHAT_CODES[code] ?? code) : code))
      t.notMatch(JSON.stringify(json), /sk-/, 'no key is repeated')
      if (status === 401) {
        t.equal(answer.headers.get('x-should-retry'), 'false')
        t.equal(answer.headers.get('www-authenticate'), 'Bearer')
      }
      if (status === 405) t.equal(answer.headers.get('allow'), 'POST')
      t.equal(heard, before)
      const line = await gateway.waitForLog(each => each.msg === 'exchange' && each.request === id)
      t.equal(line.error, code)
      t.equal(line.status, status)
    })
  }
}

t.test('generate: a model in the path is refused if no route serves it, the key may ' +
  'not use it, or the name is too long', async t => {
  const endless = `gpt-${'x'.repeat(300)}`
  for (
    const [model, key, status] of [['none', KEY, 404], ['gpt-4', LIMITED, 403], [endless, KEY, 404]] as const
  ) {
    const answer = await fetch(`${gateway.url}/v1beta/models/${model}:streamGenerateContent?alt=sse`, {
      method: 'POST', body: '{}', headers: { 'x-goog-api-key': key, 'content-type': 'application/json' },
    })
    t.equal(answer.status, status)
    t.match(await answer.json(), { error: { code: status, status: GENERATE_STATUSES[status] } })
  }
  t.equal(heard, 0)
})

for (const [what, path, key, status] of [
  ['an unknown path below /v1', '/v1/nothing', KEY, 404],
  ['an unknown path outside /v1', '/nothing', KEY, 404],
  ['an unknown path outside /v1, without a key', '/nothing', null, 404],
  ['the root path', '/', null, 404],
  ['an API path without a key', '/v1/nothing', null, 401],
  ['a restricted key on a path without a model', '/v1/files', LIMITED, 403],
] as const) {
  t.test(`${what} gets ${status}`, async t => {
    const answer = await fetch(gateway.url + path, {
      headers: key === null ? {} : { authorization: `Bearer ${key}` },
    })
    t.equal(answer.status, status)
    t.match(await answer.json(), { error: { message: String } })
    t.equal(heard, 0)
  })
}

t.test('the error response to HEAD has a content-length and no body', async t => {
  for (const path of ['/', '/api/hello', '/v1/chat/completions']) {
    const answer = await fetch(gateway.url + path, { method: 'HEAD', headers: { 'x-api-key': KEY } })
    t.equal(answer.status, path === '/v1/chat/completions' ? 405 : 404)
    t.ok(Number(answer.headers.get('content-length')) > 0)
    t.equal(await answer.text(), '')
  }
})

t.test('a WebSocket endpoint requested over HTTP/2 gets 426', async t => {
  const session = await openSession(t, gateway.url)
  const request = new H2Request(session, 'GET', '/v1/realtime?model=m')
  t.equal((await request.head)[':status'], 426)
  await request.closed
})

t.test('over HTTP/2 an error response has the shape of the protocol of the client, and ends the stream', async t => {
  const session = await openSession(t, gateway.url)
  for (const [protocol, { path, error, top }] of Object.entries(SHAPES)) {
    const request = new H2Request(session, 'POST', path, { 'content-type': 'application/json' }, false)
    request.stream.end('[]')
    const head = await request.head
    t.equal(head[':status'], 400)
    t.equal(head['content-type'], 'application/json')
    t.equal(head.via, '2.0 model-gateway')
    t.equal(await request.closed, 0)
    const json = JSON.parse(request.text) as Body
    t.match(json, top(head['x-gateway-request-id'] as string), protocol)
    t.match(json.error, error(400, 'invalid_json'))
  }
  t.equal(heard, 0)
})

// Ends the test file, because the shared gateway keeps the process alive.
t.end()

for (const [what, key, status] of [['of a request without a key', 'no', 401], ['of a request that is too large', KEY, 413]] as const) {
  t.test(`over HTTP/2 the body ${what} is read to its end after the refusal`, async t => {
    const session = await openSession(t, gateway.url)
    const headers = { 'content-type': 'application/json', 'x-api-key': key }
    const request = new H2Request(session, 'POST', '/v1/chat/completions', headers, false)
    const sent = new Promise(resolve => request.stream.write(Buffer.alloc(1024 * 1024, ' '), resolve))
    t.match(await request.head, { ':status': status })
    await sent
    t.notOk(request.stream.closed)
    request.stream.end()
    t.equal(await request.closed, 0)
    t.ok(request.ended)
  })
}

t.test('over HTTP/2 a refused client that sends its body slowly is not cut off', async t => {
  const hasty = await startTestGateway(t, `
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: up }]
timeouts: { idle: 300ms }
`)
  const session = await openSession(t, hasty.url)
  const headers = { 'content-type': 'application/json', 'x-api-key': 'no' }
  const request = new H2Request(session, 'POST', '/v1/chat/completions', headers, false)
  t.match(await request.head, { ':status': 401 })
  for (let piece = 0; piece < 8; piece++) {
    request.stream.write(' ')
    await sleep(100)
  }
  t.notOk(request.stream.closed)
  request.stream.end()
  t.equal(await request.closed, 0)
})

t.test('over HTTP/2 a refused client that neither reads the response nor sends more of its body is cut off', async t => {
  // timeouts.idle is longer than the gateway waits for the rest of a body.
  const hasty = await startTestGateway(t, `
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: up }]
timeouts: { idle: 6s }
`)
  const session = http2.connect(hasty.url, { settings: { initialWindowSize: 0 } })
  t.teardown(() => session.destroy())
  const headers = { 'content-type': 'application/json', 'x-api-key': 'no' }
  const request = new H2Request(session, 'POST', '/v1/chat/completions', headers, false)
  request.stream.write('{')
  t.match(await request.head, { ':status': 401 })
  const head = new H2Request(session, 'HEAD', '/v1/chat/completions', headers, false)
  t.equal(await Promise.race([request.closed, sleep(9_000, 'open')]), http2.constants.NGHTTP2_CANCEL)
  t.equal(await head.closed, 0, 'the response to HEAD has no body that the client must read')
})

t.test('if a path is served only with a model, the 404 says that the model is missing', async t => {
  const said = async (path: string, init: RequestInit = {}) => {
    const headers = { authorization: `Bearer ${KEY}` }
    const answer = await fetch(`${gateway.url}${path}`, { headers, ...init })
    t.equal(answer.status, 404)
    const { error } = await answer.json() as Body
    t.equal(error['code'], 'unknown_path')
    return error['message']
  }
  const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
  t.equal(
    await said('/v1/responses', { method: 'POST', headers, body: '{"input":"hi"}' }),
    'no route serves /v1/responses for a request without a model',
  )
  t.equal(await said('/nowhere'), 'no route serves /nowhere')
})
