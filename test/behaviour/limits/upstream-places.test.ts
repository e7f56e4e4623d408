import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import t from 'tap'
import type { Test } from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import type { TestGateway } from '../../support/gateway.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'

const HEADERS = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }

t.test('a refused handshake releases its concurrency while another target serves the WebSocket', async t => {
  const [refusing, taking] = await Promise.all([startUpstream(t, respond), startUpstream(t, respond)])
  new WebSocketServer({ server: taking.server }).on('connection', () => {})
  refusing.server.on('upgrade', (_req, socket) => socket.end('HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n'))
  const gateway = await startTestGateway(t, `
upstreams:
  a: { url: "${refusing.url}", websocket: true, limits: { concurrent: 1 } }
  b: { url: "${taking.url}", websocket: true }
routes: [{ path: /v1/realtime, to: [a, b] }, { to: a }]
`)
  const socket = await openWebSocket(t, gateway)
  t.equal(await statusOf(gateway), 200)
  socket.close()
})

t.test('a second handshake with another credential reuses the concurrency of the refused handshake', async t => {
  const upstream = await startUpstream(t, respond)
  const sockets = new WebSocketServer({ noServer: true })
  upstream.server.on('upgrade', (req, socket, head) => {
    if (req.headers.authorization === 'Bearer first-credential') socket.end('HTTP/1.1 429 Wait\r\ncontent-length: 0\r\n\r\n')
    else sockets.handleUpgrade(req, socket, head, () => {})
  })
  const gateway = await startTestGateway(t, `
upstreams:
  a:
    url: "${upstream.url}"
    websocket: true
    limits: { concurrent: 1 }
    auth: { pool: [{ bearer: first-credential }, { bearer: second-credential }] }
routes: [{ to: a }]
`)
  const socket = await openWebSocket(t, gateway)
  socket.close()
})

t.test('the losing attempt of a hedge releases its concurrency while the winning attempt responds', async t => {
  const [slow, fast] = await Promise.all([startHeld(t), startHeld(t)])
  const gateway = await startTestGateway(t, `
upstreams: { a: { url: "${slow.url}", limits: { concurrent: 1 } }, b: { url: "${fast.url}" } }
routes: [{ model: hedged, to: [a, b], hedge: { after: 10ms } }, { to: a }]
`)
  const streaming = stream(gateway, 'hedged')
  await slow.next()
  const res = await fast.next()
  beginStream(res)
  const { body } = await streaming
  void slow.next().then(next => respond(null, next))
  t.equal(await statusOf(gateway), 200)
  res.end('data: [DONE]\n\n')
  await new Response(body).text()
})

t.test('an attempt whose stream broke releases its concurrency while another target continues', async t => {
  const [broken, continuing] = await Promise.all([startHeld(t), startHeld(t)])
  const gateway = await startTestGateway(t, `
upstreams: { a: { url: "${broken.url}", limits: { concurrent: 1 } }, b: { url: "${continuing.url}" } }
routes: [{ model: continued, to: [{ upstream: a }, { upstream: b, prefill: true }], resume: continue }, { to: a }]
`)
  const streaming = stream(gateway, 'continued')
  const first = await broken.next()
  beginStream(first)
  const { body } = await streaming
  first.destroy()
  const res = await continuing.next()
  void broken.next().then(next => respond(null, next))
  t.equal(await statusOf(gateway), 200)
  beginStream(res)
  res.end('data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n')
  t.match(await new Response(body).text(), /DONE/)
})

/** An upstream whose responses the test sends. */
async function startHeld(t: Test) {
  const arrived: ServerResponse[] = []
  const waiting: ((res: ServerResponse) => void)[] = []
  const { url } = await startUpstream(t, (req, res) => void bodyOf(req).then(() => {
    const resolve = waiting.shift()
    if (resolve) resolve(res)
    else arrived.push(res)
  }))
  return {
    url,
    /** Resolves with the response object of the next request. */
    next: async () => arrived.shift() ?? await new Promise<ServerResponse>(resolve => waiting.push(resolve)),
  }
}

function respond(_req: unknown, res: ServerResponse): void {
  res.writeHead(200, { 'content-type': 'application/json' }).end('{"choices":[{"message":{"content":"Hi"}}]}')
}

function beginStream(res: ServerResponse): void {
  res.writeHead(200, { 'content-type': 'text/event-stream' })
  res.write('data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"begun"},"finish_reason":null}]}\n\n')
}

async function openWebSocket(t: Test, { url }: TestGateway): Promise<WebSocket> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/v1/realtime?model=m`, { headers: HEADERS })
  t.teardown(() => socket.terminate())
  await once(socket, 'open')
  return socket
}

function stream({ url }: TestGateway, model: string): Promise<Response> {
  return fetch(`${url}/v1/chat/completions`, {
    method: 'POST', headers: HEADERS, body: JSON.stringify({ model, stream: true, messages: [{ role: 'user', content: 'Hi' }] }),
  })
}

async function statusOf({ url }: TestGateway): Promise<number> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST', headers: HEADERS, body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Hi' }] }),
  })
  await response.arrayBuffer()
  return response.status
}
