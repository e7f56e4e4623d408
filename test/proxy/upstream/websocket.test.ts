import { once } from 'node:events'
import * as net from 'node:net'
import { setImmediate } from 'node:timers/promises'
import * as tls from 'node:tls'
import t from 'tap'
import type { Test } from 'tap'
import type { Timeouts } from '../../../src/config/types.ts'
import { createConnector, secureContextFor } from '../../../src/proxy/upstream/connector.ts'
import { DiallingAgent } from '../../../src/proxy/upstream/dialling-agent.ts'
import { createProxy } from '../../../src/proxy/upstream/http-proxy.ts'
import { Tunnel } from '../../../src/proxy/upstream/websocket.ts'
import { certificateFiles } from '../../support/certificate.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { startRawUpstream } from '../../support/upstream.ts'
import { Wire } from '../../support/wire.ts'
import { startSlowName } from '../slow-name.ts'

const MINUTE = 60_000
const TIMEOUTS = { connect: MINUTE, firstByte: MINUTE, idle: MINUTE, total: 60 * MINUTE }
const OPENED = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n'

/**
 * A tunnel to an upstream, from a client that does not read, for which so many
 * bytes wait already. Its exchange is a minute old.
 */
async function startTunnel(
  t: Test, upstream: string, waiting = 0, timeouts: Partial<Timeouts> = {}, ca: string | null = null,
) {
  const clock = new FakeClock()
  const startedAt = clock.monotonic()
  clock.advance(MINUTE)
  const before = Buffer.alloc(waiting, '.')
  const front = net.createServer({ highWaterMark: 2 * waiting + 65_536 }).listen(0, '127.0.0.1')
  t.teardown(() => front.close())
  await once(front, 'listening')
  const client = net.connect((front.address() as net.AddressInfo).port, '127.0.0.1').pause()
  t.teardown(() => client.destroy())
  const [socket] = await once(front, 'connection') as [net.Socket]
  if (waiting > 0) socket.write(before)
  const trust = ca === null ? null : secureContextFor(ca)
  const dial = createConnector({ socketPath: null, connectTimeout: MINUTE, trust, http2: false })
  const url = new URL(upstream)
  const tunnel = new Tunnel({
    socket,
    head: Buffer.alloc(0),
    path: '/',
    headers: [],
    handshake: { connection: 'Upgrade', upgrade: 'websocket' },
    upstream: { url, agent: new DiallingAgent(url.protocol, dial) },
    gatewayHeaders: { version: '0', requestId: 'id', limits: [] },
    clock,
    timeouts: { ...TIMEOUTS, ...timeouts },
    startedAt,
    onOpen: () => {},
    onUpstreamData: () => {},
    holdsClientData: false,
    onClientData: () => null,
  })
  return { client, clock, socket, tunnel, done: tunnel.run(createProxy()) }
}

/** More than the system takes for a client that does not read. */
const MUCH = 32 * 1024 * 1024

function startLastWord(t: Test) {
  return startRawUpstream(t, socket => {
    socket.once('data', () => socket.end(`${OPENED}the last word`))
  })
}

t.test('the last bytes of an upstream reach a client that reads slowly', async t => {
  const { url } = await startLastWord(t)
  const { client, clock, socket, done } = await startTunnel(t, url, MUCH)
  t.equal(await done, null)
  t.ok(socket.writableLength > 0)
  const wire = new Wire(client.resume())
  t.equal(await wire.ended, 'end')
  t.match(wire.text.slice(MUCH), /^HTTP\/1\.1 101 [^]*\r\n\r\nthe last word$/)
  if (!socket.closed) await once(socket, 'close')
  t.equal(clock.pending, 0, 'no timer is left')
})

t.test('if the client never reads the last bytes, its connection is closed after 5 s', async t => {
  const { url } = await startLastWord(t)
  const { clock, socket, done } = await startTunnel(t, url, MUCH)
  t.equal(await done, null)
  const closed = once(socket, 'close')
  clock.advance(5_000)
  await closed
})

t.test('the connection of an upstream that keeps sending is closed after the client disconnects', async t => {
  const ended = Promise.withResolvers<void>()
  const upstream = net.createServer({ allowHalfOpen: true }, socket => {
    socket.on('error', () => {}).once('close', () => ended.resolve())
    socket.once('data', () => socket.write(OPENED))
    // The upstream sends data as long as the gateway reads.
    socket.on('end', () => void goOn(socket))
  }).listen(0, '127.0.0.1')
  t.teardown(() => upstream.close())
  await once(upstream, 'listening')
  const { port } = upstream.address() as net.AddressInfo
  const { client, done } = await startTunnel(t, `http://127.0.0.1:${port}`)
  await once(client, 'readable')
  client.destroy()
  t.equal(await done, null)
  await ended.promise
})

t.test('a tunnel stays open while either side sends bytes, and ends when both sides are silent', async t => {
  const heard = Promise.withResolvers<net.Socket>()
  const { url } = await startRawUpstream(t, socket => {
    socket.once('data', () => {
      socket.write(OPENED)
      socket.once('data', () => heard.resolve(socket))
    })
  })
  const { client, clock, done } = await startTunnel(t, url)
  await once(client, 'readable')
  client.read()
  clock.advance(MINUTE * 0.6)
  client.write('a word')
  const upstream = await heard.promise
  clock.advance(MINUTE * 0.6)
  upstream.write('another')
  await once(client, 'readable')
  clock.advance(MINUTE - 1)
  t.equal(await Promise.race([done, 'open']), 'open')
  clock.advance(1)
  t.match(await done, { code: 'idle_timeout', message: 'no byte passed in either direction for 60 s (timeouts.idle)' })
})

t.test('if the client does not read its data, the error is client_stalled and not an upstream error', async t => {
  const { url } = await startRawUpstream(t, socket => socket.once('data', () => socket.write(OPENED)))
  const { clock, socket, done } = await startTunnel(t, url, MUCH)
  // The client does not read, so nothing after the handshake reaches it.
  while (socket.listenerCount('data') === 0) await setImmediate()
  clock.advance(MINUTE)
  t.match(await done, { code: 'client_stalled', message: /^the client read nothing for 60 s/ })
})

t.test('a slow handshake response counts against timeouts.first_byte, not timeouts.connect', async t => {
  const asked = Promise.withResolvers<void>()
  const { url } = await startRawUpstream(t, socket => socket.once('data', () => asked.resolve()))
  const { clock, done } = await startTunnel(t, url, 0, { connect: 1_000 })
  await asked.promise
  clock.advance(MINUTE - 1)
  t.equal(await Promise.race([done, 'thinking']), 'thinking')
  clock.advance(1)
  t.match(await done, { code: 'first_byte_timeout', message: 'the upstream did not respond to the handshake within 60 s (timeouts.first_byte)' })
})

for (const [code, timeouts, left] of [
  ['idle_timeout', { idle: 2 * MINUTE }, 2 * MINUTE],
  ['total_timeout', { idle: 60 * MINUTE, total: 10 * MINUTE }, 9 * MINUTE],
] as const) {
  t.test(`a silent tunnel ends with ${code}`, async t => {
    const { url } = await startRawUpstream(t, socket => {
      socket.once('data', () => socket.write(OPENED))
    })
    const { client, clock, done } = await startTunnel(t, url, 0, timeouts)
    await once(client, 'readable')
    clock.advance(left - 1)
    t.equal(await Promise.race([done, 'open']), 'open')
    clock.advance(1)
    t.match(await done, { code })
  })
}

const FORBIDDEN = 'HTTP/1.1 403 Forbidden\r\nContent-Length: 9\r\n\r\n'

t.test('the gateway reads the body of a refused handshake for at most 2 s', async t => {
  const { url } = await startRawUpstream(t, socket => {
    socket.once('data', () => socket.write(`${FORBIDDEN}no`))
  })
  const { clock, tunnel, done } = await startTunnel(t, url, 0, { firstByte: 1_500 })
  // After the head of the refusal there is a second deadline, for the body of the refusal.
  while (clock.pending < 2) await setImmediate()
  clock.advance(1_999)
  t.equal(await Promise.race([done, 'reading']), 'reading')
  clock.advance(1)
  t.equal(await done, null)
  t.match(tunnel.refusal, { status: 403, body: null })
})

const ENDS = {
  'whole': [(socket: net.Socket) => socket.write('forbidden'), { body: Buffer.from('forbidden') }],
  'cut': [(socket: net.Socket) => socket.end('forbid'), { body: null }],
} as const
for (const [what, [end, refusal]] of Object.entries(ENDS)) {
  t.test(`a refused handshake with a body that is ${what} is reported at once`, async t => {
    const { url } = await startRawUpstream(t, socket => {
      socket.once('data', () => {
        socket.write(FORBIDDEN)
        end(socket)
      })
    })
    const { clock, tunnel, done } = await startTunnel(t, url)
    t.equal(await done, null)
    t.match(tunnel.refusal, { status: 403, ...refusal })
    t.equal(clock.pending, 0)
  })
}

/** Talks until the connection is closed. */
async function goOn(socket: net.Socket): Promise<void> {
  while (!socket.destroyed) {
    socket.write('and another thing')
    await setImmediate()
  }
}

t.test('connecting to an address can take longer than the default timeout of Node.js', async t => {
  startSlowName(t)
  const { url } = await startLastWord(t)
  const { client, done } = await startTunnel(t, url.replace('127.0.0.1', 'localhost'))
  if (!t.equal(await done, null)) return
  const wire = new Wire(client.resume())
  t.equal(await wire.ended, 'end')
  t.match(wire.text, /^HTTP\/1\.1 101 [^]*the last word$/)
})

t.test('a tunnel can connect to an IPv6 address', async t => {
  const server = net.createServer(socket => {
    socket.once('data', () => socket.end(`${OPENED}the last word`))
  }).listen(0, '::1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  const { port } = server.address() as net.AddressInfo
  const { done } = await startTunnel(t, `http://[::1]:${port}`)
  t.equal(await done, null)
})

t.test('an upstream connection that opens after the client disconnected is closed', async t => {
  const certificate = certificateFiles(t)
  const accepted = Promise.withResolvers<net.Socket>()
  const server = net.createServer(socket => accepted.resolve(socket)).listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  const { port } = server.address() as net.AddressInfo
  const { client, done } = await startTunnel(t, `https://127.0.0.1:${port}`, 0, {}, certificate.certFile)
  const raw = await accepted.promise
  client.destroy()
  t.match(await done, { code: 'client_gone' })
  const secure = new tls.TLSSocket(raw, { isServer: true, ...certificate }).on('error', () => {})
  if (!secure.closed) await once(secure, 'close')
})
