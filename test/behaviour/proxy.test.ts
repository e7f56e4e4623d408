import { once } from 'node:events'
import t, { type Test } from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import { KEY, startTestGateway } from '../support/gateway.ts'
import { startConnectProxy } from '../support/connect-proxy.ts'
import { startTokenServer } from '../support/token-server.ts'
import { bodyOf, startUpstream } from '../support/upstream.ts'

const CHAT = { model: 'm', messages: [{ role: 'user', content: 'hi' }] }

async function startModel(t: Test) {
  const credentials: unknown[] = []
  const upstream = await startUpstream(t, async (req, res) => {
    await bodyOf(req)
    credentials.push(req.headers.authorization, req.headers['proxy-authorization'])
    res.setHeader('content-type', 'application/json').end('{"choices":[]}')
  })
  return { ...upstream, credentials }
}

function chat(url: string, path = '/v1/chat/completions'): Promise<Response> {
  const headers = { 'authorization': `Bearer ${KEY}`, 'content-type': 'application/json' }
  return fetch(`${url}${path}`, { method: 'POST', headers, body: JSON.stringify(CHAT) })
}

t.test('upstreams and token servers are reached through the proxy of the environment', async t => {
  const { port, credentials } = await startModel(t)
  const tokens = await startTokenServer(t)
  const proxy = await startConnectProxy(t)
  const direct = await startModel(t)
  const gateway = await startTestGateway(t, `
upstreams:
  up:
    url: "http://model.test:${port}"
    auth: { bearer: secret-1 }
  local: { url: "${direct.url}" }
routes: [{ model: local, to: { upstream: local } }, { to: up }]
`, { HTTP_PROXY: proxy.url.replace('//', '//me:pw-secret@') })
  t.equal((await chat(gateway.url)).status, 200)
  t.strictSame(proxy.asked, [`model.test:${port} Basic ${Buffer.from('me:pw-secret').toString('base64')}`])
  t.strictSame(credentials, ['Bearer secret-1', undefined])
  t.notMatch(JSON.stringify(gateway.logged), 'pw-secret')
  const changed = await gateway.change(`
proxy: { url: "${proxy.url}" }
upstreams:
  up:
    url: "http://model.test:${port}"
    auth: { oauth2: { token_url: "https://unused.test", client_id: me, client_secret: secret } }
routes: [{ to: up }]
`)
  t.match(changed, { applied: true })
  t.equal((await chat(gateway.url)).status, 502)
  t.strictSame(proxy.asked.slice(1), ['unused.test:443'], 'the token server is asked through the proxy')
  t.equal(tokens.requests.length, 0)
})

t.test('a request fails over from a proxy that refuses', async t => {
  const proxy = await startConnectProxy(t, (_req, socket) => socket.end('HTTP/1.1 407 No\r\n\r\n'))
  const { url } = await startModel(t)
  const gateway = await startTestGateway(t, `
upstreams:
  one: { url: "https://model.test", proxy: "${proxy.url}" }
  two: { url: "${url}" }
routes: [{ path: /v1/chat/*, to: [one, two] }, { to: one, retries: 0 }]
`)
  const response = await chat(gateway.url)
  t.equal(response.status, 200)
  t.equal(response.headers.get('x-gateway-upstream'), 'two')
  const failed = await chat(gateway.url, '/v1/responses')
  t.equal(failed.status, 502)
  t.notMatch(await failed.text(), String(proxy.port), 'the client does not learn the address of the proxy')
  t.match(JSON.stringify(gateway.logged), 'requires user and password')
})

t.test('a proxy that never answers ends at the connect timeout, and the next target is tried', async t => {
  const proxy = await startConnectProxy(t, () => {})
  const { url } = await startModel(t)
  const gateway = await startTestGateway(t, `
timeouts: { connect: 200ms }
upstreams:
  one: { url: "https://model.test", proxy: "${proxy.url}" }
  two: { url: "${url}" }
routes: [{ to: [one, two] }]
`)
  t.equal((await chat(gateway.url)).headers.get('x-gateway-upstream'), 'two')
})

t.test('a WebSocket goes through the proxy', async t => {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  await once(server, 'listening')
  t.teardown(() => server.close())
  server.on('connection', socket => socket.on('message', data => socket.send(`echo ${String(data as Buffer)}`)))
  const { port } = server.address() as { port: number }
  const proxy = await startConnectProxy(t)
  const gateway = await startTestGateway(t, `
proxy: { url: "${proxy.url}" }
upstreams: { up: { url: "http://model.test:${port}", websocket: true } }
routes: [{ to: up }]
`)
  const client = new WebSocket(`${gateway.url.replace('http', 'ws')}/v1/realtime?model=m`, { headers: { authorization: `Bearer ${KEY}` } })
  t.teardown(() => client.terminate())
  await once(client, 'open')
  client.send('hi')
  const [data] = await once(client, 'message') as [Buffer]
  t.equal(data.toString(), 'echo hi')
  t.strictSame(proxy.asked, [`model.test:${port}`])
})

t.test('webhooks and collectors are reached through the proxy', async t => {
  const seen = new Map<string, () => void>()
  const arrived = ['/hook', '/v1/metrics'].map(path => new Promise<void>(resolve => seen.set(path, resolve)))
  const { port } = await startUpstream(t, async (req, res) => {
    await bodyOf(req)
    res.end()
    seen.get(req.url ?? '')?.()
  })
  const proxy = await startConnectProxy(t)
  const gateway = await startTestGateway(t, `
proxy: { url: "${proxy.url}" }
alerts: { webhook: { url: "http://service.test:${port}/hook" } }
telemetry: { otlp: { endpoint: "http://service.test:${port}", interval: 1s, traces: false } }
upstreams: { up: { url: "https://model.test", proxy: "http://127.0.0.1:1" } }
routes: [{ to: up, retries: 0 }]
`)
  for (let at = 0; at < 10; at++) await chat(gateway.url)
  await Promise.all(arrived)
  t.ok(proxy.asked.every(destination => destination === `service.test:${port}`))
})
