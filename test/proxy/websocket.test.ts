import { once } from 'node:events'
import * as net from 'node:net'
import t from 'tap'
import { systemClock } from '../../src/clock.ts'
import { createProxy } from '../../src/proxy/attempt.ts'
import { Tunnel } from '../../src/proxy/websocket.ts'
import { startRawUpstream } from '../support/upstream.ts'
import { Wire } from '../support/wire.ts'

const MINUTE = 60_000
const TIMEOUTS = { connect: MINUTE, firstByte: MINUTE, idle: MINUTE, total: MINUTE }
const OPENED = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n'

t.test('the last word of an upstream that ends reaches a client that reads slowly', async t => {
  const upstream = await startRawUpstream(t, socket => {
    socket.once('data', () => socket.end(`${OPENED}the last word`))
  })
  // More than the system takes waits for the client, and there is room for more.
  const before = Buffer.alloc(32 * 1024 * 1024, '.')
  const front = net.createServer({ highWaterMark: 2 * before.length }).listen(0, '127.0.0.1')
  t.teardown(() => front.close())
  await once(front, 'listening')
  const client = net.connect((front.address() as net.AddressInfo).port, '127.0.0.1').pause()
  const [socket] = await once(front, 'connection') as [net.Socket]
  socket.write(before)
  const tunnel = new Tunnel({
    socket,
    head: Buffer.alloc(0),
    path: '/',
    headers: [],
    handshake: { connection: 'Upgrade', upgrade: 'websocket' },
    upstream: { url: new URL(upstream.url), socketPath: null, ca: null },
    own: { version: '0', requestId: 'id', limits: [] },
    clock: systemClock,
    timeouts: TIMEOUTS,
    startedAt: systemClock.monotonic(),
    onOpen: () => {},
    onData: () => {},
  })
  t.equal(await tunnel.run(createProxy()), null)
  t.ok(socket.writableLength > 0)
  const wire = new Wire(client.resume())
  t.equal(await wire.ended, 'end')
  t.match(wire.text.slice(before.length), /^HTTP\/1\.1 101 [^]*\r\n\r\nthe last word$/)
})
