import { once } from 'node:events'
import * as http2 from 'node:http2'
import * as net from 'node:net'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { pino } from 'pino'
import t from 'tap'
import type { Test } from 'tap'
import { loadConfig } from '../../src/config/load/load.ts'
import { buildGateway } from '../../src/gateway/build-gateway.ts'
import { newExchange } from '../../src/gateway/listen/new-exchange.ts'
import { handle } from '../../src/pipeline/pipeline.ts'
import { FakeClock } from '../support/fake-clock.ts'
import {
  DATA, END_STREAM, PREFACE, RST_STREAM, SETTINGS, frame, parseFrames, request,
} from '../support/frames.ts'
import { KEY, startTestGateway } from '../support/gateway.ts'
import { startUpstream } from '../support/upstream.ts'
import { connect, proxyTo } from '../support/wire.ts'

const GATEWAY = proxyTo('http://127.0.0.1:9', 'timeouts: { idle: 200ms }')

/** SETTINGS_INITIAL_WINDOW_SIZE = 0 (RFC 9113 section 6.5.2). */
const NO_WINDOW = frame(SETTINGS, 0, 0, Buffer.from([0, 4, 0, 0, 0, 0]))

t.test('HTTP/2: a response of the gateway ends with RST_STREAM if the client has a flow-control window of 0', async t => {
  const gateway = await startTestGateway(t, GATEWAY)
  const { socket } = await connect(t, gateway.url)
  const get = [[':method', 'GET'], [':scheme', 'http'], [':path', '/v1/models'], [':authority', 'x']] as const
  const got: Buffer[] = []
  socket.on('data', (chunk: Buffer) => got.push(chunk))
  socket.write(Buffer.concat([PREFACE, NO_WINDOW, request(1, get, true)]))
  for (;;) {
    await once(socket, 'data')
    const frames = parseFrames(Buffer.concat(got)).filter(({ stream }) => stream === 1)
    t.notOk(frames.some(({ type, flags }) => type === DATA && (flags & END_STREAM) !== 0))
    if (frames.some(({ type }) => type === RST_STREAM)) break
  }
})

/** The pipeline with HTTP/2 and a FakeClock, and clients whose window is 0. */
async function startStill(t: Test) {
  const clock = new FakeClock()
  const file = join(t.testdir({ 'gateway.yaml': proxyTo('http://127.0.0.1:9') }), 'gateway.yaml')
  const { config } = loadConfig(file, {})
  t.equal(config.timeouts.idle, 30 * 60_000)
  const gateway = buildGateway(config, { version: '0', clock, log: pino({ enabled: false }) }, null)
  const server = http2.createServer((req, res) => void handle(gateway, newExchange(gateway, req, res, false), null))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as net.AddressInfo
  const connectStill = () => {
    const session = http2.connect(`http://127.0.0.1:${port}`, { settings: { initialWindowSize: 0 } })
    t.teardown(() => session.destroy())
    return session
  }
  /** Sends a request, and does not read the refusal. */
  const ask = async (session: http2.ClientHttp2Session) => {
    const stream = session.request({ ':path': '/v1/models' })
    const [head] = await once(stream, 'response') as [http2.IncomingHttpStatusHeader]
    return { stream, status: head[':status'] }
  }
  /** Without the timer of the gateway that renews the capsule keys. */
  const ownTimers = clock.pending
  return { clock, gateway, server, connect: connectStill, ask, timers: () => clock.pending - ownTimers }
}

t.test('HTTP/2: a refusal that the client does not read is reset after a minute', async t => {
  const { clock, connect, ask, timers } = await startStill(t)
  const { stream, status } = await ask(connect())
  t.equal(status, 401)
  clock.advance(59_000)
  t.equal(timers(), 1, 'the stream has a minute')
  clock.advance(1_000)
  await once(stream, 'close')
  t.equal(stream.rstCode, http2.constants.NGHTTP2_CANCEL)
})

t.test('HTTP/2: unread refusals beyond 1,000 are reset after a second', async t => {
  const { clock, gateway, server, connect, ask, timers } = await startStill(t)
  const ends: Promise<unknown>[] = []
  server.on('session', session => ends.push(once(session, 'close')))
  const sessions = [connect(), connect()]
  for (const session of sessions) await Promise.all(Array.from({ length: 501 }, () => ask(session)))
  t.equal(timers(), 1_002)
  clock.advance(1_000)
  t.equal(timers(), 1_000)
  for (const session of sessions) session.destroy()
  await Promise.all(ends)
  t.match(gateway.sharedState, { unreadResponses: 0 }, 'unread refusals of a disconnected client do not count')
  t.equal(timers(), 0)
})

t.test('HTTP/2: a client that does not read the last bytes is recorded as client_stalled', async t => {
  const upstream = await startUpstream(t, (_req, res) => {
    res.setHeader('content-type', 'application/json').end('{"data":[]}')
  })
  const gateway = await startTestGateway(t, proxyTo(upstream.url, 'timeouts: { idle: 200ms }'))
  const { socket } = await connect(t, gateway.url)
  const list = [
    [':method', 'GET'], [':scheme', 'http'], [':path', '/v1/files'], [':authority', 'x'], ['x-api-key', KEY],
  ] as const
  socket.write(Buffer.concat([PREFACE, NO_WINDOW, request(1, list, true)]))
  t.match(await gateway.waitForLog(line => line['status'] === 200), { error: 'client_stalled' })
})

t.test('HTTP/1.1: a client that sends many requests and does not read is disconnected', async t => {
  const gateway = await startTestGateway(t, GATEWAY)
  const { hostname, port } = new URL(gateway.url)
  const client = net.connect(Number(port), hostname)
  t.teardown(() => client.destroy())
  const closed = new Promise(resolve => client.on('error', () => {}).once('close', resolve))
  // The response contains the path.
  const get = `GET /${'x'.repeat(50_000)} HTTP/1.1\r\nHost: x\r\n\r\n`
  for (let answered = 0; !client.destroyed; answered++) {
    client.write(get)
    while (gateway.logged.length <= answered && !client.destroyed) {
      // The server ignores an empty line (RFC 9112 section 2.2); the write fails if the connection is closed.
      client.write('\r\n')
      await setImmediate()
    }
  }
  await closed
  t.pass('the connection was ended')
})
