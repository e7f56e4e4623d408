import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import { KEY, startTestGateway } from '../support/gateway.ts'
import { bodyOf, startUpstream } from '../support/upstream.ts'

t.test('the setting v1 of an upstream replaces /v1 in the path, and the query is forwarded', async t => {
  const seen: (string | undefined)[] = []
  const upstream = await startUpstream(t, async (req, res) => {
    await bodyOf(req)
    seen.push(req.url)
    res.setHeader('content-type', 'application/json')
    res.end(JSON.stringify({ usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 } }))
  })
  const gateway = await startTestGateway(t, `
upstreams:
  zai: { url: "${upstream.url}/eu/", v1: /api/paas/v4/ }
  bare: { url: "${upstream.url}", v1: / }
routes:
  - { model: "glm-*", to: zai }
  - { model: "gemini-*", to: { upstream: zai, model: other } }
  - { path: /v1/files, to: bare }
  - { to: bare }
models:
  glm-1: { price: { input: 1, output: 1 } }
`)
  const post = async (path: string, model: string) => {
    const res = await fetch(gateway.url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model, messages: [] }),
    })
    await res.arrayBuffer()
    return res.status
  }
  t.equal(await post('/v1/chat/completions?a=%20b', 'glm-1'), 200)
  t.equal(await post('/v1/models/gemini-x:generateContent', ''), 200)
  t.equal(await post('/v1beta/models/gemini-x:generateContent', ''), 200, 'only /v1 is replaced')
  t.equal(await post('/v1/chat/completions', 'sonar'), 200)
  t.equal(await post('/v1/files', ''), 200)
  t.equal(await post('/v1/batches', ''), 200)
  t.strictSame(seen, [
    '/eu/api/paas/v4/chat/completions?a=%20b',
    '/eu/api/paas/v4/models/other:generateContent',
    '/eu/v1beta/models/other:generateContent',
    '/chat/completions',
    '/files',
    '/batches',
  ])
  const row = await gateway.waitForLog(line => line.model === 'glm-1')
  t.match(row, { input_tokens: 3, output_tokens: 4 }, 'usage is read by the path that the client sent')
})

t.test('a path is refused if it becomes a path of the API only after the setting v1 replaces /v1', async t => {
  const seen: (string | undefined)[] = []
  const upstream = await startUpstream(t, async (req, res) => {
    await bodyOf(req)
    seen.push(req.url)
    res.setHeader('content-type', 'application/json').end('{}')
  })
  const gateway = await startTestGateway(t, `
upstreams:
  bare: { url: "${upstream.url}", v1: / }
  azure: { url: "${upstream.url}", v1: /openai }
routes:
  - { model: a, to: azure }
  - { model: b, to: bare }
keys: [{ name: limited, key: ${KEY}, models: [a, b] }]
`)
  const post = async (path: string, model: string) => {
    const res = await fetch(gateway.url + path, {
      method: 'POST',
      headers: { 'authorization': `Bearer ${KEY}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model }),
    })
    await res.arrayBuffer()
    return res.status
  }
  for (const [path, model] of [
    ['/v1/openai/deployments/no/chat/completions', 'b'],
    ['/v1/openai/deployments/no/unheardOf', 'b'],
    ['/openai/openai/deployments/no/chat/completions', 'b'],
    ['/v1/v1/chat/completions', 'b'],
    ['/v1/v1/batches', 'b'],
    ['/v1/v1beta/models/no:generateContent', 'b'],
    ['/v1/V1/Chat/Completions/', 'a'],
  ] as const) t.equal(await post(path, model), 404, path)
  t.strictSame(seen, [])
  t.equal(await post('/v1/deployments/a/unheardOf', 'a'), 200)
  t.equal(await post('/v1/rerank', 'b'), 200)
  t.strictSame(seen, ['/openai/deployments/a/unheardOf', '/rerank'])
})

t.test('the setting v1 of an upstream replaces /v1 in the path of a WebSocket', async t => {
  const sockets = new WebSocketServer({ port: 0, host: '127.0.0.1', path: '/api/v4/realtime' })
  sockets.on('connection', socket => socket.send('hello'))
  t.teardown(() => sockets.close())
  await once(sockets, 'listening')
  const { port } = sockets.address() as AddressInfo
  const gateway = await startTestGateway(t, `
upstreams:
  up: { url: "http://127.0.0.1:${port}", v1: /api/v4, websocket: true }
routes: [{ to: up }]
`)
  const socket = new WebSocket(`${gateway.url.replace('http', 'ws')}/v1/realtime?model=m`, {
    headers: { authorization: `Bearer ${KEY}` },
  })
  const [message] = await once(socket, 'message') as [Buffer]
  t.equal(message.toString(), 'hello')
  socket.terminate()
})

t.test('a * in the model of a target is replaced by the text that the * in the model of the route matches', async t => {
  const seen: unknown[] = []
  const upstream = await startUpstream(t, async (req, res) => {
    seen.push([req.url, (JSON.parse((await bodyOf(req)).toString()) as { model?: string }).model])
    res.setHeader('content-type', 'application/json')
    res.end(JSON.stringify({ usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 } }))
  })
  const gateway = await startTestGateway(t, `
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ model: "openai/*", to: { upstream: up, model: "*" } }]
models: { own: { price: { input: 1, output: 1 } } }
`)
  for (const [path, body] of [['/v1/chat/completions', { model: 'openai/own', messages: [] }], ['/v1/models/openai%2Fown:generateContent', {}]] as const) {
    const res = await fetch(gateway.url + path, {
      method: 'POST', headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }, body: JSON.stringify(body),
    })
    t.equal(res.status, 200, await res.text())
  }
  t.strictSame(seen, [['/v1/chat/completions', 'own'], ['/v1/models/own:generateContent', undefined]])
  t.match(await gateway.waitForLog(({ msg }) => msg === 'exchange'), { upstream: 'up', cost_usd: 0.000007 })
})
