import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import * as https from 'node:https'
import type { AddressInfo } from 'node:net'
import OpenAI, { AzureOpenAI } from 'openai'
import { OpenAIRealtimeWS } from 'openai/realtime/ws'
import { ResponsesWS } from 'openai/resources/responses/ws'
import OpenAI6, { AzureOpenAI as AzureOpenAI6 } from 'openai6'
import { OpenAIRealtimeWS as OpenAIRealtimeWS6 } from 'openai6/realtime/ws'
import t from 'tap'
import type { Test } from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import type { ClientOptions, ServerOptions } from 'ws'
import { certificateFiles } from '../../support/certificate.ts'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import { rawRequest, startRawUpstream, startUpstream } from '../../support/upstream.ts'
import { NARROW_KEY, WRONG_KEY, startForClients } from './setup.ts'

const BEARER = { headers: { authorization: `Bearer ${KEY}` } }

/** The WebSocket server of an upstream, and the gateway in front of it. */
async function startPair(t: Test, options: ServerOptions = {}) {
  const { server, url } = await startUpstream(t, (_req, res) => res.end())
  const sockets = new WebSocketServer({ server, ...options })
  const handshakes: IncomingMessage[] = []
  const waiting: ((peer: WebSocket) => void)[] = []
  sockets.on('connection', (peer, req) => {
    t.teardown(() => peer.terminate())
    peer.on('error', () => {})
    handshakes.push(req)
    waiting.shift()?.(peer)
  })
  const gateway = await startTestGateway(t, `
upstreams: { up: { url: "${url}", websocket: true, auth: { bearer: operator-secret } } }
routes:
  - { path: /v1/realtime, model: asked, to: { upstream: up, model: "served/1" } }
  - { path: /v1/realtime, to: up }
`)
  const next = () => new Promise<WebSocket>(resolve => waiting.push(resolve))
  return {
    gateway,
    handshakes,
    /** Both ends of a connection through the gateway. */
    open: async (path = '/v1/realtime?model=m', client: ClientOptions = BEARER, protocols: string[] = []) => {
      const upstream = next()
      const near = connect(t, gateway.url + path, client, protocols)
      const [far] = await Promise.all([upstream, once(near, 'open')])
      const { headers } = handshakes.at(-1) as IncomingMessage
      return { near, far, id: headers['x-gateway-request-id'] }
    },
  }
}

function connect(t: Test, url: string, options: ClientOptions, protocols: string[] = []): WebSocket {
  const client = new WebSocket(url.replace(/^http/, 'ws'), protocols, options)
  t.teardown(() => client.terminate())
  client.on('error', () => {})
  return client
}

/** The response to a handshake that is refused. */
async function refusal(
  t: Test, url: string, options: ClientOptions = BEARER, protocols: string[] = [],
): Promise<{ status: number; headers: IncomingMessage['headers']; body: unknown }> {
  const client = connect(t, url, options, protocols)
  const [, answer] = (await once(client, 'unexpected-response')) as [unknown, IncomingMessage]
  answer.setEncoding('utf8')
  let text = ''
  for await (const chunk of answer) text += chunk
  return { status: answer.statusCode ?? 0, headers: answer.headers, body: JSON.parse(text) }
}

t.test('a key is accepted in every place where clients send keys, and is not forwarded', async t => {
  const { open, handshakes, gateway } = await startPair(t)
  const subprotocol = ['realtime', `openai-insecure-api-key.${KEY}`, 'openai-beta.realtime-v1']
  const cases: [string, string, ClientOptions, string[]][] = [
    ['Authorization', '/v1/realtime?model=m', BEARER, []],
    ['x-api-key', '/v1/realtime?model=m', { headers: { 'x-api-key': KEY } }, []],
    ['query', `/v1/realtime?key=${KEY}&model=m`, {}, []],
    ['api-key', '/openai/v1/realtime?model=m', { headers: { 'api-key': KEY } }, []],
    ["Azure's query", `/openai/realtime?api-version=1&deployment=m&api-key=${KEY}`, {}, []],
    ['subprotocol', '/v1/realtime?model=m', {}, subprotocol],
  ]
  for (const [name, path, options, protocols] of cases) {
    const { near } = await open(path, options, protocols)
    const { headers, url } = handshakes.at(-1) as IncomingMessage
    t.equal(url, '/v1/realtime?model=m', name)
    t.equal(headers.authorization, 'Bearer operator-secret', name)
    t.notMatch(JSON.stringify(headers), KEY, name)
    t.match(headers['x-gateway-request-id'], /^[\da-f-]{36}$/)
    if (protocols.length > 0) {
      t.equal(near.protocol, 'realtime')
      t.equal(headers['sec-websocket-protocol'], 'realtime, openai-beta.realtime-v1')
    }
  }
  t.notMatch(JSON.stringify(gateway.logged), KEY)
})

t.test('a key sent as the only subprotocol is not forwarded', async t => {
  const { gateway, handshakes } = await startPair(t)
  const client = connect(t, `${gateway.url}/v1/realtime?model=m`, {}, [`openai-insecure-api-key.${KEY}`])
  // The client reports an error, because no subprotocol is chosen.
  await once(client, 'upgrade')
  const { headers } = handshakes[0] as IncomingMessage
  t.equal(headers.authorization, 'Bearer operator-secret')
  t.equal(headers['sec-websocket-protocol'], undefined)
})

t.test('a session with the simulator works with the key in a header, the query or a subprotocol', async t => {
  const gateway = await startForClients(t)
  const cases: [string, ClientOptions, string[]][] = [
    ['', BEARER, []],
    [`&key=${KEY}`, {}, []],
    ['', {}, ['realtime', `openai-insecure-api-key.${KEY}`]],
  ]
  for (const [query, options, protocols] of cases) {
    const client = connect(t, `${gateway.url}/v1/realtime?model=sim,tokens=3${query}`, options, protocols)
    const upgraded = once(client, 'upgrade') as Promise<[IncomingMessage]>
    let text = ''
    const done = new Promise<unknown>(resolve => {
      client.on('message', (data: Buffer) => {
        const event = JSON.parse(data.toString()) as { type: string; delta?: string }
        if (event.type === 'session.created') client.send('{"type":"response.create"}')
        if (event.type === 'response.output_text.delta') text += event.delta
        if (event.type === 'response.done') resolve(event)
      })
    })
    const [answer] = await upgraded
    t.match(answer.headers, { 'x-gateway-version': '0.0.0-test', 'x-gateway-request-id': /^[\da-f-]{36}$/ })
    t.match(await done, { response: { status: 'completed', usage: { output_tokens: 3 } } })
    t.equal(text, 'w1 w2 w3')
    client.close(1000)
    await once(client, 'close')
    const id = answer.headers['x-gateway-request-id']
    const line = await gateway.waitForLog(each => each.msg === 'exchange' && each.request === id)
    t.match(line, { status: 101, endpoint: 'realtime', model: 'sim,tokens=3', upstream: 'demo' })
  }
})

t.test('a WebSocket without a valid key or model is refused, and nothing goes upstream', async t => {
  const gateway = await startForClients(t)
  const realtime = `${gateway.url}/v1/realtime?model=sim`
  const keyless = await refusal(t, realtime, {})
  t.equal(keyless.status, 401)
  t.equal(keyless.headers['x-should-retry'], 'false')
  t.match(keyless.body, { error: { code: 'invalid_api_key' } })
  const wrong = await refusal(t, realtime, {}, ['realtime', `openai-insecure-api-key.${WRONG_KEY}`])
  t.equal(wrong.status, 401)
  const narrow = await refusal(t, realtime, { headers: { authorization: `Bearer ${NARROW_KEY}` } })
  t.equal(narrow.status, 403)
  t.match(narrow.body, { error: { code: 'model_not_allowed' } })
  const unknown = await refusal(t, `${gateway.url}/v1/realtime?model=none`)
  t.equal(unknown.status, 404)
  t.match(unknown.body, { error: { code: 'model_not_found' } })
  for (const { headers } of [keyless, wrong, narrow, unknown]) {
    t.match(headers['x-gateway-request-id'], /^[\da-f-]{36}$/)
    t.equal(headers['x-gateway-version'], '0.0.0-test')
  }
})

t.test('the query and unusual bytes of response headers are forwarded unchanged', async t => {
  let asked = ''
  const upstream = await startRawUpstream(t, socket => {
    socket.once('data', (request: Buffer) => {
      asked = request.toString('latin1').split('\r\n', 1)[0] ?? ''
      socket.end('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
        'X-Latin: caf\xe9\r\n\r\n', 'latin1')
    })
  })
  const gateway = await startTestGateway(t, `
upstreams: { up: { url: "${upstream.url}", websocket: true } }
routes: [{ to: up }]
`)
  const query = `?model=m&a='b'&c="d"&e=<f>&g=%zz`
  const answer = await rawRequest(gateway.url, `GET /v1/realtime${query} HTTP/1.1\r\nHost: x\r\n` +
    `Authorization: Bearer ${KEY}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`)
  t.equal(asked, `GET /v1/realtime${query} HTTP/1.1`)
  t.match(answer, /\r\nx-latin: caf\xe9\r\n/)
})

t.test('a model in the query of a handshake is renamed', async t => {
  const { open, handshakes } = await startPair(t)
  await open('/v1/realtime?x=%20&model=asked&y=1')
  t.equal(handshakes.at(-1)?.url, '/v1/realtime?x=%20&model=served%2F1&y=1')
  await open('/openai/realtime?x=%20&deployment=asked&api-version=1')
  t.equal(handshakes.at(-1)?.url, '/v1/realtime?x=%20&model=served%2F1')
})

t.test('a handshake that names two different models is refused as ambiguous', async t => {
  const { gateway } = await startPair(t)
  for (const path of [
    '/v1/realtime?model=m&model=other', '/v1/realtime?model=m&deployment=other&api-version=1',
    '/openai/realtime?model=m&deployment=other',
    '/openai/deployments/m/realtime?api-version=1&deployment=other',
    '/v1/deployments/m/responses?model=other',
  ]) {
    const { status, body } = await refusal(t, gateway.url + path)
    t.equal(status, 400, path)
    t.match(body, { error: { code: 'model_ambiguous' } })
  }
})

t.test('a WebSocket gets 426 if no upstream accepts it', async t => {
  const gateway = await startForClients(t)
  for (const path of ['/v1/realtime', '/v1/responses', '/v1/chat/completions']) {
    const { status, headers, body } = await refusal(t, `${gateway.url}${path}?model=tcp`)
    t.equal(status, 426, path)
    t.equal(headers.upgrade, 'websocket')
    t.match(body, { error: { code: 'upgrade_required' } })
  }
})

t.test('a handshake without a model gets 426 if the routes or the key require a model', async t => {
  const gateway = await startTestGateway(t, `
upstreams: { demo: { simulator: true, websocket: true } }
routes: [{ model: "sim*", to: demo }, { path: "/v1/files*", to: demo }]
`)
  const byPath = await startTestGateway(t, `
upstreams: { demo: { simulator: true, websocket: true } }
routes: [{ path: /v1/responses, to: demo }]
keys: [{ name: narrow, key: ${KEY}, models: [sim] }]
`)
  for (const { url } of [gateway, byPath]) {
    const { status, headers, body } = await refusal(t, `${url}/v1/responses`)
    t.equal(status, 426)
    t.equal(headers.upgrade, 'websocket')
    t.match(body, { error: { code: 'upgrade_required' } })
    t.equal((await refusal(t, `${url}/v1/responses`, {})).status, 401)
  }
  t.equal((await refusal(t, `${gateway.url}/v1/responses?model=none`)).status, 404)
  const decoy = await refusal(t, `${byPath.url}/v1/responses?model=sim`)
  t.equal(decoy.status, 426, 'the model in the query does not limit the models of messages')
  const nowhere = await startTestGateway(t, `
upstreams: { demo: { simulator: true, websocket: true } }
routes: [{ path: /v1/messages, to: demo }]
`)
  t.equal((await refusal(t, `${nowhere.url}/v1/responses`)).status, 404)
})

t.test('a handshake that the upstream refuses gets an error of the gateway', async t => {
  const gateway = await startForClients(t)
  const cases: [string, number, string][] = [
    ['status=401', 502, 'upstream_rejected_key'],
    ['status=503', 502, 'upstream_invalid'],
    ['status=404', 426, 'upgrade_required'],
    ['reset', 502, 'upstream_reset'],
  ]
  for (const [fault, due, code] of cases) {
    const { status, body } = await refusal(t, `${gateway.url}/v1/realtime?model=sim,${fault}`)
    t.equal(status, due, fault)
    t.match(body, { error: { code } }, fault)
  }
})

t.test('messages of every size and kind are forwarded unchanged', async t => {
  for (const perMessageDeflate of [false, true]) {
    const { open } = await startPair(t, { perMessageDeflate })
    const { near, far } = await open('/v1/realtime?model=m', { ...BEARER, perMessageDeflate })
    t.equal(near.extensions, perMessageDeflate ? 'permessage-deflate' : '')
    far.on('message', (data, isBinary) => far.send(data, { binary: isBinary }))
    const messages = ['', 'é 😀', 'x'.repeat(200_000), Buffer.alloc(1_000_000, 7), Buffer.alloc(0)]
    for (const message of messages) {
      const echoed = once(near, 'message') as Promise<[Buffer, boolean]>
      near.send(message)
      const [data, isBinary] = await echoed
      t.equal(isBinary, typeof message !== 'string')
      t.ok(data.equals(Buffer.from(message)))
    }
    const pong = once(near, 'pong')
    near.ping('there?')
    t.equal(String((await pong)[0]), 'there?')
  }
})

t.test('a message in the same packet as the handshake response is forwarded', async t => {
  const upstream = await startRawUpstream(t, socket => {
    socket.once('data', (request: Buffer) => {
      const key = /sec-websocket-key: (\S+)/i.exec(request.toString())?.[1] ?? ''
      const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
      const head = [
        'HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', 'Connection: Upgrade',
        `Sec-WebSocket-Accept: ${accept}`, '', '\x81\x05hello',
      ]
      socket.write(head.join('\r\n'), 'latin1')
    })
  })
  const gateway = await startTestGateway(t, `
upstreams: { up: { url: "${upstream.url}", websocket: true } }
routes: [{ to: up }]
`)
  const client = connect(t, `${gateway.url}/v1/realtime?model=m`, BEARER)
  t.equal(String((await once(client, 'message'))[0]), 'hello')
})

t.test('when one side closes the WebSocket, the other side is closed with the same code', async t => {
  const { open, gateway } = await startPair(t)
  const leave: Record<string, [(peer: WebSocket) => void, number]> = {
    'with a close frame': [peer => peer.close(4000, 'enough'), 4000],
    'without a word': [peer => peer.terminate(), 1006],
  }
  for (const [how, [go, code]] of Object.entries(leave)) {
    for (const side of ['near', 'far'] as const) {
      const { near, far, id } = await open()
      const [goer, stayer] = side === 'near' ? [near, far] : [far, near]
      const closed = once(stayer, 'close') as Promise<[number, Buffer]>
      go(goer)
      t.equal((await closed)[0], code, `the ${side} side closes ${how}`)
      const line = await gateway.waitForLog(each => each.msg === 'exchange' && each.request === id)
      t.match(line, { status: 101 })
    }
  }
})

t.test('the client gets code 1006 if the upstream disconnects within a response', async t => {
  const gateway = await startForClients(t)
  const client = connect(t, `${gateway.url}/v1/realtime?model=sim,close_after=3`, BEARER)
  const closed = once(client, 'close') as Promise<[number]>
  await once(client, 'open')
  client.send('{"type":"response.create"}')
  t.equal((await closed)[0], 1006)
})

t.test('a self-signed certificate of an upstream is trusted only with the setting ca', async t => {
  const { certFile, cert, key } = certificateFiles(t)
  const server = https.createServer({ cert, key })
  t.teardown(() => server.close())
  new WebSocketServer({ server }).on('connection', far => far.once('message', data => {
    far.send(data)
    far.close()
  }))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const gateway = await startTestGateway(t, `
upstreams:
  known: { url: "https://127.0.0.1:${port}", websocket: true, ca: "${certFile}" }
  unknown: { url: "https://127.0.0.1:${port}", websocket: true }
routes: [{ model: m, to: known }, { to: unknown }]
`)
  const client = connect(t, `${gateway.url}/v1/realtime?model=m`, BEARER)
  client.once('open', () => client.send('there'))
  const [data] = await once(client, 'message') as [Buffer]
  t.equal(String(data), 'there')
  rmSync(certFile)
  const later = connect(t, `${gateway.url}/v1/realtime?model=m`, BEARER)
  await once(later, 'open') // what was read at the start holds
  const { status, body } = await refusal(t, `${gateway.url}/v1/realtime?model=n`)
  t.equal(status, 502)
  t.match(body, { error: { code: 'upstream_unreachable' } })
})

t.test('the realtime clients of OpenAI need only a base URL and a key', async t => {
  const { certFile, keyFile, cert: ca } = certificateFiles(t)
  const gateway = await startTestGateway(t, `
server: { listen: 127.0.0.1:0, tls: { cert: "${certFile}", key: "${keyFile}" } }
upstreams: { demo: { simulator: true, websocket: true } }
routes: [{ path: /v1/responses, to: demo }, { model: "sim*", to: demo }]
`)
  const init = { baseURL: `${gateway.url.replace('127.0.0.1', 'localhost')}/v1`, apiKey: KEY }
  const options = { ca }
  const asked = { model: 'sim,tokens=2', options }
  const azure = { endpoint: init.baseURL.replace('/v1', ''), apiKey: KEY, apiVersion: '2024-10-21' }
  const deployed = { deploymentName: asked.model, options }
  const sessions: Record<string, () => Promise<OpenAIRealtimeWS>> = {
    'openai 7': async () => new OpenAIRealtimeWS(asked, new OpenAI(init)),
    // Used below in the same way in both majors; their types are not the same.
    'openai 6': async () => new OpenAIRealtimeWS6(asked, new OpenAI6(init)) as unknown as OpenAIRealtimeWS,
    'openai 7 for Azure': () => OpenAIRealtimeWS.azure(new AzureOpenAI(azure), deployed),
    'openai 6 for Azure': async () =>
      await OpenAIRealtimeWS6.azure(new AzureOpenAI6(azure), deployed) as unknown as OpenAIRealtimeWS,
  }
  for (const [name, connect] of Object.entries(sessions)) {
    const session = await connect()
    t.teardown(() => session.close())
    const said = new Promise<string>((resolve, reject) => {
      session.on('session.created', () => session.send({ type: 'response.create' }))
      session.on('response.output_text.done', event => resolve(event.text))
      session.on('error', reject)
    })
    t.equal(await said, 'w1 w2', name)
  }
  const responses = new ResponsesWS(new OpenAI(init), options)
  t.teardown(() => responses.close())
  const completed = new Promise<string>((resolve, reject) => {
    responses.on('response.completed', event => resolve(event.response.status ?? ''))
    responses.on('error', reject)
  })
  responses.send({ type: 'response.create', model: 'sim,tokens=2', input: 'x' })
  t.equal(await completed, 'completed')
})
