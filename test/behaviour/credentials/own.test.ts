import { once } from 'node:events'
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import t from 'tap'
import type { Test } from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import { openBooks, usedIn } from '../billing/books.ts'
import { KEY } from '../../support/gateway.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'

const OWN = 'sk-ant-oat01-own-0123456789'
const OPERATOR = 'sk-operator-0123456789'
const OK = JSON.stringify({ choices: [{ message: { content: 'x' } }], usage: { prompt_tokens: 100, completion_tokens: 10 } })
const PRICES = 'models: { m: { price: { input: 3, output: 15 } } }'
/** 100 tokens in and 10 out, in 10^-12 USD. */
const COST = 450_000_000n

type Respond = (res: ServerResponse, req: IncomingMessage) => void

const ok: Respond = res => void res.end(OK)
const refuse = (status: number, headers: Record<string, string> = {}): Respond => res => {
  res.writeHead(status, { 'content-type': 'application/json', ...headers }).end('{"error":{"message":"no","code":"from_upstream"}}')
}

/** An upstream that keeps the headers of its requests. */
async function startRecorded(t: Test, respond: Respond) {
  const seen: IncomingHttpHeaders[] = []
  const { url, server } = await startUpstream(t, async (req, res) => {
    seen.push(req.headers)
    await bodyOf(req)
    res.setHeader('content-type', 'application/json')
    respond(res, req)
  })
  return { url, server, seen }
}

/** One upstream for the client's own credential, and one of the operator. */
async function start(t: Test, { own = ok, operator = ok, to = 'own', route = '', keys = '', settings = '' }: {
  own?: Respond, operator?: Respond, to?: string, route?: string, keys?: string, settings?: string
} = {}) {
  const upstreams = { own: await startRecorded(t, own), operator: await startRecorded(t, operator) }
  const books = await openBooks(t, `
upstreams:
  own: { url: "${upstreams.own.url}", websocket: true, auth: { client: true } ${settings} }
  operator: { url: "${upstreams.operator.url}", websocket: true, auth: { bearer: ${OPERATOR} } }
routes: [{ to: ${to}${route} }]
${PRICES}
${keys}`)
  const ask = async (headers: Record<string, string>, more: object = {}, path = '/v1/chat/completions') => {
    const response = await fetch(books.gateway.url + path, {
      method: 'POST', headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ model: 'm', max_tokens: 10, messages: [{ role: 'user', content: 'x' }], ...more }),
    })
    return { status: response.status, headers: response.headers, json: await response.json() as Record<string, unknown> }
  }
  return { ...upstreams, books, ask }
}

const BOTH = { 'x-gateway-key': KEY, 'authorization': `Bearer ${OWN}` }

t.test("the client's own credential goes unchanged in its header, and the row says that the client pays", async t => {
  const { own, books, ask } = await start(t)
  for (const [name, value] of [['authorization', `Bearer ${OWN}`], ['x-api-key', OWN], ['api-key', OWN], ['x-goog-api-key', OWN], ['authorization', `Basic ${OWN}`]] as const) {
    const { status } = await ask({ 'x-gateway-key': KEY, [name]: value, 'anthropic-beta': 'oauth-2025-04-20', 'chatgpt-account-id': 'acc-1' })
    t.equal(status, 200)
    const headers = own.seen.at(-1)
    t.equal(headers?.[name], value, name)
    t.equal(headers?.['anthropic-beta'], 'oauth-2025-04-20')
    t.equal(headers?.['chatgpt-account-id'], 'acc-1')
    t.notMatch(JSON.stringify(headers), KEY)
    t.notOk('x-gateway-key' in (headers ?? {}))
  }
  const rows = [...(await books.close()).values()]
  t.equal(rows.length, 5)
  for (const row of rows) {
    t.match(row, { key: 'test', upstream: 'own', billed: 'client', costPico: 0n, attempts: [{ billed: 'client', costUsd: '0.00045' }] })
    t.match(usedIn(row), { input: 100, output: 10 })
  }
})

t.test('an upstream of the operator never gets it, and x-gateway-key is a key there too', async t => {
  const { operator, own, books, ask } = await start(t, { to: 'operator' })
  t.equal((await ask({ ...BOTH, 'x-api-key': `${OWN}-2`, 'x-copy': OWN })).status, 200)
  t.equal((await ask({ 'x-gateway-key': KEY })).status, 200)
  for (const headers of operator.seen) {
    t.equal(headers.authorization, `Bearer ${OPERATOR}`)
    t.notMatch(JSON.stringify(headers), OWN)
    t.notMatch(JSON.stringify(headers), KEY)
  }
  t.equal(own.seen.length, 0)
  for (const row of (await books.close()).values()) t.match(row, { billed: null, costPico: COST })
})

t.test('only x-gateway-key is looked up when it is there', async t => {
  const { own, ask } = await start(t)
  t.match(await ask({ 'x-gateway-key': 'sk-wrong-0123456789', 'authorization': `Bearer ${KEY}` }), { status: 401, json: { error: { code: 'invalid_api_key' } } })
  t.match(await ask({ 'x-gateway-key': '', 'authorization': `Bearer ${KEY}` }), { status: 401, json: { error: { code: 'invalid_api_key', message: /no API key was sent/ } } })
  t.equal(own.seen.length, 0)
  // The own credentials are no guesses: wrong keys of an address are limited at 100.
  for (let n = 0; n < 150; n++) await ask({ 'x-gateway-key': KEY, 'x-api-key': `sk-other-0123456789-${n}` })
  t.match(await ask({ 'x-api-key': 'sk-wrong' }), { status: 401 })
})

t.test('without an own credential the target refuses in the shape of the client, and says how to send both', async t => {
  const { own, ask } = await start(t)
  for (const headers of [{ authorization: `Bearer ${KEY}` }, { 'x-api-key': KEY }, { 'x-gateway-key': KEY }] as Record<string, string>[]) {
    t.match(await ask(headers), { status: 401, json: { error: { code: 'own_credential_required', message: /x-gateway-key.*authorization, x-api-key/ } } })
    const messages = await ask(headers, {}, '/v1/messages')
    t.match(messages, { status: 401, json: { type: 'error', error: { type: 'authentication_error', message: /x-gateway-key/ } } })
    t.equal(messages.headers.get('x-should-retry'), 'false')
  }
  t.equal(own.seen.length, 0)
})

t.test('a listed target of the operator serves a request without an own credential, or whose target fails', async t => {
  const { own, operator, books, ask } = await start(t, { own: refuse(503), to: '[own, operator]' })
  t.equal((await ask({ 'x-gateway-key': KEY })).status, 200)
  t.equal(own.seen.length, 0)
  t.equal((await ask(BOTH)).status, 200)
  t.equal(own.seen[0]?.authorization, `Bearer ${OWN}`)
  t.strictSame(operator.seen.map(({ authorization }) => authorization), [`Bearer ${OPERATOR}`, `Bearer ${OPERATOR}`])
  t.notMatch(JSON.stringify(operator.seen), OWN)
  for (const row of (await books.close()).values()) t.match(row, { billed: null, costPico: COST, upstream: 'operator' })
})

for (const status of [401, 402, 403]) {
  for (const to of ['own', '[own, operator]']) {
    t.test(`a ${status} to the client's credential goes to the client as it is, and is no fault of the upstream, to ${to}`, async t => {
      const { own, operator, books, ask } = await start(t, { own: refuse(status, { 'x-told': 'yes' }), to })
      for (let n = 0; n < 12; n++) {
        const { status: got, json, headers } = await ask(BOTH, { stream: n % 2 === 0 })
        t.equal(got, status)
        t.match(json, { error: { code: 'from_upstream' } })
        t.equal(headers.get('x-told'), 'yes')
      }
      t.equal(own.seen.length, 12, 'the circuit stays closed')
      t.equal(operator.seen.length, 0)
      const { logged } = books.gateway
      t.notOk(logged.some(({ level }) => Number(level) >= 50), 'nothing for the operator')
      t.notMatch(JSON.stringify(logged), OWN)
      for (const row of (await books.close()).values()) t.match(row, { billed: null, status, attempts: [{ outcome: 'error_answer', status }] })
    })
  }
}

t.test("a client's rate limit does not open the circuit for others", async t => {
  let isLimited = true
  const { ask } = await start(t, { own: (res, req) => (isLimited ? refuse(429, { 'retry-after': '100' }) : ok)(res, req), route: ', retries: 0' })
  for (let n = 0; n < 12; n++) t.equal((await ask(BOTH)).status, 429)
  isLimited = false
  t.equal((await ask(BOTH)).status, 200)
})

t.test('an error that echoes the credential is masked', async t => {
  const { books, ask } = await start(t, {
    own: (res, { headers }) => void res.writeHead(400, { 'x-echo': String(headers.authorization) }).end(JSON.stringify({ error: { message: `bad ${headers.authorization}` } })),
  })
  const { headers, json } = await ask(BOTH)
  t.equal(headers.get('x-echo'), `Bearer ${'*'.repeat(OWN.length)}`)
  t.strictSame(json, { error: { message: `bad Bearer ${'*'.repeat(OWN.length)}` } })
  const [row] = (await books.close()).values()
  t.match(row?.attempts[0]?.errorText, '****')
  t.notMatch(row?.attempts[0]?.errorText, OWN)
})

t.test('budgets leave out what the client pays, and count the rest', async t => {
  const keys = `keys: [{ name: poor, key: ${KEY}, limits: { budget: { usd: 0.0006, per: month } } }]`
  const { ask } = await start(t, { keys, own: (res, req) => (req.headers['x-fail'] === undefined ? ok : refuse(500))(res, req), to: '[own, operator]' })
  for (let n = 0; n < 5; n++) t.equal((await ask(BOTH)).status, 200)
  t.equal((await ask({ 'x-gateway-key': KEY })).status, 200, 'nothing was spent')
  t.match(await ask({ 'x-gateway-key': KEY }), { status: 429, json: { error: { code: 'insufficient_quota' } } })
})

t.test('a spent budget, an unpriced model and an unpriced path do not stop what the client pays', async t => {
  const keys = `keys: [{ name: poor, key: ${KEY}, limits: { budget: { usd: 0, per: month } } }]`
  const { ask } = await start(t, { keys })
  t.equal((await ask(BOTH)).status, 200)
  t.equal((await ask(BOTH, { model: 'without-a-price' })).status, 200)
  t.equal((await ask(BOTH, {}, '/v1/videos')).status, 200)
})

t.test('requests, tokens and concurrency count', async t => {
  const keys = `keys: [{ name: slow, key: ${KEY}, limits: { requests_per_minute: 2 } }]`
  const { ask } = await start(t, { keys })
  t.equal((await ask(BOTH)).status, 200)
  t.equal((await ask(BOTH)).status, 200)
  t.match(await ask(BOTH), { status: 429, json: { error: { code: 'rate_limit_exceeded' } } })
})

t.test('of a stream that another target continues, each pays its own part', async t => {
  const chunk = (content: string) => `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`
  const stream: Respond = res => {
    res.setHeader('content-type', 'text/event-stream')
    res.write(chunk('The first half, '), () => res.destroy())
  }
  const rest: Respond = res => {
    res.setHeader('content-type', 'text/event-stream')
    res.end(`${chunk('the second half.')}data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n`
      + 'data: {"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":10}}\n\ndata: [DONE]\n\n')
  }
  const { books } = await start(t, { own: stream, operator: rest, to: '[own, { upstream: operator, prefill: true }]', route: ', resume: continue' })
  const response = await fetch(`${books.gateway.url}/v1/chat/completions`, {
    method: 'POST', headers: { 'content-type': 'application/json', ...BOTH },
    body: JSON.stringify({ model: 'm', stream: true, messages: [{ role: 'user', content: 'x' }] }),
  })
  t.match(await response.text(), /second half/)
  const [row] = (await books.close()).values()
  t.match(row, { billed: null, costPico: COST, attempts: [{ upstream: 'own', billed: 'client', costUsd: /^0\.0/ }, { upstream: 'operator', costUsd: '0.00045' }] })
})

t.test('a WebSocket', async t => {
  const { own, operator, books } = await start(t, { keys: `keys: [{ name: poor, key: ${KEY}, limits: { budget: { usd: 0, per: month } } }]` })
  const sockets = new WebSocketServer({ server: own.server })
  const handshakes: IncomingHttpHeaders[] = []
  sockets.on('connection', (peer, req) => {
    handshakes.push(req.headers)
    peer.on('message', () => peer.send(JSON.stringify({
      type: 'response.completed', response: { id: 'r', model: 'm', usage: { input_tokens: 100, output_tokens: 10 } },
    })))
  })
  const client = new WebSocket(`${books.gateway.url.replace('http', 'ws')}/v1/responses`, { headers: BOTH })
  await once(client, 'open')
  client.send(JSON.stringify({ type: 'response.create', model: 'm', input: 'x' }))
  await once(client, 'message')
  client.close()
  await once(client, 'close')
  t.equal(handshakes[0]?.authorization, `Bearer ${OWN}`)
  t.notMatch(JSON.stringify(handshakes), KEY)
  t.equal(operator.seen.length, 0)
  const [row] = (await books.close()).values()
  t.match(row, { billed: 'client', costPico: 0n, attempts: [{ costUsd: '0.00045' }] })
  sockets.close()
})

t.test('a WebSocket whose credential is refused, or missing', async t => {
  const { own, operator, books } = await start(t, { to: '[own, operator]' })
  const body = '{"error":{"code":"from_upstream"}}'
  own.server.on('upgrade', (_req, socket) => {
    socket.end(`HTTP/1.1 401 Unauthorized\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`)
  })
  let operators = 0
  operator.server.on('upgrade', (req, socket) => {
    operators++
    t.equal(req.headers.authorization, `Bearer ${OPERATOR}`)
    socket.end('HTTP/1.1 503 Unavailable\r\ncontent-length: 0\r\n\r\n')
  })
  const refusalOf = async (headers: Record<string, string>) => {
    const client = new WebSocket(`${books.gateway.url.replace('http', 'ws')}/v1/responses`, { headers })
    client.on('error', () => {})
    const [, response] = await once(client, 'unexpected-response') as [unknown, IncomingMessage]
    return { status: response.statusCode, text: String(await bodyOf(response)) }
  }
  for (let n = 0; n < 6; n++) t.match(await refusalOf(BOTH), { status: 401, text: 'from_upstream' })
  t.equal(operators, 0, 'no other target is tried')
  t.equal((await refusalOf({ 'x-gateway-key': KEY })).status, 502)
  t.equal(operators, 1, 'without a credential the listed target is tried')
})
