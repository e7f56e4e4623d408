import { once } from 'node:events'
import * as https from 'node:https'
import type { Socket } from 'node:net'
import t from 'tap'
import type { Test } from 'tap'
import { certificateFiles } from '../support/certificate.ts'
import { startTestGateway } from '../support/gateway.ts'
import type { TestGateway } from '../support/gateway.ts'
import { bodyOf, startRawUpstream } from '../support/upstream.ts'
import { STREAM_HEAD, chunk, connect, post, proxyTo, startWireUpstream } from '../support/wire.ts'
import type { Wire } from '../support/wire.ts'

const CHAT = { model: 'm', stream: true, messages: [] }
const PLAIN = { model: 'm', messages: [] }

/** The ways in which a client disconnects over HTTP/1.1. */
const LEAVES: Record<string, (client: Wire) => void> = {
  'closes the connection': client => client.socket.destroy(),
  'resets the connection': client => client.socket.resetAndDestroy(),
  // RFC 9112 section 9.6 lets a server take a half-closed connection for an abandoned one.
  'half-closes the connection': client => client.socket.end(),
}

/**
 * An upstream that plays its part, says where it has got to, and then waits for the end of its connection.
 */
async function setUp(t: Test, play: (wire: Wire) => void, listen = 'listen: 127.0.0.1:0') {
  const reached = Promise.withResolvers<void>()
  const torn = Promise.withResolvers<void>()
  let requests = 0
  const upstream = await startWireUpstream(t, async wire => {
    await wire.request()
    requests++
    play(wire)
    reached.resolve()
    await wire.ended
    torn.resolve()
  })
  const gateway = await startTestGateway(t, `server: { ${listen} }\n${proxyTo(upstream.url)}`)
  return { gateway, reached: reached.promise, torn: torn.promise, requests: () => requests }
}

async function loggedAsGone(t: Test, gateway: TestGateway, status: number): Promise<void> {
  const line = await gateway.waitForLog(each => each.msg === 'exchange')
  t.equal(line.error, 'client_gone')
  t.equal(line.status, status)
  t.equal(line.level, 30, 'the level is info')
  t.equal(gateway.logged.filter(each => each.msg === 'exchange').length, 1, 'logged once')
}

for (const [leaves, leave] of Object.entries(LEAVES)) {
  t.test(`a client that ${leaves} before the response head ends the upstream request at once`, async t => {
    const { gateway, reached, torn, requests } = await setUp(t, () => {})
    const client = await connect(t, gateway.url)
    client.send(post('/v1/chat/completions', PLAIN))
    await reached
    leave(client)
    await torn
    await loggedAsGone(t, gateway, 499)
    t.equal(requests(), 1, 'no second attempt')
  })

  t.test(`a client that ${leaves} between the response head and the first byte ends ` +
    'the upstream request at once', async t => {
    const { gateway, reached, torn } = await setUp(t, wire => wire.send(STREAM_HEAD))
    const client = await connect(t, gateway.url)
    client.send(post('/v1/other', CHAT))
    await reached
    await client.until(/\r\n\r\n/)
    leave(client)
    await torn
    await loggedAsGone(t, gateway, 200)
  })

  t.test(`a client that ${leaves} in mid-stream ends the upstream request at once`, async t => {
    const { gateway, reached, torn } = await setUp(
      t, wire => wire.send(STREAM_HEAD + chunk('data: {"n":1}\n\n')),
    )
    const client = await connect(t, gateway.url)
    client.send(post('/v1/other', CHAT))
    await reached
    await client.until(/"n":1/)
    leave(client)
    await torn
    await loggedAsGone(t, gateway, 200)
  })

  t.test(`a client that ${leaves} in the middle of a JSON response ends ` +
    'the upstream request at once', async t => {
    const { gateway, reached, torn } = await setUp(t, wire =>
      wire.send('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"half":'))
    const client = await connect(t, gateway.url)
    client.send(post('/v1/other', PLAIN))
    await reached
    await client.until(/half/)
    leave(client)
    await torn
    await loggedAsGone(t, gateway, 200)
  })

  t.test(`a request does not go upstream if its client ${leaves} before the end of the body`, async t => {
    const { gateway, requests } = await setUp(t, () => {})
    const client = await connect(t, gateway.url)
    client.send(post('/v1/chat/completions', PLAIN).slice(0, -3))
    // After a response to a later request, the gateway has started this request.
    await (await fetch(`${gateway.url}/api/status`)).text()
    leave(client)
    await loggedAsGone(t, gateway, 499)
    t.equal(requests(), 0)
  })
}

t.test('over TLS, a client that closes the connection in mid-stream ends the upstream request at once', async t => {
  const { cert, certFile, keyFile } = certificateFiles(t)
  const { gateway, reached, torn } = await setUp(
    t, wire => wire.send(STREAM_HEAD + chunk('data: {"n":1}\n\n')),
    `listen: 127.0.0.1:0, tls: { cert: "${certFile}", key: "${keyFile}" }`,
  )
  const client = await connect(t, gateway.url, cert)
  client.send(post('/v1/chat/completions', CHAT))
  await reached
  await client.until(/"n":1/)
  client.socket.destroy()
  await torn
  await loggedAsGone(t, gateway, 200)
})

t.test('a client that disconnects during the TLS handshake with the upstream is logged once, with status 499', async t => {
  // A server that does not respond to the TLS handshake, so that the connection is not established.
  const silent = Promise.withResolvers<Wire>()
  const upstream = await startWireUpstream(t, async wire => {
    silent.resolve(wire)
    await wire.ended
  })
  const gateway = await startTestGateway(t, proxyTo(upstream.url.replace('http:', 'https:')))
  const client = await connect(t, gateway.url)
  client.send(post('/v1/chat/completions', PLAIN))
  await silent.promise
  client.socket.destroy()
  await loggedAsGone(t, gateway, 499)
})

t.test('hazard: if a client disconnects during the first pipelined request, the later requests do not go upstream', async t => {
  let connections = 0
  const first = Promise.withResolvers<Wire>()
  const upstream = await startWireUpstream(t, async wire => {
    connections++
    await wire.request()
    first.resolve(wire)
    await wire.ended
  })
  const gateway = await startTestGateway(t, proxyTo(upstream.url))
  const client = await connect(t, gateway.url)
  client.send(post('/v1/other', PLAIN).repeat(3))
  const wire = await first.promise
  client.socket.destroy()
  await wire.ended
  await loggedAsGone(t, gateway, 499)
  const status = await fetch(`${gateway.url}/api/status`)
  t.equal(((await status.json()) as { running: number }).running, 0)
  t.equal(connections, 1)
})

t.test('hazard: a request is not retried if its client disconnects before any response', async t => {
  let connections = 0
  const upstream = await startWireUpstream(t, async wire => {
    connections++
    await wire.request()
    await wire.ended
  })
  const gateway = await startTestGateway(t, proxyTo(upstream.url))
  const client = await connect(t, gateway.url)
  client.send(post('/v1/other', PLAIN))
  client.socket.resetAndDestroy()
  await once(client.socket, 'close')
  await gateway.waitForLog(each => each.msg === 'exchange')
  t.ok(connections <= 1)
})

t.test('if a client disconnects while the gateway connects to the upstream, the request is never sent', async t => {
  const { cert, key, certFile } = certificateFiles(t)
  const bodies: string[] = []
  const secure = https.createServer({ cert, key }, async (req, res) => {
    bodies.push((await bodyOf(req)).toString())
    res.end('{}')
  })
  const held = Promise.withResolvers<Socket>()
  let isHeld = false
  const { port } = await startRawUpstream(t, socket => {
    if (isHeld) secure.emit('connection', socket)
    else held.resolve(socket)
    isHeld = true
  })
  const gateway = await startTestGateway(
    t, `upstreams: { up: { url: "https://127.0.0.1:${port}", ca: "${certFile}" } }\nroutes: [{ to: up }]\n`,
  )
  const client = await connect(t, gateway.url)
  client.send(post('/v1/embeddings', { model: 'left' }))
  const socket = await held.promise
  client.socket.destroy()
  await loggedAsGone(t, gateway, 499)
  secure.emit('connection', socket)
  const next = await connect(t, gateway.url)
  next.send(post('/v1/embeddings', { model: 'stays' }))
  await next.until(/\{\}/)
  t.strictSame(bodies, ['{"model":"stays"}'])
})
