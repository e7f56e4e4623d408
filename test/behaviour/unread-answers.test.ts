import { once } from 'node:events'
import * as net from 'node:net'
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import {
  DATA, END_STREAM, PREFACE, RST_STREAM, SETTINGS, frame, parseFrames, request,
} from '../support/frames.ts'
import { startTestGateway } from '../support/gateway.ts'
import { connect, proxyTo } from '../support/wire.ts'

const GATEWAY = proxyTo('http://127.0.0.1:9', 'timeouts: { idle: 200ms }')

t.test('HTTP/2: an answer of its own is not kept for ever for a client that opens no window', async t => {
  const gateway = await startTestGateway(t, GATEWAY)
  const { socket } = await connect(t, gateway.url)
  // SETTINGS_INITIAL_WINDOW_SIZE = 0 (RFC 9113 section 6.5.2).
  const closed = frame(SETTINGS, 0, 0, Buffer.from([0, 4, 0, 0, 0, 0]))
  const get = [[':method', 'GET'], [':scheme', 'http'], [':path', '/v1/models'], [':authority', 'x']] as const
  const got: Buffer[] = []
  socket.on('data', (chunk: Buffer) => got.push(chunk))
  socket.write(Buffer.concat([PREFACE, closed, request(1, get, true)]))
  for (;;) {
    await once(socket, 'data')
    const frames = parseFrames(Buffer.concat(got)).filter(({ stream }) => stream === 1)
    t.notOk(frames.some(({ type, flags }) => type === DATA && (flags & END_STREAM) !== 0))
    if (frames.some(({ type }) => type === RST_STREAM)) break
  }
})

t.test('HTTP/1.1: nor for one that asks again and again, and does not read', async t => {
  const gateway = await startTestGateway(t, GATEWAY)
  const { hostname, port } = new URL(gateway.url)
  const client = net.connect(Number(port), hostname)
  t.teardown(() => client.destroy())
  const closed = new Promise(resolve => client.on('error', () => {}).once('close', resolve))
  // The answer tells the path.
  const get = `GET /${'x'.repeat(50_000)} HTTP/1.1\r\nHost: x\r\n\r\n`
  for (let answered = 0; !client.destroyed; answered++) {
    client.write(get)
    while (gateway.logged.length <= answered && !client.destroyed) {
      // An empty line means nothing (RFC 9112 section 2.2), and shows whether anybody is still there.
      client.write('\r\n')
      await setImmediate()
    }
  }
  await closed
  t.pass('the connection was ended')
})
