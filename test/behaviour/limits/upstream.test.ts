import type * as http from 'node:http'
import t from 'tap'
import type { Test } from 'tap'
import { WebSocketServer } from 'ws'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import type { TestGateway } from '../../support/gateway.ts'
import { startRedis, withoutRedis } from '../../support/redis.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'

t.test('a target at its concurrency limit is skipped and gets no attempt', async t => {
  const { gateway, a, b } = await start(t, '{ concurrent: 1 }', 'routes: [{ to: [a, b], retries: 0 }]')
  const held = a.hold()
  const first = ask(gateway)
  await held.asked
  const second = await ask(gateway)
  t.match(second, { status: 200, upstream: 'b', attempts: '1' })
  held.release()
  t.match(await first, { status: 200, upstream: 'a' })
  t.match(await ask(gateway), { upstream: 'a' }, 'the concurrency is released')
  t.equal(b.requests, 1)
  t.match(await gateway.waitForLog(({ msg }) => String(msg).startsWith('target skipped')), { upstream: 'a', next: 'b' })
})

t.test('if the only target is at its limit, the client gets 429 with a retry delay', async t => {
  const { gateway, a } = await start(t, '{ requests_per_minute: 2 }', 'routes: [{ to: a }]')
  t.strictSame([(await ask(gateway)).status, (await ask(gateway)).status], [200, 200])
  const refused = await ask(gateway)
  t.match(refused, { status: 429, code: 'upstream_rate_limited' })
  t.ok(Number(refused.retryAfter) >= 1 && Number(refused.retryAfter) <= 60, refused.retryAfter ?? 'none')
  t.equal(a.requests, 2)
  const line = await gateway.waitForLog(({ error }) => error === 'upstream_rate_limited')
  t.equal(line.upstream, undefined, 'no upstream was tried')
})

t.test('after a request ends, its used tokens count instead of its reserved tokens', async t => {
  const { gateway, a } = await start(t, '{ tokens_per_minute: 1000 }', 'routes: [{ to: a }]')
  for (let i = 0; i < 5; i++) t.equal((await ask(gateway, 800)).status, 200, 'each reserves 800 and uses 10')
  a.usage = { prompt_tokens: 5, completion_tokens: 900 }
  t.equal((await ask(gateway, 800)).status, 200)
  t.equal((await ask(gateway, 800)).status, 429)
  t.equal((await ask(gateway, 2000)).status, 429, 'a request that is larger than the limit')
})

t.test('concurrency is released after every failure', async t => {
  const { gateway, a } = await start(t, '{ concurrent: 1 }', 'routes: [{ to: [a, b], retries: 1 }]')
  for (const status of [500, 429, 401, 503]) {
    a.status = status
    t.match(await ask(gateway), { status: 200, upstream: 'b' })
  }
  const alone = await start(t, '{ concurrent: 1 }', 'routes: [{ to: a }]')
  const held = alone.a.hold()
  const controller = new AbortController()
  const leaving = ask(alone.gateway, 10, controller.signal)
  await held.asked
  controller.abort()
  await t.rejects(leaving)
  await alone.gateway.waitForLog(({ end }) => end === 'client_gone')
  t.equal((await ask(alone.gateway)).status, 200)
})

t.test('a hedge does not go to a target at its limit', async t => {
  const [slow, full] = await Promise.all([startTestUpstream(t), startTestUpstream(t)])
  const gateway = await startTestGateway(t, `
upstreams: { slow: { url: "${slow.url}" }, full: { url: "${full.url}", limits: { concurrent: 1 } } }
routes:
  - { model: full, to: full }
  - { to: [slow, full], hedge: { after: 10ms } }
`)
  const filling = full.hold()
  const first = ask(gateway, 10, null, 'full')
  await filling.asked
  const held = slow.hold()
  const second = ask(gateway, 10, null, 'm', { stream: true })
  await held.asked
  const third = ask(gateway, 10, null, 'full')
  t.match(await third, { status: 429 }, 'the concurrency is in use')
  held.release()
  t.match(await second, { status: 200, upstream: 'slow' })
  t.equal(full.requests, 1)
  filling.release()
  await first
})

t.test('default limits of keys do not apply to upstreams', async t => {
  const { gateway, a } = await start(
    t, '{ concurrent: 5 }', 'routes: [{ to: a }]\nlimits: { requests_per_minute: 3 }\nauth: open',
  )
  for (let i = 0; i < 3; i++) t.equal((await ask(gateway)).status, 200)
  t.match(await ask(gateway), { status: 429, code: 'rate_limit_exceeded' })
  t.equal(a.requests, 3)
})

t.test('a reload changes the limits and keeps the counts', async t => {
  const { gateway, yaml } = await start(t, '{ requests_per_minute: 3 }', 'routes: [{ to: a }]')
  t.equal((await ask(gateway)).status, 200)
  t.match(await gateway.change(yaml.replace('requests_per_minute: 3', 'requests_per_minute: 2')), { applied: true })
  t.equal((await ask(gateway)).status, 200)
  t.equal((await ask(gateway)).status, 429)
})

t.test('a WebSocket holds concurrency until it is closed', async t => {
  const sockets = new WebSocketServer({ noServer: true })
  const upstream = await startUpstream(t, (_req, res) => res.writeHead(404).end())
  upstream.server.on('upgrade', (req, socket, head) => sockets.handleUpgrade(req, socket, head, ws => ws.send('hello')))
  const gateway = await startTestGateway(t, `
upstreams: { a: { url: "${upstream.url}", websocket: true, limits: { concurrent: 1 } } }
routes: [{ to: a }]
`)
  const first = await connect(gateway)
  t.equal(first.message, 'hello')
  t.equal((await connect(gateway)).status, 429)
  first.socket.close()
  await gateway.waitForLog(({ msg, status }) => msg === 'exchange' && status === 101)
  const again = await connect(gateway)
  t.equal(again.message, 'hello')
  again.socket.close()
})

t.test('gateways with shared limits share the limits of an upstream', { skip: withoutRedis }, async t => {
  const redis = await startRedis(t)
  const upstream = await startTestUpstream(t)
  const gateways = await Promise.all(['gw1', 'gw2'].map(instance => startTestGateway(t, `
upstreams: { a: { url: "${upstream.url}", limits: { requests_per_minute: 10 } } }
routes: [{ to: a }]
limits: { requests_per_minute: 1000 }
cluster: { instance: ${instance}, valkey: "${redis.url(redis.port)}" }
`)))
  for (let n = 0; n < 14; n++) await ask(gateways[n % 2] as TestGateway)
  // On a slow machine Valkey can time out, and then each gateway uses its own share.
  const isLost = gateways.some(({ logged }) => logged.some(({ failure }) => failure !== undefined))
  t.ok(upstream.requests === 10 || isLost, `${upstream.requests} requests`)
})

interface TestTarget {
  readonly url: string
  requests: number
  status: number
  usage: object
  /** Holds the next response until it is released. */
  hold(): { readonly asked: Promise<void>, release(): void }
}

async function startTestUpstream(t: Test): Promise<TestTarget> {
  let holding: { asked: () => void, released: Promise<void> } | null = null
  const { url } = await startUpstream(t, (req, res) => void bodyOf(req).then(() => respond(res)))
  const respond = async (res: http.ServerResponse): Promise<void> => {
    target.requests++
    const held = holding
    holding = null
    held?.asked()
    await held?.released
    res.writeHead(target.status, { 'content-type': 'application/json' })
    res.end(JSON.stringify(target.status === 200 ? { choices: [{ message: { content: 'Hi' } }], usage: target.usage } : { error: { message: 'no' } }))
  }
  const target: TestTarget = {
    url,
    requests: 0,
    status: 200,
    usage: { prompt_tokens: 5, completion_tokens: 5 },
    hold: () => {
      const asked = Promise.withResolvers<void>()
      const released = Promise.withResolvers<void>()
      holding = { asked: asked.resolve, released: released.promise }
      return { asked: asked.promise, release: released.resolve }
    },
  }
  return target
}

async function start(t: Test, limits: string, rest: string) {
  const [a, b] = await Promise.all([startTestUpstream(t), startTestUpstream(t)])
  const yaml = `
upstreams: { a: { url: "${a.url}", limits: ${limits}, speaks: [chat] }, b: { url: "${b.url}" } }
${rest}
`
  return { a, b, yaml, gateway: await startTestGateway(t, yaml) }
}

async function ask({ url }: TestGateway, maxTokens = 10, signal: AbortSignal | null = null, model = 'm', more: object = {}) {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, max_tokens: maxTokens, messages: [{ role: 'user', content: 'Hi' }], ...more }),
    signal,
  })
  const { error } = await response.json() as { error?: { code?: string } }
  return {
    status: response.status,
    code: error?.code,
    retryAfter: response.headers.get('retry-after'),
    upstream: response.headers.get('x-gateway-upstream'),
    attempts: response.headers.get('x-gateway-attempts'),
  }
}

async function connect({ url }: TestGateway) {
  const { WebSocket } = await import('ws')
  const socket = new WebSocket(`${url.replace('http', 'ws')}/v1/realtime?model=m`, { headers: { authorization: `Bearer ${KEY}` } })
  return await new Promise<{ socket: InstanceType<typeof WebSocket>, message: string | null, status: number }>(resolve => {
    socket.on('message', data => resolve({ socket, message: String(data), status: 101 }))
    socket.on('unexpected-response', (_req, res) => resolve({ socket, message: null, status: res.statusCode ?? 0 }))
    socket.on('error', () => {})
  })
}
