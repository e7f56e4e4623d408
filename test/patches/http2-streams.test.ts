import { execFile } from 'node:child_process'
import { once } from 'node:events'
import * as http2 from 'node:http2'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { mock } from 'node:test'
import * as tls from 'node:tls'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import type { Test } from 'tap'
import { createTransport } from '../../src/proxy/upstream/transport.ts'
import type { Controller, Transport } from '../../src/proxy/upstream/transport.ts'
import { selfSigned } from '../support/certificate.ts'
import {
  DATA, END_HEADERS, END_STREAM, HEADERS, PING, PREFACE, RST_STREAM, SETTINGS, frame, headerBlock, parseFrames,
  reset,
} from '../support/frames.ts'
import type { Frame } from '../support/frames.ts'
import { startTestGateway } from '../support/gateway.ts'
import { H2Request, openSession } from '../support/http2.ts'
import { responseText } from '../support/response-text.ts'
import { connect, post } from '../support/wire.ts'

const certificate = selfSigned()
const ca = join(t.testdir({ 'ca.pem': certificate.cert }), 'ca.pem')
const ACK = 1
const MAX_CONCURRENT_STREAMS = 3
const NO_ERROR = 0
const CANCEL = 8
const REFUSED = 7
const HALF = '{"half":'

/**
 * An HTTP/2 upstream that responds to each request with a head and half a body, and then calls `then`.
 *
 * @param isHasty it does not wait for the end of the request
 */
async function startHalfway(
  t: Test, then: (socket: tls.TLSSocket, stream: number) => void, isHasty = false,
): Promise<string> {
  const server = tls.createServer({ ...certificate, ALPNProtocols: ['h2'] }, socket => {
    let seen = Buffer.alloc(0)
    socket.on('error', () => {})
    socket.write(Buffer.concat([frame(SETTINGS, 0, 0), frame(SETTINGS, ACK, 0)]))
    socket.on('data', (chunk: Buffer) => {
      seen = Buffer.concat([seen, chunk])
      const last = parseFrames(seen.subarray(PREFACE.length))
        .find(({ type, flags }) => type === DATA && (isHasty || (flags & END_STREAM) !== 0))
      if (!last) return
      seen = Buffer.alloc(0)
      const head = headerBlock([[':status', '200'], ['content-type', 'application/json']])
      socket.write(frame(HEADERS, END_HEADERS, last.stream, head))
      socket.write(frame(DATA, 0, last.stream, Buffer.from(HALF)))
      then(socket, last.stream)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}`
}

for (const [what, end, whole] of [
  ['is cancelled is incomplete', (stream: number) => reset(stream, CANCEL), false],
  ['is reset without an error is incomplete', (stream: number) => reset(stream, NO_ERROR), false],
  ['is refused is incomplete', (stream: number) => reset(stream, REFUSED), false],
  ['ends is complete', (stream: number) => frame(DATA, END_STREAM, stream, Buffer.from('1}')), true],
  ['ends and is reset without an error is complete', (stream: number) => Buffer.concat([
    frame(DATA, END_STREAM, stream, Buffer.from('1}')), reset(stream, NO_ERROR),
  ]), true],
  ['ends with trailers is complete', (stream: number) => Buffer.concat([
    frame(DATA, 0, stream, Buffer.from('1}')),
    frame(HEADERS, END_HEADERS | END_STREAM, stream, headerBlock([['x-checksum', '1']])),
  ]), true],
] as const) {
  t.test(`a response over HTTP/2 that ${what}`, async t => {
    const url = await startHalfway(t, (socket, stream) => socket.write(end(stream)))
    const gateway = await startTestGateway(t, `
upstreams: { up: { url: "${url}", ca: "${ca}" } }
routes: [{ to: up }]
`)
    const client = await connect(t, gateway.url)
    client.send(post('/v1/files', {}))
    const line = gateway.waitForLog(each => each.msg === 'exchange')
    if (whole) {
      t.match(await client.until(/\r\n0\r\n\r\n$/), /\{"half":[^]*1\}/)
      t.match(await line, { end: 'complete' })
    } else {
      await client.ended
      t.notMatch(client.text, /\r\n0\r\n\r\n$/)
      t.match(await line, { error: 'upstream_cut' })
    }
  })
}

t.test('a response over HTTP/2 that ends before its request and is then reset without an error is complete', async t => {
  const seen = Promise.withResolvers<void>()
  const url = await startHalfway(t, (socket, stream) => {
    socket.write(Buffer.concat([
      frame(DATA, END_STREAM, stream, Buffer.from('1}')), reset(stream, NO_ERROR),
      frame(PING, 0, 0, Buffer.alloc(8)),
    ]))
    socket.on('data', (chunk: Buffer) => {
      if (chunk.includes(frame(PING, ACK, 0, Buffer.alloc(8)))) seen.resolve()
    })
  }, true)
  const transport = createTransport({ origin: url, socketPath: null, connectTimeout: 30_000, ca })
  t.teardown(() => transport.destroy())
  const body = Buffer.alloc(100_000, 'more than the window of a stream')
  const answer = await new Promise((resolve, reject) => {
    let text = ''
    transport.send({ method: 'POST', path: '/', headers: [], body }, {
      onRequestStart: () => {},
      onResponseStart: () => {},
      onResponseData: (controller, chunk) => {
        // All frames have arrived before the rest of the body is read.
        if (text === '') {
          controller.pause()
          void seen.promise.then(() => controller.resume())
        }
        text += chunk
      },
      onResponseEnd: () => resolve(text),
      onResponseError: (_controller, error) => reject(error),
    })
  })
  t.equal(answer, `${HALF}1}`)
})

t.test('a large response over HTTP/2 with trailers is complete', async t => {
  const body = Buffer.alloc(200_000, 'x')
  const server = http2.createSecureServer(certificate)
  server.on('stream', (stream: http2.ServerHttp2Stream) => {
    stream.respond({ ':status': 200, 'content-type': 'application/json' }, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers({ 'server-timing': 'all;dur=1' }))
    stream.end(body)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const gateway = await startTestGateway(t, `
upstreams: { up: { url: "https://127.0.0.1:${(server.address() as AddressInfo).port}", ca: "${ca}" } }
routes: [{ to: up }]
`)
  const session = await openSession(t, gateway.url)
  const request = new H2Request(session, 'GET', '/v1/files/f/content')
  t.equal(await request.closed, 0)
  t.equal(request.text.length, body.length)
})

/** An HTTP/2 upstream that allows one stream at a time, and sends the complete response after a frame that `isDue`. */
async function startOneByOne(
  t: Test, isDue: (asked: Frame) => boolean,
): Promise<{ transport: Transport; resets: () => number[]; connections: () => number }> {
  const one = Buffer.alloc(6)
  one.writeUInt16BE(MAX_CONCURRENT_STREAMS)
  one.writeUInt32BE(1, 2)
  let frames: Frame[] = []
  let connections = 0
  const server = tls.createServer({ ...certificate, ALPNProtocols: ['h2'] }, socket => {
    connections++
    let seen = Buffer.alloc(0)
    socket.on('error', () => {}).on('data', (chunk: Buffer) => {
      seen = Buffer.concat([seen, chunk])
      const before = frames.length
      frames = parseFrames(seen.subarray(PREFACE.length))
      for (const asked of frames.slice(before)) {
        if (!isDue(asked)) continue
        socket.write(frame(HEADERS, END_HEADERS, asked.stream, headerBlock([[':status', '413']])))
        socket.write(frame(DATA, END_STREAM, asked.stream, Buffer.from('too much')))
      }
    })
    socket.write(Buffer.concat([frame(SETTINGS, 0, 0, one), frame(SETTINGS, ACK, 0)]))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const resets = () => frames.filter(({ type }) => type === RST_STREAM).map(({ stream }) => stream)
  return { transport: transportTo(t, server), resets, connections: () => connections }
}

t.test('HTTP/2: a response that ends before its request frees its stream', async t => {
  // The upstream neither extends the window for the rest of the body nor resets the stream.
  const upstream = await startOneByOne(t, ({ type }) => type === HEADERS)
  const body = Buffer.alloc(100_000, 'more than the window of a stream')
  for (let n = 0; n < 3; n++) {
    const request = { method: 'POST', path: '/', headers: [], body }
    t.equal(await responseText(handler => upstream.transport.send(request, handler)), 'too much')
  }
  t.equal(upstream.connections(), 1)
})

t.test('HTTP/2: a completely sent request is not reset after its response', async t => {
  const upstream = await startOneByOne(t, ({ flags, type }) => type === DATA && (flags & END_STREAM) !== 0)
  for (let n = 0; n < 20; n++) {
    const request = { method: 'POST', path: '/', headers: [], body: Buffer.alloc(1_000) }
    t.equal(await responseText(handler => upstream.transport.send(request, handler)), 'too much')
  }
  t.same(upstream.resets(), [])
  t.equal(upstream.connections(), 1)
})

t.test('HTTP/2: an abort does not block the process, whatever part of the body is unsent', async t => {
  const program = fileURLToPath(new URL('http2-aborts.ts', import.meta.url))
  const { stderr } = await promisify(execFile)(
    process.execPath, ['--no-warnings', program], { timeout: 120_000, killSignal: 'SIGKILL' },
  )
  t.equal(stderr, '')
})

/** ms; longer than the timeout of a PING, and shorter than the keep-alive time of an idle connection. */
const LONG = 31_000

function transportTo(t: Test, server: { address(): unknown }): Transport {
  const { port } = server.address() as AddressInfo
  const transport = createTransport({
    origin: `https://127.0.0.1:${port}`, socketPath: null, connectTimeout: 30_000, ca,
  })
  t.teardown(() => transport.destroy())
  return transport
}

/** Sends a request. Resolves with the status or the error. */
function send(transport: Transport, onStart: (controller: Controller) => void = () => {}): Promise<unknown> {
  return new Promise(resolve => {
    transport.send({ method: 'GET', path: '/', headers: [], body: null }, {
      onRequestStart: onStart,
      onResponseStart: (_controller, status) => resolve(status),
      onResponseData: () => {},
      onResponseEnd: () => {},
      onResponseError: (_controller, error) => resolve(error),
    })
  })
}

/** An HTTP/2 upstream that responds with the values of these request headers, and does not read bodies. */
async function startTelling(t: Test, names: readonly string[]): Promise<Transport> {
  const server = http2.createSecureServer(certificate)
  server.on('stream', (stream: http2.ServerHttp2Stream, headers) => {
    stream.on('error', () => {})
    const told = JSON.stringify(names.map(name => headers[name]))
    stream.respond({ ':status': 200 })
    // A response that does not end keeps the unsent part of the request body.
    if (headers[':path'] !== '/slow') stream.end(told)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return transportTo(t, server)
}

t.test('HTTP/2: a repeated header is merged if it is a list, else one value is sent', async t => {
  const transport = await startTelling(t, ['user-agent', 'x-list'])
  const headers = ['user-agent', 'a', 'User-Agent', 'b', 'x-list', 'a', 'x-list', '']
  const request = { method: 'GET', path: '/', headers, body: null }
  const answer = JSON.parse(await responseText(handler => transport.send(request, handler))) as string[]
  t.match(answer[0], /^[ab]/)
  t.equal(answer[1], 'a,')
})

t.test('HTTP/2: unsent request bodies do not delay the responses to other requests', async t => {
  const transport = await startTelling(t, [])
  const slow = { method: 'POST', path: '/slow', headers: [], body: Buffer.alloc(12_000_000) }
  const begun = Promise.withResolvers<void>()
  transport.send(slow, {
    onRequestStart: () => {},
    onResponseStart: () => begun.resolve(),
    onResponseData: () => {},
    onResponseEnd: () => {},
    onResponseError: (_controller, error) => begun.reject(error),
  })
  await begun.promise
  const request = { method: 'GET', path: '/', headers: [], body: null }
  t.equal(await responseText(handler => transport.send(request, handler)), '[]')
})

t.test('HTTP/2: a cancelled request closes its connection if the server does not acknowledge the PING', async t => {
  const sockets: tls.TLSSocket[] = []
  const { promise: arrived, resolve: arrive } = Promise.withResolvers<void>()
  const server = tls.createServer({ ...certificate, ALPNProtocols: ['h2'] }, socket => {
    sockets.push(socket)
    const isFirst = sockets.length === 1
    let seen = Buffer.alloc(0)
    socket.on('error', () => {})
    socket.write(Buffer.concat([frame(SETTINGS, 0, 0), frame(SETTINGS, ACK, 0)]))
    socket.on('data', (chunk: Buffer) => {
      seen = Buffer.concat([seen, chunk])
      const asked = parseFrames(seen.subarray(PREFACE.length)).find(({ type }) => type === HEADERS)
      if (!asked) return
      arrive()
      if (isFirst) return
      socket.write(frame(HEADERS, END_HEADERS | END_STREAM, asked.stream, headerBlock([[':status', '204']])))
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const transport = transportTo(t, server)
  let controller: Controller | null = null
  const first = send(transport, given => {
    controller = given
  })
  await arrived
  const other = send(transport)
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  ;(controller as Controller | null)?.abort(new Error('it takes too long'))
  t.match(await first, { message: 'it takes too long' })
  mock.timers.tick(LONG)
  mock.timers.reset()
  await once(sockets[0] as tls.TLSSocket, 'close')
  t.type(await other, Error, 'another request on the closed connection fails')
  t.equal(await send(transport), 204)
  t.equal(sockets.length, 2)
})

t.test('HTTP/2: a cancelled request keeps its connection if the server acknowledges the PING', async t => {
  const server = http2.createSecureServer({ ...certificate })
  let sessions = 0
  const { promise: asked, resolve: ask } = Promise.withResolvers<void>()
  server.on('session', () => sessions++)
  server.once('stream', () => ask())
  server.on('stream', (stream: http2.ServerHttp2Stream) => {
    stream.on('error', () => {})
    if (stream.id !== 1) stream.respond({ ':status': 204 }, { endStream: true })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const transport = transportTo(t, server)
  let controller: Controller | null = null
  const first = send(transport, given => {
    controller = given
  })
  await asked
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  ;(controller as Controller | null)?.abort(new Error('it takes too long'))
  await first
  t.equal(await send(transport), 204, 'the response arrives after the reply to the PING')
  mock.timers.tick(LONG)
  mock.timers.reset()
  t.equal(await send(transport), 204)
  t.equal(sessions, 1)
})
