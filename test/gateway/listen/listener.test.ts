import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { constants } from 'node:http2'
import type { ClientHttp2Session } from 'node:http2'
import * as net from 'node:net'
import type { Duplex } from 'node:stream'
import * as tls from 'node:tls'
import t from 'tap'
import type { Test } from 'tap'
import { listen } from '../../../src/gateway/listen/listener.ts'
import type { ListenerOptions } from '../../../src/gateway/listen/listener.ts'
import { ResetLimit } from '../../../src/gateway/listen/reset-limit.ts'
import { destroyNow } from '../../../src/proxy/client/client.ts'
import { selfSigned } from '../../support/certificate.ts'
import { CONTINUATION, HEADERS, PREFACE, SETTINGS, frame, opening, parseFrames, request } from '../../support/frames.ts'
import { H2Request, openSession, openSessionOn } from '../../support/http2.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { connect } from '../../support/wire.ts'

const malformed: NodeJS.ErrnoException[] = []

async function start(t: Test, options: Partial<ListenerOptions> = {}) {
  const listener = await listen({
    listen: { host: '127.0.0.1', port: 0 },
    tls: null,
    maxConnections: () => Infinity,
    keepAlive: 75_000,
    resetLimit: resetLimit(),
    onHandshakeFailure: () => {},
    onNoRoom: socket => void socket.end('HTTP/1.1 503 Full\r\n\r\n'),
    onRequest: (req, res) => void (res as ServerResponse).end(`${req.httpVersion} ${req.url}`),
    onUpgrade: (_req, socket) => void socket.end('upgraded'),
    onMalformed: (error, socket) => {
      malformed.push(error)
      socket.end(`HTTP/1.1 408 ${error.code}\r\n\r\n`)
    },
    ...options,
  })
  t.teardown(() => listener.close(0))
  return listener
}

function resetLimit(perMinute = 3_000, blocked: string[] = []): ResetLimit {
  return new ResetLimit({
    clock: new FakeClock(), perMinute, isExempt: () => false, onBlocked: address => void blocked.push(address),
  })
}

const GET = 'GET /x HTTP/1.1\r\nHost: x\r\n\r\n'

t.test('a port without TLS serves HTTP/1.1 and HTTP/2, which the first bytes of a connection distinguish', async t => {
  const listener = await start(t)
  const client = await connect(t, listener.url)
  client.send(GET)
  await client.until(/1\.1 \/x$/)
  const session = await openSession(t, listener.url)
  const stream = session.request({ ':path': '/y' })
  const [chunk] = (await once(stream, 'data')) as [Buffer]
  t.equal(chunk.toString(), '2.0 /y')
})

t.test('HTTP/1.1 and HTTP/2 are distinguished even if the first bytes arrive one by one', async t => {
  const listener = await start(t)
  for (const text of [GET, 'PUT /x HTTP/1.1\r\nHost: x\r\n\r\n', 'PRI /x HTTP/1.1\r\nHost: x\r\n\r\n']) {
    const client = await connect(t, listener.url)
    for (const byte of text) {
      client.send(byte)
      await new Promise(setImmediate)
    }
    if (text.startsWith('PRI')) await client.ended
    else await client.until(/1\.1 \/x$/)
  }
  const client = await connect(t, listener.url)
  for (const byte of PREFACE) {
    client.socket.write(Buffer.from([byte]))
    await new Promise(setImmediate)
  }
  client.socket.write(frame(SETTINGS, 0, 0))
  await client.until(/[^]{9}/)
  t.equal(parseFrames(Buffer.from(client.text, 'latin1'))[0]?.type, SETTINGS)
})

t.test('a request whose head takes too long gets 408', async t => {
  const listener = await start(t, { headersTimeout: 100 })
  for (const beginning of ['GET /x HTTP/1.1\r\nHost: x\r\n', 'G']) {
    const client = await connect(t, listener.url)
    client.send(beginning)
    t.match(await client.until(/\r\n\r\n/), /^HTTP\/1\.1 408 ERR_HTTP_REQUEST_TIMEOUT/)
    await client.ended
  }
})

t.test('a head that arrives byte by byte gets 408; a body that arrives byte by byte is read', async t => {
  const listener = await start(t, {
    headersTimeout: 150,
    onRequest: (req, res) => {
      req.resume()
      req.once('end', () => (res as ServerResponse).end('whole'))
    },
  })
  const slow = await connect(t, listener.url)
  const drip = setInterval(() => slow.send('x'), 20)
  t.teardown(() => clearInterval(drip))
  slow.send('GET /x HTTP/1.1\r\nX-Long: ')
  t.match(await slow.until(/\r\n\r\n/), /^HTTP\/1\.1 408 /)
  const fine = await connect(t, listener.url)
  fine.send('POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 20\r\n\r\n')
  for (let i = 0; i < 20; i++) {
    await new Promise(resolve => setTimeout(resolve, 20))
    fine.send('x')
  }
  await fine.until(/whole$/)
})

t.test('a connection without any bytes is closed after headersTimeout', async t => {
  const listener = await start(t, { headersTimeout: 100 })
  const client = await connect(t, listener.url)
  t.equal(await client.ended, 'end')
  t.equal(client.text, '')
})

t.test('HTTP/2: a session without running requests is closed after the keep-alive time', async t => {
  const asked = Promise.withResolvers<ServerResponse>()
  const listener = await start(t, {
    keepAlive: 100, onRequest: (_req, res) => asked.resolve(res as ServerResponse),
  })
  const { session, tcp } = await openSessionOn(t, listener.url)
  const idle = await openSessionOn(t, listener.url)
  const request = new H2Request(session, 'GET', '/x')
  const res = await asked.promise
  await once(idle.tcp, 'close')
  t.notOk(tcp.destroyed)
  const answered = performance.now()
  res.end('late')
  t.equal(await request.closed, 0)
  t.equal(request.text, 'late')
  await once(tcp, 'close')
  t.ok(performance.now() - answered >= 90, 'the keep-alive time starts at the end of the last request')
})

t.test('HTTP/2: a request head that takes too long ends the session, whether or not it is the first request', async t => {
  const { cert, key } = selfSigned()
  for (const secure of [false, true]) {
    const listener = await start(t, { tls: secure ? { cert, key } : null, headersTimeout: 150, keepAlive: 150 })
    for (const before of [[], [request(1, [[':method', 'GET'], [':scheme', 'http'], [':path', '/x'], [':authority', 'x']], true)]]) {
      const client = await connect(t, listener.url, secure ? cert : undefined, ['h2'])
      client.socket.write(Buffer.concat([opening(), ...before, frame(HEADERS, 0, 3, Buffer.from([0]))]))
      const drip = setInterval(() => client.socket.write(frame(CONTINUATION, 0, 3, Buffer.from([0]))), 20)
      t.teardown(() => clearInterval(drip))
      await client.ended
      t.match(parseFrames(Buffer.from(client.text, 'latin1')).map(({ type }) => type).includes(HEADERS), before.length === 1)
    }
  }
})

t.test('TLS: ALPN selects the protocol; a missing or failed handshake does not affect other connections', async t => {
  const { cert, key } = selfSigned()
  const listener = await start(t, { tls: { cert, key }, headersTimeout: 200 })
  const { port } = new URL(listener.url)
  for (
    const [offer, chosen] of [
      [['h2'], 'h2'], [['http/1.1'], 'http/1.1'], [['h2', 'http/1.1'], 'h2'], [[], false],
    ] as const
  ) {
    const socket = tls.connect({ port: Number(port), host: '127.0.0.1', ca: cert, ALPNProtocols: [...offer] })
    await once(socket, 'secureConnect')
    t.equal(socket.alpnProtocol, chosen)
    socket.destroy()
  }
  const plain = await connect(t, listener.url.replace('https', 'http'))
  plain.send(GET)
  await plain.ended
  const silent = await connect(t, listener.url.replace('https', 'http'))
  await silent.ended
  const session = await openSession(t, listener.url, cert)
  const [chunk] = (await once(session.request({ ':path': '/y' }), 'data')) as [Buffer]
  t.equal(chunk.toString(), '2.0 /y')
})

t.test('an error of an upgraded connection does not affect other connections, with or without TLS', async t => {
  const { cert, key } = selfSigned()
  for (const secure of [false, true]) {
    const upgraded = Promise.withResolvers<void>()
    const listener = await start(t, {
      tls: secure ? { cert, key } : null,
      onUpgrade: (_req, socket) => {
        socket.write('x')
        socket.once('close', upgraded.resolve)
        // The upgrade handler has no error listener; the Listener handles the error.
        socket.destroy(new Error('broken'))
      },
    })
    const client = await connect(t, listener.url, secure ? cert : undefined)
    client.send('GET /x HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n')
    await upgraded.promise
  }
  t.pass('the process lives')
})

t.test('a pipelined request starts after the response to the previous request ends', async t => {
  const begun: ServerResponse[] = []
  const listener = await start(t, { onRequest: (_req, res) => void begun.push(res as ServerResponse) })
  const client = await connect(t, listener.url)
  client.send(GET.repeat(3))
  await client.until(/^/)
  for (let i = 1; i <= 3; i++) {
    while (begun.length < i) await new Promise(setImmediate)
    await new Promise(setImmediate)
    t.equal(begun.length, i)
    begun[i - 1]?.end(`answer ${i}`)
    await client.until(new RegExp(`answer ${i}$`))
  }
})

t.test('a client can pipeline a hundred requests; more requests close the connection', async t => {
  const begun: ServerResponse[] = []
  const listener = await start(t, { onRequest: (_req, res) => void begun.push(res as ServerResponse) })
  const modest = await connect(t, listener.url)
  modest.send(GET.repeat(101))
  for (let n = 0; n < 101; n++) {
    while (begun.length <= n) await new Promise(setImmediate)
    begun[n]?.end(`answer ${n}`)
  }
  await modest.until(/answer 100$/)
  const greedy = await connect(t, listener.url)
  greedy.send(GET.repeat(5_000))
  await greedy.ended
  t.equal(begun.length, 102, 'pipelined requests of a closed connection do not start')
})

t.test('all of 5,000 headers are passed on', async t => {
  let seen = 0
  const listener = await start(t, {
    onRequest: (req, res) => {
      seen = req.rawHeaders.length / 2
      ;(res as ServerResponse).end('ok')
    },
  })
  const client = await connect(t, listener.url)
  client.send(`GET / HTTP/1.1\r\nHost: x\r\n${'a: b\r\n'.repeat(5_000)}\r\n`)
  await client.until(/ok$/)
  t.equal(seen, 5_001)
})

t.test('a request head above 64 kB is refused', async t => {
  const listener = await start(t)
  const client = await connect(t, listener.url)
  client.send(`GET / HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(70_000)}\r\n\r\n`)
  await client.until(/HPE_HEADER_OVERFLOW/)
})

t.test('close sends written data, and ends the remaining connections after its timeout', async t => {
  const listener = await start(t, { onRequest: (_req, res) => void (res as ServerResponse).write('begun') })
  const idle = await connect(t, listener.url)
  const session = await openSession(t, listener.url)
  const goaway = once(session, 'goaway')
  const client = await connect(t, listener.url)
  client.send(GET)
  await client.until(/begun/)
  await listener.close(50)
  await goaway
  await idle.ended
  await client.ended
  await t.rejects(connect(t, listener.url))
})

t.test('a connection above the limit gets 503 and is closed, even if the client does not close', async t => {
  const listener = await start(t, { maxConnections: () => 1 })
  await connect(t, listener.url)
  const { hostname, port } = new URL(listener.url)
  const late = net.connect({ host: hostname, port: Number(port), allowHalfOpen: true })
  const closed = new Promise(resolve => late.on('error', () => {}).once('close', resolve))
  t.match(String((await once(late, 'data'))[0]), /^HTTP\/1\.1 503 Full/)
  // A write to a closed connection shows that it is closed.
  const talk = setInterval(() => late.write('x'), 20)
  t.teardown(() => clearInterval(talk))
  await closed
})

t.test('with TLS, a connection above the limit is closed before the handshake', async t => {
  const certificate = selfSigned()
  const listener = await start(t, { tls: certificate, maxConnections: () => 1 })
  const session = await openSession(t, listener.url, certificate.cert)
  const { hostname, port } = new URL(listener.url)
  const late = tls.connect({ host: hostname, port: Number(port), ca: certificate.cert })
  t.teardown(() => late.destroy())
  late.once('secureConnect', () => t.fail('the handshake was made'))
  await new Promise(resolve => late.on('error', () => {}).once('close', resolve))
  t.equal((await new H2Request(session, 'GET', '/x').head)[':status'], 200)
})

t.test('the start of a listener rejects if the address is in use', async t => {
  const { url } = await start(t)
  const port = Number(new URL(url).port)
  await t.rejects(start(t, { listen: { host: '127.0.0.1', port } }), { code: 'EADDRINUSE' })
})

t.test('the url of a listener on all interfaces has the loopback address', async t => {
  t.match((await start(t, { listen: { host: '0.0.0.0', port: 0 } })).url, /^http:\/\/127\.0\.0\.1:\d+$/)
  t.match((await start(t, { listen: { host: '127.0.0.1', port: 0 } })).url, /^http:\/\/127\.0\.0\.1:\d+$/)
})

t.test('drain: idle connections are closed after drainIdle, and upgraded connections stay open', async t => {
  const upgraded = Promise.withResolvers<Duplex>()
  const listener = await start(t, {
    drainIdle: 100,
    onUpgrade: (_req, socket) => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\n\r\n')
      upgraded.resolve(socket)
    },
  })
  const silent = await connect(t, listener.url)
  silent.send(GET)
  await silent.until(/1\.1 \/x$/)
  const session = await openSession(t, listener.url)
  const closed = once(session, 'close')
  const tunnel = await connect(t, listener.url)
  tunnel.send('GET /x HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n')
  await tunnel.until(/101/)
  const left = listener.drain()
  await t.rejects(connect(t, listener.url), 'new connections are refused')
  t.equal(await silent.ended, 'end')
  await closed
  const socket = await upgraded.promise
  socket.write('still here')
  await tunnel.until(/still here/)
  socket.end()
  tunnel.socket.end()
  await left
})

t.test('drain: a connection without a request is closed, and a busy connection is closed after its response', async t => {
  const begun = Promise.withResolvers<ServerResponse>()
  const listener = await start(t, {
    keepAlive: 3_600_000,
    drainIdle: 100,
    onRequest: (_req, res) => {
      const answer = res as ServerResponse
      answer.writeHead(200, { 'content-length': '5' }).write('be')
      begun.resolve(answer)
    },
  })
  const mute = await connect(t, listener.url)
  const asking = await connect(t, listener.url)
  asking.send(GET)
  // By then the earlier connection is accepted too.
  await asking.until(/\r\n\r\nbe$/)
  const left = listener.drain()
  mute.socket.write(opening())
  ;(await begun.promise).end('gun')
  await mute.ended
  t.equal(await asking.ended, 'end')
  await left
})

/** Opens streams that get no response, and resets them. Settles when all are closed. */
function abandonStreams(session: ClientHttp2Session, count: number): Promise<unknown> {
  const streams = Array.from({ length: count }, () => session.request({ ':path': '/' }))
  return Promise.all(streams.map(async stream => {
    stream.on('error', () => {})
    stream.close(constants.NGHTTP2_CANCEL)
    await once(stream, 'close')
  }))
}

t.test('a client can reset 1,000 streams of a connection at once', async t => {
  const listener = await start(t, { onRequest: () => {} })
  const session = await openSession(t, listener.url)
  await abandonStreams(session, 1_000)
  await new Promise<void>((resolve, reject) => {
    session.ping(error => (error ? reject(error) : resolve()))
  })
  t.equal(session.destroyed, false)
})

for (const certificate of [null, selfSigned()]) {
  const scheme = certificate ? 'https' : 'http'
  t.test(`the connections of an address that resets too many streams are closed, and new ones are refused (${scheme})`, async t => {
    const blocked: string[] = []
    const limit = resetLimit(100, blocked)
    let requests = 0
    const listener = await start(t, {
      tls: certificate && { cert: certificate.cert, key: certificate.key },
      resetLimit: limit,
      onRequest: (req, res) => {
        requests++
        if (req.url === '/y') (res as ServerResponse).end('y')
      },
    })
    const open = () => openSession(t, listener.url, certificate?.cert)
    const [first, second, innocent] = [await open(), await open(), await open()]
    const cut = once(second, 'goaway')
    await abandonStreams(first, 60)
    // By then the gateway has read all resets.
    await new Promise(resolve => first.ping(resolve))
    t.strictSame(blocked, [])
    await abandonStreams(second, 60)
    t.equal((await cut)[0], constants.NGHTTP2_ENHANCE_YOUR_CALM)
    t.strictSame(blocked, ['127.0.0.1'])
    const refused = await connect(t, listener.url.replace('https', 'http'))
    await refused.ended
    t.equal(refused.text, '', 'a new connection is refused')
    t.equal(requests, 120)
    t.equal((await new H2Request(innocent, 'GET', '/y').head)[':status'], 200, 'a connection without resets stays open')
  })
}

t.test('streams that the gateway resets are not counted', async t => {
  const blocked: string[] = []
  const listener = await start(t, {
    resetLimit: resetLimit(10, blocked),
    onRequest: (_req, res) => destroyNow(res),
  })
  const session = await openSession(t, listener.url)
  for (let n = 0; n < 20; n++) t.equal(await new H2Request(session, 'GET', '/').closed, constants.NGHTTP2_CANCEL)
  t.strictSame(blocked, [])
})

t.test('streams that run at the end of their connection are counted as reset', async t => {
  const blocked: string[] = []
  const began = Promise.withResolvers<void>()
  let requests = 0
  const listener = await start(t, {
    resetLimit: resetLimit(10, blocked),
    onRequest: () => {
      if (++requests === 20) began.resolve()
    },
  })
  const { session, tcp } = await openSessionOn(t, listener.url)
  for (let n = 0; n < 20; n++) session.request({ ':path': '/' }).on('error', () => {})
  await began.promise
  tcp.destroy()
  while (blocked.length === 0) await new Promise(setImmediate)
  t.strictSame(blocked, ['127.0.0.1'])
})
