import { once } from 'node:events'
import * as net from 'node:net'
import t from 'tap'
import type { Test } from 'tap'
import { createProxy } from '../../src/proxy/attempt.ts'
import { Tunnel } from '../../src/proxy/websocket.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { startRawUpstream } from '../support/upstream.ts'
import { Wire } from '../support/wire.ts'

const MINUTE = 60_000
const TIMEOUTS = { connect: MINUTE, firstByte: MINUTE, idle: MINUTE, total: 60 * MINUTE }
const OPENED = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n'

/** A tunnel to an upstream, from a client that does not read, for which so many bytes wait already. */
async function startTunnel(t: Test, upstream: string, waiting = 0) {
  const clock = new FakeClock()
  const before = Buffer.alloc(waiting, '.')
  const front = net.createServer({ highWaterMark: 2 * waiting + 65_536 }).listen(0, '127.0.0.1')
  t.teardown(() => front.close())
  await once(front, 'listening')
  const client = net.connect((front.address() as net.AddressInfo).port, '127.0.0.1').pause()
  t.teardown(() => client.destroy())
  const [socket] = await once(front, 'connection') as [net.Socket]
  if (waiting > 0) socket.write(before)
  const tunnel = new Tunnel({
    socket,
    head: Buffer.alloc(0),
    path: '/',
    headers: [],
    handshake: { connection: 'Upgrade', upgrade: 'websocket' },
    upstream: { url: new URL(upstream), socketPath: null, ca: null },
    own: { version: '0', requestId: 'id', limits: [] },
    clock,
    timeouts: TIMEOUTS,
    startedAt: clock.monotonic(),
    onOpen: () => {},
    onData: () => {},
    onSaid: () => {},
  })
  return { client, clock, socket, done: tunnel.run(createProxy()) }
}

/** More than the system takes for a client that does not read. */
const MUCH = 32 * 1024 * 1024

function startLastWord(t: Test) {
  return startRawUpstream(t, socket => {
    socket.once('data', () => socket.end(`${OPENED}the last word`))
  })
}

t.test('the last word of an upstream that ends reaches a client that reads slowly', async t => {
  const { url } = await startLastWord(t)
  const { client, clock, socket, done } = await startTunnel(t, url, MUCH)
  t.equal(await done, null)
  t.ok(socket.writableLength > 0)
  const wire = new Wire(client.resume())
  t.equal(await wire.ended, 'end')
  t.match(wire.text.slice(MUCH), /^HTTP\/1\.1 101 [^]*\r\n\r\nthe last word$/)
  if (!socket.closed) await once(socket, 'close')
  t.equal(clock.pending, 0, 'nothing is waited for any more')
})

t.test('a client that does not read it at all is not kept for ever', async t => {
  const { url } = await startLastWord(t)
  const { clock, socket, done } = await startTunnel(t, url, MUCH)
  t.equal(await done, null)
  const closed = once(socket, 'close')
  clock.advance(5_000)
  await closed
})

t.test('an upstream that does not care that the client has left loses its connection', async t => {
  const ended = Promise.withResolvers<void>()
  const upstream = net.createServer({ allowHalfOpen: true }, socket => {
    socket.on('error', () => {}).once('close', () => ended.resolve())
    socket.once('data', () => socket.write(OPENED))
    // It would go on for as long as somebody takes it.
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

t.test('what either side says keeps it open, and silence of both ends it', async t => {
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
  t.match(await done, { code: 'idle_timeout' })
})

/** Talks until the connection is gone. */
async function goOn(socket: net.Socket): Promise<void> {
  while (!socket.destroyed) {
    socket.write('and another thing')
    await new Promise(resolve => setImmediate(resolve))
  }
}
