import { once } from 'node:events'
import * as http from 'node:http'
import * as http2 from 'node:http2'
import * as https from 'node:https'
import * as net from 'node:net'
import { mock } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import type { Test } from 'tap'
import { buildConnector } from 'undici'
import type { Dispatcher } from 'undici'
import { Pool } from '../../../src/proxy/upstream/pool.ts'
import { selfSigned } from '../../support/certificate.ts'
import { responseText } from '../../support/response-text.ts'

const certificate = selfSigned()
const HEADERS: string[] = []

interface Origin {
  readonly pool: Pool
  /** Connections that were made so far. */
  connections(): number
  /** Resolves with so many requests when they have come. */
  arrived(count: number): Promise<(() => void)[]>
  readonly server: net.Server
}

type Answering = { end(body: string): unknown }

/** A server that sends `ok` when the test says so, and a pool of connections to it. */
async function setUp(t: Test, server: net.Server, secure: boolean): Promise<Origin> {
  const waiting: (() => void)[] = []
  let connections = 0
  let wake = () => {}
  const sockets = new Set<net.Socket>()
  server.on('connection', (socket: net.Socket) => sockets.add(socket.on('error', () => {})))
  server.on(secure ? 'secureConnection' : 'connection', () => connections++)
  server.on('request', (_req: unknown, res: Answering) => {
    waiting.push(() => res.end('ok'))
    wake()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as net.AddressInfo
  // Without undici's connect timeout, so that only the timeouts of the pool apply.
  const pool = new Pool(
    `${secure ? 'https' : 'http'}://127.0.0.1:${port}`, buildConnector({ ca: certificate.cert, timeout: 0 }),
    { pipelining: 1, keepAliveTimeout: 60_000 },
  )
  t.teardown(async () => {
    await pool.destroy(new Error('the test is over'))
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return {
    pool, server,
    connections: () => connections,
    arrived: async count => {
      while (waiting.length < count) {
        await new Promise<void>(resolve => {
          wake = resolve
        })
      }
      return waiting.splice(0, count)
    },
  }
}

function ask(
  pool: Pool, options: Partial<Dispatcher.DispatchOptions> = {}, onFailed = () => {},
): Promise<string> {
  const request = { method: 'GET', path: '/', headers: HEADERS, ...options } as const
  return responseText(handler => pool.dispatch(request, handler), onFailed)
}

/** Stops the timers, so that requests that wait for a first connection do not continue. */
function freezePatience(t: Test): void {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
}

const askMany = (pool: Pool, count: number) => Promise.all(Array.from({ length: count }, () => ask(pool)))

async function answer(origin: Origin, count: number): Promise<void> {
  for (const end of await origin.arrived(count)) end()
}

/** Sends requests and responses, and waits one turn, after which undici has freed the connections. */
async function exchange(origin: Origin, count: number): Promise<string[]> {
  const answers = askMany(origin.pool, count)
  await answer(origin, count)
  const texts = await answers
  await setImmediate()
  return texts
}

t.test('HTTP/1.1: each running request has its own connection, which is reused', async t => {
  const origin = await setUp(t, http.createServer(), false)
  for (let round = 0; round < 3; round++) {
    t.strictSame(await exchange(origin, 5), Array(5).fill('ok'))
  }
  t.equal(origin.connections(), 5)
})

t.test('the most recently used connection is reused first', async t => {
  const origin = await setUp(t, http.createServer(), false)
  const ports: (number | undefined)[] = []
  origin.server.on('request', (req: http.IncomingMessage) => ports.push(req.socket.remotePort))
  await exchange(origin, 2)
  for (let i = 0; i < 3; i++) await exchange(origin, 1)
  t.equal(new Set(ports.slice(2)).size, 1, 'the other connection stays unused')
})

t.test('a closed connection is not reused', async t => {
  const origin = await setUp(t, http.createServer(), false)
  const sockets: net.Socket[] = []
  origin.server.on('connection', (socket: net.Socket) => sockets.push(socket))
  for (let round = 0; round < 3; round++) {
    const before = origin.connections()
    await exchange(origin, 3)
    t.equal(origin.connections() - before, 3)
    const closed = sockets.map(socket => once(socket, 'close'))
    ;(origin.server as http.Server).closeIdleConnections()
    await Promise.all(closed)
    await broughtOver(origin.server)
    sockets.length = 0
  }
})

t.test('free connections stay usable after other connections close', async t => {
  const origin = await setUp(t, http.createServer(), false)
  const sockets: net.Socket[] = []
  origin.server.on('request', (req: http.IncomingMessage) => sockets.push(req.socket))
  await exchange(origin, 5)
  // The last connection takes the place of each closed connection.
  for (const gone of [0, 4]) {
    const closed = once(sockets[gone] as net.Socket, 'close')
    ;(sockets[gone] as net.Socket).end()
    await closed
    await broughtOver(origin.server)
  }
  const before = origin.connections()
  t.strictSame(await exchange(origin, 3), Array(3).fill('ok'))
  t.equal(origin.connections(), before)
})

/** Opens and closes a connection. Resolves after it has closed, when all earlier events have arrived. */
async function broughtOver(server: net.Server): Promise<void> {
  const { port } = server.address() as net.AddressInfo
  const accepted = once(server, 'connection')
  const probe = net.connect(port, '127.0.0.1')
  const [socket] = await accepted as [net.Socket]
  const closed = once(probe, 'close')
  socket.end()
  probe.resume().end()
  await closed
}

t.test('a request that cannot be sent fails, and its connection serves the next request', async t => {
  const origin = await setUp(t, http.createServer(), false)
  await exchange(origin, 1)
  await t.rejects(ask(origin.pool, { headers: ['x-a', 'b\r\nc'] }), { code: 'UND_ERR_INVALID_ARG' })
  await t.rejects(ask(origin.pool, { path: 'no path' }), { code: 'UND_ERR_INVALID_ARG' })
  t.strictSame(await exchange(origin, 1), ['ok'])
  t.equal(origin.connections(), 1)
})

t.test('a retry in the error handler of a request that cannot be sent does not deadlock', async t => {
  const origin = await setUp(t, https.createServer({ ...certificate }), true)
  const again = Promise.withResolvers<string>()
  const refused = ask(origin.pool, { path: 'no path' }, () => {
    ask(origin.pool).then(again.resolve, again.reject)
  })
  await t.rejects(refused, { code: 'UND_ERR_INVALID_ARG' })
  await answer(origin, 1)
  t.equal(await again.promise, 'ok')
})

t.test('HTTP/2: a request that cannot be sent does not affect other requests on its connection', async t => {
  const origin = await setUp(t, http2.createSecureServer({ ...certificate }), true)
  await exchange(origin, 1)
  const running = askMany(origin.pool, 2)
  await t.rejects(ask(origin.pool, { path: 'no path' }), { code: 'UND_ERR_INVALID_ARG' })
  const late = ask(origin.pool)
  await answer(origin, 3)
  t.strictSame([...await running, await late], Array(3).fill('ok'))
  t.equal(origin.connections(), 1)
})

t.test('HTTP/2: requests that arrive during the first connect share that connection', async t => {
  const server = http2.createSecureServer({ ...certificate })
  const origin = await setUp(t, server, true)
  freezePatience(t)
  for (let round = 0; round < 2; round++) {
    t.strictSame(await exchange(origin, 20), Array(20).fill('ok'))
    t.equal(origin.connections(), 1)
  }
})

t.test('HTTP/2: another connection is opened when all streams of a connection are in use', async t => {
  const server = http2.createSecureServer({ ...certificate, settings: { maxConcurrentStreams: 2 } })
  const origin = await setUp(t, server, true)
  await exchange(origin, 1)
  t.strictSame(await exchange(origin, 5), Array(5).fill('ok'))
  t.equal(origin.connections(), 3)
})

t.test('TLS without HTTP/2: each waiting request gets its own connection', async t => {
  const origin = await setUp(t, https.createServer({ ...certificate }), true)
  freezePatience(t)
  t.strictSame(await exchange(origin, 5), Array(5).fill('ok'))
  t.equal(origin.connections(), 5)
})

t.test('after the first connection breaks, waiting requests connect in parallel', async t => {
  const server = net.createServer()
  const { pool } = await setUp(t, server, true)
  freezePatience(t)
  const four = new Promise<void>(resolve => {
    let connections = 0
    server.on('connection', (socket: net.Socket) => {
      connections++
      // The other connections get no response.
      if (connections === 1) socket.destroy()
      if (connections === 4) resolve()
    })
  })
  const first = ask(pool)
  for (let n = 0; n < 3; n++) ask(pool).catch(() => {})
  await t.rejects(first)
  await four
})

t.test('with a closed port, all requests fail with ECONNREFUSED', async t => {
  for (const secure of [false, true]) {
    const server = secure ? https.createServer({ ...certificate }) : http.createServer()
    const origin = await setUp(t, server, secure)
    const closed = once(server, 'close')
    server.close()
    await closed
    const answers = Array.from({ length: 5 }, () => ask(origin.pool))
    for (const refused of answers) await t.rejects(refused, { code: 'ECONNREFUSED' })
  }
})

t.test('close lets running and waiting requests finish, and refuses new requests', async t => {
  const origin = await setUp(t, http2.createSecureServer({ ...certificate }), true)
  const answers = askMany(origin.pool, 3)
  const closed = origin.pool.close()
  await t.rejects(ask(origin.pool), { message: 'the connections are being closed' })
  await answer(origin, 3)
  t.strictSame(await answers, Array(3).fill('ok'))
  await closed
})

t.test('close ends when the waiting requests fail to connect', async t => {
  const server = https.createServer({ ...certificate })
  const origin = await setUp(t, server, true)
  const closed = once(server, 'close')
  server.close()
  await closed
  const answers = Array.from({ length: 3 }, () => ask(origin.pool))
  const ends = [origin.pool.close(), origin.pool.close()]
  for (const refused of answers) await t.rejects(refused, { code: 'ECONNREFUSED' })
  await Promise.all(ends)
})

t.test('close ends directly after a failed connection', async t => {
  const server = http.createServer()
  const origin = await setUp(t, server, false)
  const closed = once(server, 'close')
  server.close()
  await closed
  await t.rejects(ask(origin.pool), { code: 'ECONNREFUSED' })
  await origin.pool.close()
})

t.test('destroy ends a pending close', async t => {
  const server = net.createServer()
  const origin = await setUp(t, server, true)
  const connected = once(server, 'connection')
  const waiting = Array.from({ length: 2 }, () => ask(origin.pool))
  for (const promise of waiting) promise.catch(() => {})
  await connected
  const closed = origin.pool.close()
  const reason = new Error('no more')
  await origin.pool.destroy(reason)
  for (const promise of waiting) await t.rejects(promise, reason)
  await closed
})

t.test('destroy fails running, waiting and later requests', async t => {
  const origin = await setUp(t, http.createServer(), false)
  const running = askMany(origin.pool, 2)
  running.catch(() => {})
  await origin.arrived(2)
  const secure = await setUp(t, https.createServer({ ...certificate }), true)
  const waiting = Array.from({ length: 3 }, () => ask(secure.pool))
  for (const promise of waiting) promise.catch(() => {})
  const reason = new Error('no more')
  await Promise.all([origin.pool.destroy(reason), secure.pool.destroy(reason)])
  await t.rejects(running, reason)
  for (const promise of waiting) await t.rejects(promise, reason)
  await t.rejects(ask(origin.pool), reason)
})

t.test('a first connection that never completes does not block other requests', async t => {
  let connections = 0
  const silent = net.createServer(socket => {
    connections++
    socket.on('error', () => {})
  })
  const { pool } = await setUp(t, silent, true)
  const three = new Promise<void>(resolve => {
    silent.on('connection', () => {
      if (connections === 3) resolve()
    })
  })
  for (let n = 0; n < 3; n++) ask(pool).catch(() => {})
  await three
})
