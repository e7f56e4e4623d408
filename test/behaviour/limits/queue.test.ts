import type { ServerResponse } from 'node:http'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import type { Test } from 'tap'
import { KEY, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { samplesOf, sum } from '../../support/metrics.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'
import { connect } from '../../support/wire.ts'

const HEADERS = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
const MESSAGES = [{ role: 'user', content: 'Hi' }]

t.test('a request without room waits for its turn', async t => {
  const upstream = await startHeld(t)
  const gateway = await startTestGateway(t, `
keys: [{ name: test, key: ${KEY}, limits: { concurrent: 1, queue: { wait: 20s, size: 1 } } }]
upstreams: { a: { url: "${upstream.url}" } }
routes: [{ to: a }]
`)
  const first = ask(gateway)
  const running = await upstream.next()
  const second = ask(gateway)
  await waiting(gateway, 1)
  const full = await ask(gateway)
  t.equal(full.status, 429, 'the queue is full')
  t.ok(full.headers.get('retry-after'))
  respond(running)
  t.equal((await first).headers.get('x-gateway-queued-ms'), null)
  respond(await upstream.next())
  const served = await second
  t.equal(served.status, 200)
  t.ok(Number(served.headers.get('x-gateway-queued-ms')) > 0)
  t.ok(await gateway.waitForLog(({ msg, status, queued_ms }) => msg === 'exchange' && status === 200 && Number(queued_ms) > 0))
})

t.test('a wait that ends without room is refused as without a queue', async t => {
  const upstream = await startHeld(t)
  const gateway = await startTestGateway(t, `
keys: [{ name: test, key: ${KEY}, limits: { concurrent: 1 } }]
upstreams: { a: { url: "${upstream.url}" } }
routes: [{ to: a, queue: { wait: 50ms, size: 10 } }]
`)
  const first = ask(gateway)
  const running = await upstream.next()
  const refused = await ask(gateway)
  t.equal(refused.status, 429)
  t.match(await refused.json(), { error: { code: 'rate_limit_exceeded' } })
  t.ok(Number(refused.headers.get('x-gateway-queued-ms')) >= 50)
  respond(running)
  await first
})

t.test('a request waits for an upstream at its limit if no target has room', async t => {
  const [a, b] = await Promise.all([startHeld(t), startHeld(t)])
  const gateway = await startTestGateway(t, `
upstreams:
  a: { url: "${a.url}", limits: { concurrent: 1, queue: { wait: 20s, size: 5 } } }
  b: { url: "${b.url}", limits: { concurrent: 1, queue: { wait: 20s, size: 5 } } }
routes: [{ to: [a, b] }]
`)
  const [one, two] = [ask(gateway), ask(gateway)]
  const [onA, onB] = [await a.next(), await b.next()]
  const three = ask(gateway)
  await waiting(gateway, 1)
  respond(onB)
  respond(await b.next(), 'the first target with room')
  const served = await three
  t.match(await served.text(), /first target with room/)
  t.equal(served.headers.get('x-gateway-upstream'), 'b')
  respond(onA)
  await Promise.all([one, two])
})

t.test('metrics and the ledger have depth, waits and refusals', async t => {
  const upstream = await startHeld(t)
  const gateway = await startTestGateway(t, `
keys: [{ name: test, key: ${KEY}, limits: { concurrent: 1, queue: { wait: 20s, size: 1 } } }]
upstreams: { a: { url: "${upstream.url}" } }
routes: [{ to: a }]
ledger: { file: gateway.db }
telemetry: { prometheus: { listen: 127.0.0.1:0 } }
`)
  const samples = async () => samplesOf(await (await fetch(`${gateway.addresses.metrics}/metrics`)).text())
  const first = ask(gateway)
  const running = await upstream.next()
  const second = ask(gateway)
  await waiting(gateway, 1)
  t.equal(sum(await samples(), 'gateway_queue_depth', { scope: 'key' }), 1)
  t.equal((await ask(gateway)).status, 429)
  respond(running)
  respond(await upstream.next())
  await Promise.all([first, second])
  await gateway.waitForLog(({ msg, status, queued_ms: ms }) => msg === 'exchange' && status === 200 && ms !== undefined)
  const after = await samples()
  t.equal(sum(after, 'gateway_queue_depth', { scope: 'key' }), 0)
  t.equal(sum(after, 'gateway_queue_wait_seconds_count', { scope: 'key' }), 2)
  t.equal(sum(after, 'gateway_queue_refusals_total', { scope: 'key' }), 1)
  await gateway.close()
  using db = new DatabaseSync(join(dirname(gateway.file), 'gateway.db'))
  const rows = db.prepare('SELECT status, queued_ms FROM requests ORDER BY started_at').all()
  t.match(rows.map(({ status, queued_ms: ms }) => [status, ms === null ? null : typeof ms]), [[200, null], [200, 'number'], [429, 'number']])
})

t.test('a client that disconnects leaves the queue at once', async t => {
  const upstream = await startHeld(t)
  const gateway = await startTestGateway(t, `
keys: [{ name: test, key: ${KEY}, limits: { concurrent: 1, queue: { wait: 20s, size: 1 } } }]
upstreams: { a: { url: "${upstream.url}" } }
routes: [{ to: a }]
`)
  const first = ask(gateway)
  const running = await upstream.next()
  const client = await connect(t, gateway.url)
  const body = JSON.stringify({ model: 'm', messages: MESSAGES })
  client.send(`POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\ncontent-length: ${body.length}\r\n\r\n${body}`)
  await waiting(gateway, 1)
  client.socket.resetAndDestroy()
  await gateway.waitForLog(({ msg, error }) => msg === 'exchange' && error === 'client_gone')
  const second = ask(gateway)
  await waiting(gateway, 2)
  respond(running)
  respond(await upstream.next())
  t.equal((await first).status, 200)
  t.equal((await second).status, 200)
  const line = await gateway.waitForLog(({ msg, error }) => msg === 'exchange' && error === 'client_gone')
  t.match(line, { status: 499 })
})

t.test('a stream gets keep-alive events while it waits', async t => {
  const upstream = await startHeld(t)
  const gateway = await startTestGateway(t, `
keys: [{ name: test, key: ${KEY}, limits: { concurrent: 1, queue: { wait: 20s, size: 5 } } }]
upstreams: { a: { url: "${upstream.url}" } }
routes: [{ to: a }]
`)
  const first = ask(gateway)
  const running = await upstream.next()
  const response = await ask(gateway, { stream: true })
  t.equal(response.status, 200)
  const reader = response.body!.getReader()
  t.match(Buffer.from((await reader.read()).value!).toString(), /^:/, 'a comment, which clients ignore')
  respond(running)
  const res = await upstream.next()
  res.writeHead(200, { 'content-type': 'text/event-stream' })
  res.end('data: {"choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n')
  let text = ''
  for (let part = await reader.read(); !part.done; part = await reader.read()) text += Buffer.from(part.value).toString()
  t.match(text, /Hello.*DONE/s)
  await first
})

t.test('a stream whose wait ends after keep-alive events gets an error event', async t => {
  const upstream = await startHeld(t)
  const gateway = await startTestGateway(t, `
keys: [{ name: test, key: ${KEY}, limits: { concurrent: 1, queue: { wait: 11s, size: 5 } } }]
upstreams: { a: { url: "${upstream.url}" } }
routes: [{ to: a }]
`)
  const first = ask(gateway)
  const running = await upstream.next()
  const response = await ask(gateway, { stream: true })
  let text = ''
  await t.rejects((async () => {
    for await (const part of response.body!) text += Buffer.from(part).toString()
  })(), 'the stream ends abruptly')
  t.match(text, /^:.*rate_limit_exceeded/s)
  respond(running)
  await first
})

t.test('requests with a higher priority go first, and a tag can only lower a priority', async t => {
  const upstream = await startHeld(t)
  const gateway = await startTestGateway(t, `
groups: { shared: { limits: { concurrent: 1, queue: { wait: 20s, size: 10 } } } }
keys:
  - { name: test, key: ${KEY}, group: shared, limits: { priority: 4 } }
  - { name: urgent, key: sk-urgent-0123456789abcdef, group: shared, limits: { priority: 9 } }
attribution: { tags: { priority: [header:x-priority] } }
upstreams: { a: { url: "${upstream.url}" } }
routes: [{ to: a }]
`)
  const order: string[] = []
  const send = async (name: string, headers: Record<string, string>) => {
    await (await ask(gateway, {}, { ...HEADERS, ...headers })).arrayBuffer()
    order.push(name)
  }
  const all = [send('running', {})]
  let running = await upstream.next()
  for (const [n, [name, headers]] of ([
    ['lowered', { 'x-priority': '1' }], ['raised', { 'x-priority': '9' }], ['urgent', { authorization: 'Bearer sk-urgent-0123456789abcdef' }],
  ] as const).entries()) {
    all.push(send(name, headers))
    await waiting(gateway, n + 1)
  }
  for (let n = 0; n < 3; n++) {
    respond(running)
    running = await upstream.next()
    while (order.length <= n) await new Promise(resolve => setImmediate(resolve))
  }
  respond(running)
  await Promise.all(all)
  t.strictSame(order, ['running', 'urgent', 'raised', 'lowered'])
})

t.test('a shutdown lets waiting requests finish', async t => {
  const upstream = await startHeld(t)
  const gateway = await startTestGateway(t, `
server: { drain: 20s }
keys: [{ name: test, key: ${KEY}, limits: { concurrent: 1, queue: { wait: 20s, size: 5 } } }]
upstreams: { a: { url: "${upstream.url}" } }
routes: [{ to: a }]
`)
  const [first, running] = [ask(gateway), await upstream.next()]
  const second = ask(gateway)
  await waiting(gateway, 1)
  const drained = gateway.drain()
  respond(running)
  respond(await upstream.next())
  t.equal((await first).status, 200)
  t.equal((await second).status, 200)
  t.equal(await drained, 0)
})

/** Resolves when this many requests have begun to wait. */
async function waiting({ logged, waitForLog }: TestGateway, count: number): Promise<void> {
  await waitForLog(() => logged.filter(({ msg }) => msg === 'waits for room').length >= count)
}

async function startHeld(t: Test) {
  const arrived: ServerResponse[] = []
  const asking: ((res: ServerResponse) => void)[] = []
  const { url } = await startUpstream(t, (req, res) => void bodyOf(req).then(() => {
    const resolve = asking.shift()
    if (resolve) resolve(res)
    else arrived.push(res)
  }))
  return { url, next: async () => arrived.shift() ?? await new Promise<ServerResponse>(resolve => asking.push(resolve)) }
}

function respond(res: ServerResponse, content = 'Hi'): void {
  res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ choices: [{ message: { content } }] }))
}

function ask({ url }: TestGateway, more: object = {}, headers: Record<string, string> = HEADERS): Promise<Response> {
  return fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body: JSON.stringify({ model: 'm', messages: MESSAGES, ...more }) })
}
