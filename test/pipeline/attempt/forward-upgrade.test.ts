import { once } from 'node:events'
import { buffer, text } from 'node:stream/consumers'
import { gunzipSync, gzipSync } from 'node:zlib'
import t from 'tap'
import type { Test } from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import { start } from '../../simulator/start.ts'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import { startRawUpstream, startUpstream } from '../../support/upstream.ts'
import { connect } from '../../support/wire.ts'
import { openBooks } from '../../behaviour/billing/books.ts'
import { WITH_STATUS, candidatesOf } from '../../behaviour/failover/asking.ts'

const CREATE = JSON.stringify({ type: 'session.update', session: {} })

function handshake({ url }: { url: string }, model: string): WebSocket {
  return new WebSocket(`${url.replace('http', 'ws')}/v1/realtime?model=${model}`, {
    headers: { authorization: `Bearer ${KEY}` },
  })
}

/** Faults of the first candidate during the handshake. */
const TROUBLES: readonly [string, (t: Test) => Promise<string>][] = [
  ['cannot be reached', () => Promise.resolve('http://127.0.0.1:1')],
  [
    'resets',
    async t => (await startRawUpstream(t, socket => socket.once('data', () => socket.resetAndDestroy()))).url,
  ],
  ['closes the connection', async t => (await startRawUpstream(t, socket => socket.once('data', () => socket.end()))).url],
  ['responds with 503', async t => (await startUpstream(t, (_req, res) => res.writeHead(503).end())).url],
  [
    'refuses the credential',
    async t => (await startUpstream(t, (_req, res) => res.writeHead(401).end())).url,
  ],
  ['does not respond', async t => (await startRawUpstream(t, () => {})).url],
]

for (const [trouble, first] of TROUBLES) {
  t.test(`a WebSocket opens at the second target if the first ${trouble}`, async t => {
    const { url } = await start(t)
    const gateway = await startTestGateway(t, `
upstreams: { a: { url: "${await first(t)}", websocket: true }, b: { url: "${url}", websocket: true } }
routes: [{ to: [a, b], timeouts: { first_byte: 1s } }]
`)
    const client = handshake(gateway, 'sim')
    t.teardown(() => client.terminate())
    const upgraded = once(client, 'upgrade')
    const said = once(client, 'message')
    await once(client, 'open')
    const [answer] = await upgraded
    t.match(answer.headers, { 'x-gateway-upstream': 'b', 'x-gateway-attempts': '2' })
    client.send(CREATE)
    t.match(JSON.parse(String((await said)[0])), { type: /./ })
    client.close()
    const line = await gateway.waitForLog(each => each.msg === 'exchange')
    t.match(line, { upstream: 'b', status: 101, attempts: 2 })
  })
}

t.test('a handshake that is refused with Retry-After pauses the target; if no target is left, the client gets the Retry-After', async t => {
  const { url } = await start(t)
  let asked = 0
  const busy = await startUpstream(t, (_req, res) => {
    asked += 1
    res.writeHead(429, { 'Retry-After': '30' }).end()
  })
  const gateway = await startTestGateway(t, `
upstreams: { a: { url: "${busy.url}", websocket: true }, b: { url: "${url}", websocket: true } }
routes:
  - { path: /v1/realtime, to: a, model: alone }
  - { to: [a, b] }
`)
  const [, refused] = await once(handshake(gateway, 'alone'), 'unexpected-response')
  t.equal(refused.statusCode, 502)
  t.equal(refused.headers['retry-after'], '30')
  for (const model of ['sim', 'sim']) {
    const client = handshake(gateway, model)
    await once(client, 'open')
    client.terminate()
  }
  t.equal(asked, 2, 'once for each model')
})

t.test('an open WebSocket counts as a running request; a 404 to a handshake does not count as a failure', async t => {
  const { url } = await start(t)
  const plain = await startUpstream(t, (_req, res) => res.writeHead(404).end())
  const gateway = await startTestGateway(t, `
${WITH_STATUS}
upstreams: { a: { url: "${plain.url}", websocket: true }, b: { url: "${url}", websocket: true } }
routes: [{ model: plain, to: a }, { to: b }]
`)
  for (let n = 0; n < 4; n++) {
    const [, refused] = await once(handshake(gateway, 'plain'), 'unexpected-response')
    t.equal(refused.statusCode, 426)
  }
  const client = handshake(gateway, 'sim')
  await once(client, 'open')
  const idle = { upstream: 'a', model: 'plain', circuit: 'closed', in_flight: 0 }
  t.match(await candidatesOf(gateway), [idle, { upstream: 'b', in_flight: 1, first_byte_ms: Number }])
  client.terminate()
  await gateway.waitForLog(line => line.msg === 'exchange' && line.upstream === 'b')
  t.match(await candidatesOf(gateway), [idle, { upstream: 'b', in_flight: 0 }])
})

t.test('a WebSocket that an upstream closes counts as a failure for close code 1011, but not for 1009', async t => {
  const gateways = await Promise.all([1009, 1011].map(async code => {
    const { server, url } = await startUpstream(t, (_req, res) => res.end())
    new WebSocketServer({ server }).on('connection', peer => peer.once('message', () => peer.close(code)))
    const gateway = await startTestGateway(t, `
${WITH_STATUS}
upstreams: { a: { url: "${url}", websocket: true } }
routes: [{ path: /v1/responses, to: a }]
`)
    for (let n = 0; n < 3; n++) {
      const client = new WebSocket(`${gateway.url.replace('http', 'ws')}/v1/responses`, {
        headers: { authorization: `Bearer ${KEY}` },
      })
      await once(client, 'open')
      client.send(JSON.stringify({ type: 'response.create', input: 'x' }))
      t.equal((await once(client, 'close'))[0], code)
    }
    await gateway.waitForLog(() => gateway.logged.filter(({ msg }) => msg === 'exchange').length === 3)
    for (const line of gateway.logged) if (line.msg === 'exchange') t.equal(line['end'], 'upstream_cut')
    return gateway
  }))
  const [blaming, failing] = await Promise.all(gateways.map(candidatesOf))
  t.match(blaming, [{ circuit: 'closed' }])
  t.match(failing, [{ circuit: 'open' }])
})

const DENIAL = { error: { message: 'Project `p` does not have access to model `m`', code: 'model_not_found' } }

t.test('a handshake refusal about the model does not count as a refused credential, and the client gets the refusal', async t => {
  const { url } = await start(t)
  const denying = await startUpstream(t, (_req, res) => {
    res.writeHead(403, { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip', 'X-Request-Id': 'r1' })
    const bytes = gzipSync(JSON.stringify(DENIAL))
    res.write(bytes.subarray(0, 9))
    setImmediate(() => res.end(bytes.subarray(9)))
  })
  const books = await openBooks(t, `
${WITH_STATUS}
upstreams:
  a: { url: "${denying.url}", websocket: true }
  b: { url: "${url}", websocket: true }
  dead: { url: "http://127.0.0.1:1", websocket: true }
routes: [{ model: alone, to: a }, { model: both, to: [a, b] }, { model: kept, to: [a, dead] }]
`)
  const { gateway } = books
  for (const model of ['alone', 'alone', 'alone', 'kept']) {
    const [, refused] = await once(handshake(gateway, model), 'unexpected-response')
    t.equal(refused.statusCode, 403)
    t.match(refused.headers, {
      'x-request-id': 'r1', 'x-gateway-upstream': 'a', 'content-type': 'application/json',
      'content-encoding': 'gzip', 'connection': 'close',
    })
    t.strictSame(JSON.parse(gunzipSync(await buffer(refused)).toString()), DENIAL)
  }
  const client = handshake(gateway, 'both')
  const [answer] = await once(client, 'upgrade')
  t.match(answer.headers, { 'x-gateway-upstream': 'b', 'x-gateway-attempts': '2' })
  client.terminate()
  await gateway.waitForLog(line => line.msg === 'exchange' && line.status === 101)
  t.notOk(gateway.logged.find(({ level }) => level === 50))
  t.match((await candidatesOf(gateway))[0], { upstream: 'a', model: 'alone', circuit: 'closed' })
  const rows = [...(await books.close()).values()]
  for (const row of rows) {
    t.match(row.attempts[0], { outcome: 'error_answer', status: 403, said: 'model_not_found' })
  }
  t.match(rows.find(({ model }) => model === 'kept'), { upstream: 'a', attempts: [{}, { upstream: 'dead' }] })
  t.match(rows.find(({ model }) => model === 'alone'), { end: 'error', error: null, status: 403, costPico: 0n })
})

const SECRETS = {
  'names a key': [403, JSON.stringify({ error: { ...DENIAL.error, param: 'api_key' } })],
  'is not JSON': [401, 'go away'],
  'is longer than 64 kB': [403, JSON.stringify({ ...DENIAL, padding: ' '.repeat(64 * 1024) })],
  'does not end': [403, JSON.stringify(DENIAL), false],
} as const
for (const [what, [status, body, ends = true]] of Object.entries(SECRETS)) {
  t.test(`a handshake whose refusal ${what} counts as a refused credential`, async t => {
    const { url } = await startUpstream(t, (_req, res) => {
      res.writeHead(status).write(body)
      if (ends) res.end()
    })
    const gateway = await startTestGateway(t, `
upstreams: { up: { url: "${url}", websocket: true } }
routes: [{ to: up }]
`)
    const [, refused] = await once(handshake(gateway, 'm'), 'unexpected-response')
    t.equal(refused.statusCode, 502)
    t.match(await text(refused), 'upstream_rejected_key')
    t.match(await gateway.waitForLog(line => line.level === 50), { upstream: 'up', status })
  })
}

t.test('a WebSocket is tried at as many targets as retries allow, and targets without WebSockets are skipped', async t => {
  const { url } = await start(t)
  let asked = 0
  const broken = await startUpstream(t, (_req, res) => {
    asked += 1
    res.writeHead(503).end()
  })
  const gateway = await startTestGateway(t, `
upstreams:
  a: { url: "${broken.url}", websocket: true }
  b: { url: "${url}", websocket: true }
  plain: { url: "${broken.url}" }
routes:
  - { model: once, to: [a, b], retries: 0 }
  - { to: [plain, b], retries: 0 }
`)
  const [, refused] = await once(handshake(gateway, 'once'), 'unexpected-response')
  t.equal(refused.statusCode, 502)
  t.equal(asked, 1)
  const client = handshake(gateway, 'sim')
  t.teardown(() => client.terminate())
  const [answer] = await once(client, 'upgrade')
  t.match(answer.headers, { 'x-gateway-upstream': 'b', 'x-gateway-attempts': '1' })
})

t.test('bytes that follow the handshake of the client reach the upstream exactly once', async t => {
  const received = Promise.withResolvers<string>()
  const second = await startRawUpstream(t, socket => {
    let text = ''
    socket.on('data', chunk => {
      text += chunk.toString('latin1')
      if (text.includes('\r\n\r\n') && !text.includes('behind')) {
        socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
      }
      if (text.endsWith('end')) received.resolve(text)
    })
  })
  const gateway = await startTestGateway(t, `
upstreams: { a: { url: "http://127.0.0.1:1", websocket: true }, b: { url: "${second.url}", websocket: true } }
routes: [{ to: [a, b] }]
`)
  const client = await connect(t, gateway.url)
  client.send([
    'GET /v1/realtime?model=m HTTP/1.1', 'Host: x', `Authorization: Bearer ${KEY}`, 'Connection: Upgrade',
    'Upgrade: websocket', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    'Sec-WebSocket-Version: 13', '', 'behind',
  ].join('\r\n'))
  await client.until(/101 Switching/)
  client.send('end')
  t.equal((await received.promise).split('behind').length, 2)
})

t.test('if no target is reachable, the client gets the error of the last attempt', async t => {
  const gateway = await startTestGateway(t, `
upstreams:
  a: { url: "http://127.0.0.1:1", websocket: true }
  b: { url: "http://no-such-host.invalid", websocket: true }
routes: [{ to: [a, b] }]
`)
  const client = handshake(gateway, 'sim')
  const [, answer] = await once(client, 'unexpected-response')
  t.equal(answer.statusCode, 502)
  t.match(await gateway.waitForLog(each => each.msg === 'exchange'), {
    error: 'upstream_unreachable', attempts: 2,
  })
})
