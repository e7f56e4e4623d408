import { once } from 'node:events'
import t from 'tap'
import type { Test } from 'tap'
import { KEY, startTestGateway } from '../support/gateway.ts'
import { H2Request, openSession, postH2 } from '../support/http2.ts'
import { STREAM_HEAD, chunk, connect, post, startWireUpstream } from '../support/wire.ts'
import type { Wire } from '../support/wire.ts'

const CHAT = { model: 'm', stream: true, messages: [] }
const EVENT = chunk('data: {"choices":[{"index":0,"delta":{"content":"hi"}}]}\n\n')
const END = `${chunk('data: [DONE]\n\n')}0\r\n\r\n`

/** A gateway, and an upstream whose stream events the test sends. */
async function setUp(t: Test, drain = '30s') {
  const wires: Wire[] = []
  const upstream = await startWireUpstream(t, async wire => {
    await wire.request()
    wires.push(wire)
    wire.send(STREAM_HEAD + EVENT)
    await wire.ended
  })
  const gateway = await startTestGateway(t, `
server: { listen: 127.0.0.1:0, drain: ${drain} }
console: { listen: 127.0.0.1:0 }
upstreams: { up: { url: "${upstream.url}", usage: as_is } }
routes: [{ to: up }]
`)
  return { gateway, wires }
}

t.test('a drain waits for running streams', async t => {
  const { gateway, wires } = await setUp(t)
  const client = await connect(t, gateway.url)
  client.send(post('/v1/chat/completions', CHAT))
  await client.until(/hi/)
  let drained = false
  const drain = gateway.drain().then(cut => {
    drained = true
    return cut
  })
  wires[0]?.send(EVENT)
  await client.until(/hi[^]*hi/)
  await (await fetch(`${gateway.url}/api/status`)).text()
  t.notOk(drained)
  wires[0]?.send(END)
  t.match(await client.until(/0\r\n\r\n$/), /\[DONE\]/)
  t.equal(await drain, 0, 'no request is cut')
  await client.ended
  await t.rejects(connect(t, gateway.url), 'new connections are refused')
})

t.test('during a drain new requests get 503, and the status of both listeners is draining', async t => {
  const { gateway, wires } = await setUp(t)
  const running = await connect(t, gateway.url)
  const waiting = await connect(t, gateway.url)
  running.send(post('/v1/chat/completions', CHAT))
  await running.until(/hi/)
  for (const url of [gateway.url, gateway.addresses.console as string]) {
    const status = await fetch(`${url}/api/status`)
    t.equal(status.status, 200)
    t.match(await status.json(), { success: true, version: '0.0.0-test' })
  }
  const drain = gateway.drain()
  waiting.send(post('/v1/chat/completions', CHAT))
  const refused = await waiting.until(/\}\}$/)
  t.match(refused, /^HTTP\/1\.1 503 Service Unavailable\r\n/)
  t.match(refused, /\r\nretry-after: 1\r\n/i)
  t.match(refused, /\r\nconnection: close\r\n/i)
  t.match(refused, /"code":"draining"/)
  t.equal(await waiting.ended, 'end')
  for (const url of [gateway.url, gateway.addresses.console as string]) {
    const status = await fetch(`${url}/api/status`)
    t.equal(status.status, 503)
    t.match(await status.json(), { success: false, version: '0.0.0-test' })
  }
  const messages = await fetch(`${gateway.url}/v1/messages`, {
    method: 'POST', headers: { 'x-api-key': KEY }, body: '{}',
  })
  t.match(await messages.json(), { type: 'error', error: { type: 'overloaded_error' } })
  wires[0]?.send(END)
  await running.until(/\[DONE\][^]*0\r\n\r\n$/)
  await drain
  t.equal(wires.length, 1, 'refused requests are not sent to the upstream')
  const turnedAway = gateway.logged.filter(line => line.msg === 'exchange' && line.error === 'draining')
  t.strictSame(turnedAway.map(({ end }) => end), ['refused', 'refused'])
})

t.test('HTTP/2: during a drain running streams continue and new streams are refused', async t => {
  const { gateway, wires } = await setUp(t)
  const session = await openSession(t, gateway.url)
  const running = postH2(session, '/v1/chat/completions', CHAT)
  await running.until(/hi/)
  const goaway = once(session, 'goaway')
  const drain = gateway.drain()
  const refused = postH2(session, '/v1/chat/completions', CHAT)
  t.equal((await refused.head)[':status'], 503)
  t.equal((await refused.head)['retry-after'], '1')
  await goaway
  wires[0]?.send(EVENT + END)
  t.equal(await running.closed, 0)
  t.match(running.text, /hi[^]*hi[^]*\[DONE\]\n\n$/)
  t.equal(await drain, 0)
})

t.test('HTTP/2: a drain ends after a large last response is sent completely', async t => {
  const { gateway, wires } = await setUp(t)
  const session = await openSession(t, gateway.url)
  const running = postH2(session, '/v1/chat/completions', CHAT)
  await running.until(/hi/)
  const drain = gateway.drain()
  const large = chunk(`data: {"x":"${'x'.repeat(2_000_000)}"}\n\n`)
  wires[0]?.send(large + END)
  t.equal(await running.closed, 0)
  t.ok(running.text.length > 2_000_000)
  t.match(running.text.slice(-20), /\[DONE\]/)
  t.equal(await drain, 0)
})

t.test('a drain that times out cuts running streams with an error event', async t => {
  const { gateway } = await setUp(t, '100ms')
  const client = await connect(t, gateway.url)
  client.send(post('/v1/chat/completions', CHAT))
  await client.until(/hi/)
  const session = await openSession(t, gateway.url)
  const other = postH2(session, '/v1/chat/completions', CHAT)
  await other.until(/hi/)
  t.equal(await gateway.drain(), 2, 'two requests are cut')
  await client.ended
  t.match(client.text, /data: \{"error":\{[^\n]*"code":"draining"\}\}\n\n\r\n$/)
  t.not(await other.closed, 0)
  t.match(other.text, /"code":"draining"/)
  const cut = gateway.logged.filter(line => line.msg === 'exchange' && line.error === 'draining')
  t.strictSame(cut.map(({ end }) => end), ['interrupted', 'interrupted'], 'requests that were sent to an upstream are logged as interrupted')
})

t.test('close cuts running requests immediately, and can be called again', async t => {
  const { gateway } = await setUp(t)
  const client = await connect(t, gateway.url)
  client.send(post('/v1/chat/completions', CHAT))
  await client.until(/hi/)
  const drain = gateway.drain()
  t.equal(await gateway.close(), 1)
  await drain
  await client.ended
  t.equal(await gateway.close(), 1)
})

t.test('close responds with 503 and Retry-After to a request with an incomplete body', async t => {
  const { gateway } = await setUp(t)
  const client = await connect(t, gateway.url)
  const [head, body = ''] = post('/v1/chat/completions', CHAT).split('\r\n\r\n')
  client.send(`${head}\r\nExpect: 100-continue\r\n\r\n`)
  await client.until(/100 Continue\r\n\r\n$/)
  client.clear()
  client.send(body.slice(0, -1))
  t.equal(await gateway.close(), 1)
  await client.ended
  t.match(client.text, /^HTTP\/1\.1 503 [^]*retry-after: 1\r\n[^]*"code":"draining"/)
  t.match(gateway.logged.find(({ msg }) => msg === 'exchange'), { status: 503, error: 'draining' })
})

t.test('a drain without running requests closes idle connections and ends immediately', async t => {
  const { gateway } = await setUp(t)
  const client = await connect(t, gateway.url)
  client.send('GET /api/status HTTP/1.1\r\nHost: x\r\n\r\n')
  await client.until(/\}$/)
  const session = await openSession(t, gateway.url)
  await new H2Request(session, 'GET', '/api/status').closed
  t.equal(await gateway.drain(), 0)
  await client.ended
})

t.test('during drain_delay requests are served, and the status is draining', async t => {
  const { gateway } = await setUp(t, '30s, drain_delay: 10m')
  const client = await connect(t, gateway.url)
  const drain = gateway.drain()
  const status = await fetch(`${gateway.url}/api/status`)
  t.equal(status.status, 503)
  t.match(await status.json(), { success: false, status: 'draining' })
  t.strictSame(await gateway.change(), { applied: false, because: 'drain' })
  client.send(post('/v1/chat/completions', CHAT))
  await client.until(/hi/)
  t.equal(await gateway.close(), 1, 'close does not wait for drain_delay')
  t.equal(await drain, 1)
})

t.test('after drain_delay, new requests get 503', async t => {
  const { gateway, wires } = await setUp(t, '30s, drain_delay: 1ms')
  const running = await connect(t, gateway.url)
  running.send(post('/v1/chat/completions', CHAT))
  await running.until(/hi/)
  const drain = gateway.drain()
  const refused = async () => {
    const client = await connect(t, gateway.url)
    client.send(post('/v1/chat/completions', CHAT))
    return /^HTTP\/1.1 503/.test(await client.until(/hi|shutting down/))
  }
  while (!await refused()) wires.at(-1)?.send(END)
  for (const wire of wires) wire.send(END)
  t.equal(await drain, 0)
})
