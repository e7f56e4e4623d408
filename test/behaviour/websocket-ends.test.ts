import { once } from 'node:events'
import type { Socket } from 'node:net'
import t from 'tap'
import { disconnectDuringAdmission } from '../support/disconnect-during-admission.ts'
import { KEY, startTestGateway } from '../support/gateway.ts'
import { startTokenServer } from '../support/token-server.ts'
import { startRawUpstream } from '../support/upstream.ts'
import { connect } from '../support/wire.ts'

const HANDSHAKE = [
  'GET /v1/realtime?model=m HTTP/1.1', 'Host: gateway', `Authorization: Bearer ${KEY}`, 'Connection: Upgrade',
  'Upgrade: websocket', 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==', '', '',
].join('\r\n')
const SWITCHING = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'

function websocketTo(url: string): string {
  return `upstreams: { up: { url: "${url}", websocket: true } }\nroutes: [{ to: up }]\n`
}

const LEAVING = {
  'disconnects before the handshake response ends the handshake with the upstream': (socket: Socket) =>
    socket.destroy(),
  'resets its connection before the handshake response ends the handshake with the upstream': (socket: Socket) => socket.resetAndDestroy(),
  'half-closes its connection before the handshake response ends the handshake with the upstream': (socket: Socket) => socket.end(),
}
for (const [what, leave] of Object.entries(LEAVING)) {
  t.test(`a client that ${what}`, async t => {
    const { promise: asked, resolve } = Promise.withResolvers<Socket>()
    const { url } = await startRawUpstream(t, socket => socket.once('data', () => resolve(socket)))
    const gateway = await startTestGateway(t, websocketTo(url))
    const client = await connect(t, gateway.url)
    client.send(HANDSHAKE)
    const upstream = await asked
    const gone = once(upstream.resume(), 'close')
    leave(client.socket)
    await gone
    await client.ended
    t.match(await gateway.waitForLog(line => line.msg === 'exchange'), { end: 'client_gone', status: 499 })
  })
}

t.test('a gateway that is closed while a credential is fetched opens no WebSocket', async t => {
  let handshakes = 0
  const { url } = await startRawUpstream(t, socket => socket.once('data', () => {
    handshakes++
    socket.write(SWITCHING)
  }))
  const tokens = await startTokenServer(t)
  const fetching = Promise.withResolvers<() => void>()
  tokens.answer = (_res, giveToken) => fetching.resolve(giveToken)
  const gateway = await startTestGateway(t, `
upstreams:
  up:
    url: "${url}"
    websocket: true
    auth: { oauth2: { token_url: "${tokens.url}", client_id: me, client_secret: secret } }
routes: [{ to: up }]
`)
  const client = await connect(t, gateway.url)
  client.send(HANDSHAKE)
  const giveToken = await fetching.promise
  const closing = gateway.close()
  giveToken()
  t.match(await client.until(/\}\}$/), /^HTTP\/1\.1 503 /)
  await closing
  t.match(await gateway.waitForLog(line => line.msg === 'exchange'), { status: 503, error: 'draining' })
  t.equal(handshakes, 0)
})

t.test('a WebSocket that is open when the gateway closes ends at once, and is settled as interrupted', async t => {
  const { url } = await startRawUpstream(t, socket => {
    socket.once('data', () => socket.write(SWITCHING))
  })
  const gateway = await startTestGateway(t, websocketTo(url))
  const client = await connect(t, gateway.url)
  client.send(HANDSHAKE)
  await client.until(/\r\n\r\n/)
  t.equal(await gateway.close(), 1)
  await client.ended
  t.match(gateway.logged.find(line => line.msg === 'exchange'), { status: 101, end: 'interrupted', error: 'draining' })
})

t.test('bytes_in and bytes_out count only the bytes of the WebSocket, not of earlier requests on the connection', async t => {
  const { url } = await startRawUpstream(t, socket => {
    socket.once('data', () => {
      socket.write(SWITCHING)
      socket.on('data', () => socket.end('good day'))
    })
  })
  const gateway = await startTestGateway(t, websocketTo(url))
  const client = await connect(t, gateway.url)
  client.send('GET /api/status HTTP/1.1\r\nHost: gateway\r\n\r\n')
  await client.until(/"running"/)
  client.send(HANDSHAKE)
  await client.until(/101 Switching/)
  client.send('hello')
  await client.ended
  t.match(await gateway.waitForLog(line => line.msg === 'exchange'), { bytes_in: 5, bytes_out: 8 })
})

t.test('a handshake does not go upstream if its client disconnects during admission', async t => {
  const { url } = await startRawUpstream(t, () => {})
  const line = await disconnectDuringAdmission(t, websocketTo(url), HANDSHAKE)
  t.match(line, { end: 'client_gone', status: 499 })
})

const NO_ANSWERS = {
  'closes the connection before a handshake response': ['upstream_reset', (socket: Socket) => socket.end()],
  'responds with bytes that are not HTTP': ['upstream_invalid', (socket: Socket) => socket.end('SSH-2.0\r\n\r\n')],
} as const
for (const [what, [code, answer]] of Object.entries(NO_ANSWERS)) {
  t.test(`an upstream that ${what} gives 502 ${code}`, async t => {
    const { url } = await startRawUpstream(t, socket => socket.once('data', () => answer(socket)))
    const gateway = await startTestGateway(t, websocketTo(url))
    const client = await connect(t, gateway.url)
    client.send(HANDSHAKE)
    t.match(await client.until(/"code"/), / 502 /)
    t.match(await gateway.waitForLog(line => line.msg === 'exchange'), { error: code })
  })
}

t.test('the Upgrade header of an HTTP/1.0 client is ignored', async t => {
  const { url } = await startRawUpstream(t, socket => socket.once('data', () => socket.write(SWITCHING)))
  const gateway = await startTestGateway(t, websocketTo(url))
  const client = await connect(t, gateway.url)
  client.send(HANDSHAKE.replace('HTTP/1.1', 'HTTP/1.0'))
  await client.ended
  t.match(client.text, /^HTTP\/1\.1 426 [^]*"upgrade_required"/)
})

t.test('of the hop-by-hop headers of a handshake response, only those that open the WebSocket are forwarded', async t => {
  const { url } = await startRawUpstream(t, socket => {
    socket.once('data', () => socket.write([
      'HTTP/1.1 101 Switching Protocols', 'Connection: Upgrade, X-Hop', 'Upgrade: websocket', 'X-Hop: 1',
      'Keep-Alive: timeout=5', 'Alt-Svc: h3=":443"', 'Via: 1.1 edge', 'Set-Cookie: a=1', 'Set-Cookie: b=2',
      'X-Request-Id: req_1', 'X-Note: caf\u00e9', '', '',
    ].join('\r\n'), 'latin1'))
  })
  const gateway = await startTestGateway(t, websocketTo(url))
  const client = await connect(t, gateway.url)
  client.send(HANDSHAKE)
  const head = (await client.until(/\r\n\r\n/)).toLowerCase()
  t.notMatch(head, /x-hop|keep-alive|alt-svc/)
  const opening = /^(connection: upgrade|upgrade: websocket)$/
  t.equal(head.split('\r\n').filter(line => opening.test(line)).length, 2)
  t.match(head, /\r\nset-cookie: a=1\r\nset-cookie: b=2\r\nx-request-id: req_1\r\n/)
  t.match(head, '\r\nvia: 1.1 edge, 1.1 model-gateway\r\n')
  t.match(head, '\r\nx-note: caf\u00e9\r\n', 'the bytes are unchanged')
})

t.test('a refused credential is logged as an error, and the response has x-should-retry: false', async t => {
  const { url } = await startRawUpstream(t, socket => {
    socket.once('data', () => socket.write('HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n'))
  })
  const gateway = await startTestGateway(t, websocketTo(url))
  const client = await connect(t, gateway.url)
  client.send(HANDSHAKE)
  t.match(await client.until(/"code"/), / 502 [^]*\r\nx-should-retry: false\r\n[^]*"upstream_rejected_key"/)
  t.match(await gateway.waitForLog(line => line.level === 50), { upstream: 'up', status: 403 })
})

t.test('an upstream that does not respond in the TLS handshake gives 504 connect_timeout', async t => {
  const { url } = await startRawUpstream(t, () => {})
  const gateway = await startTestGateway(
    t, `${websocketTo(url.replace('http:', 'https:'))}timeouts: { connect: 300ms }\n`,
  )
  const client = await connect(t, gateway.url)
  client.send(HANDSHAKE)
  t.match(await client.until(/"code"/), / 504 [^]*"connect_timeout"/)
})
