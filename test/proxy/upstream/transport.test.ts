import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import * as http2 from 'node:http2'
import * as net from 'node:net'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import * as tls from 'node:tls'
import t from 'tap'
import type { Test } from 'tap'
import { systemClock } from '../../../src/base/clock.ts'
import type { GatewayError } from '../../../src/base/errors.ts'
import { Deadlines } from '../../../src/proxy/http/deadlines.ts'
import { createProxy } from '../../../src/proxy/upstream/http-proxy.ts'
import { ReadTurns } from '../../../src/proxy/http/read-turns.ts'
import { createTransport } from '../../../src/proxy/upstream/transport.ts'
import type { Transport } from '../../../src/proxy/upstream/transport.ts'
import { selfSigned } from '../../support/certificate.ts'
import {
  DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PREFACE, SETTINGS, frame, headerBlock, parseFrames,
} from '../../support/frames.ts'
import { UpstreamCall } from '../../../src/proxy/upstream/upstream-call.ts'
import { responseText } from '../../support/response-text.ts'
import { addressOf, requestWith } from '../../support/upstream-address.ts'

const ACK = 1
/** The channel on which undici reports each new connection. */
const CONNECTED = 'undici:client:connected'
const ANSWER = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

async function transportTo(
  t: Test, server: net.Server, ca: string | null, connectTimeout = 10_000,
): Promise<Transport> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as net.AddressInfo
  const origin = `${ca === null ? 'http' : 'https'}://127.0.0.1:${port}`
  const transport = createTransport({ origin, socketPath: null, connectTimeout, ca })
  t.teardown(async () => {
    await transport.destroy()
    server.close()
  })
  return transport
}

function ask(transport: Transport, onFailed = () => {}): Promise<string> {
  const request = { method: 'POST', path: '/', headers: [], body: Buffer.from('{}') }
  return responseText(handler => transport.send(request, handler), onFailed)
}

/** Sends an UpstreamCall, which is repeated if its connection breaks before the request is sent. */
async function call(transport: Transport): Promise<string> {
  let body = ''
  const over = Promise.withResolvers<GatewayError | null>()
  const limits = { connect: 10_000, firstByte: 10_000, idle: 10_000, total: 10_000 }
  const deadlines = new Deadlines(systemClock, limits, systemClock.monotonic(), () => {})
  const error = await new UpstreamCall({
    upstream: addressOf('http://a', transport), request: requestWith([], { method: 'POST', body: Buffer.from('{}') }),
    credential: null, client: null, deadlines, readTurns: new ReadTurns(), decompresses: false,
    sink: {
      head: () => null,
      data: chunk => {
        body += chunk
        return true
      },
      end: () => over.resolve(null),
      broken: over.resolve,
    },
  }).run(createProxy()) ?? await over.promise
  deadlines.stop()
  if (error !== null) throw error
  return body
}

t.test('if the kept connections are reset before a request is written, the request uses a new connection', async t => {
  const sockets: net.Socket[] = []
  let requests = 0
  const server = net.createServer(socket => {
    sockets.push(socket)
    socket.on('error', () => {}).on('data', () => {
      requests++
      socket.write(ANSWER)
    })
  })
  const transport = await transportTo(t, server, null)
  await Promise.all([call(transport), call(transport), call(transport)])
  await setImmediate()
  // The transport reads these resets before it writes the request.
  for (const socket of sockets.splice(0)) socket.resetAndDestroy()
  t.equal(await call(transport), 'ok')
  t.equal(requests, 4)
  t.equal(sockets.length, 1, 'one new connection')
  for (const socket of sockets) socket.destroy()
})

t.test('a request fails if the upstream resets every connection', async t => {
  const server = net.createServer(socket => socket.on('error', () => {}).resetAndDestroy())
  const transport = await transportTo(t, server, null)
  await t.rejects(call(transport))
})

t.test('a connection is closed after GOAWAY, even if the upstream keeps its side open', async t => {
  const certificate = selfSigned()
  const ca = join(t.testdir({ 'ca.pem': certificate.cert }), 'ca.pem')
  const options = { ...certificate, ALPNProtocols: ['h2'], allowHalfOpen: true }
  const server = tls.createServer(options, socket => {
    let seen = Buffer.alloc(0)
    t.teardown(() => socket.destroy())
    socket.on('error', () => {}).on('data', (chunk: Buffer) => {
      seen = Buffer.concat([seen, chunk])
      const last = parseFrames(seen.subarray(PREFACE.length))
        .find(({ type, flags }) => type === DATA && (flags & END_STREAM) !== 0)
      if (!last) return
      seen = Buffer.alloc(0)
      socket.write(Buffer.concat([
        frame(GOAWAY, 0, 0, Buffer.from([0, 0, 0, last.stream, 0, 0, 0, 0])),
        frame(HEADERS, END_HEADERS, last.stream, headerBlock([[':status', '200']])),
        frame(DATA, END_STREAM, last.stream, Buffer.from('ok')),
      ]))
    })
    socket.write(Buffer.concat([frame(SETTINGS, 0, 0), frame(SETTINGS, ACK, 0)]))
  })
  const transport = await transportTo(t, server, ca)
  const connected = Promise.withResolvers<net.Socket>()
  const onConnected = (message: unknown) => connected.resolve((message as { socket: net.Socket }).socket)
  subscribe(CONNECTED, onConnected)
  t.teardown(() => unsubscribe(CONNECTED, onConnected))
  const answer = ask(transport)
  const socket = await connected.promise
  const closed = once(socket, 'close')
  t.equal(await answer, 'ok')
  await closed
})

t.test('an HTTP/2 upstream that allows no streams times out, and its connection is closed', async t => {
  const certificate = selfSigned()
  const ca = join(t.testdir({ 'ca.pem': certificate.cert }), 'ca.pem')
  const server = http2.createSecureServer({ ...certificate, settings: { maxConcurrentStreams: 0 } })
  const closed: Promise<unknown>[] = []
  server.on('session', (session: http2.ServerHttp2Session) => {
    closed.push(new Promise(resolve => session.on('error', () => {}).once('close', resolve)))
  })
  const transport = await transportTo(t, server, ca, 1_000)
  await t.rejects(ask(transport), { code: 'UND_ERR_HEADERS_TIMEOUT' })
  t.equal(closed.length, 1)
  await Promise.all(closed)
})
