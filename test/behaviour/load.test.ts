import { once } from 'node:events'
import * as http from 'node:http'
import type { IncomingMessage } from 'node:http'
import * as net from 'node:net'
import t from 'tap'
import { KEY, startTestGateway } from '../support/gateway.ts'
import { postH2, openSession } from '../support/http2.ts'
import { startUpstream } from '../support/upstream.ts'
import { post, proxyTo } from '../support/wire.ts'

const MANY = 2_000

t.test(`each of ${MANY} simultaneous streams gets its own response`, async t => {
  const waiting: { id: string; res: http.ServerResponse }[] = []
  const all = Promise.withResolvers<void>()
  const upstream = await startUpstream(t, (req, res) => {
    req.resume()
    waiting.push({ id: String(req.headers['x-id']), res })
    if (waiting.length === MANY) all.resolve()
  })
  const gateway = await startTestGateway(t, proxyTo(upstream.url))
  const agent = new http.Agent({ keepAlive: false, maxSockets: Infinity })
  const answers = Array.from({ length: MANY }, async (_each, i) => {
    const request = http.request(`${gateway.url}/v1/other`, {
      method: 'POST', agent,
      headers: { 'x-api-key': KEY, 'x-id': String(i), 'content-type': 'application/json' },
    })
    request.end('{"stream":true}')
    const [answer] = (await once(request, 'response')) as [IncomingMessage]
    let text = ''
    for await (const piece of answer) text += (piece as Buffer).toString()
    return text === `data: ${i}\n\ndata: [DONE]\n\n`
  })
  await all.promise
  const status = (await (await fetch(`${gateway.url}/api/status`)).json()) as { running: number }
  t.equal(status.running, MANY)
  for (const { id, res } of waiting) {
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    res.write(`data: ${id}\n\n`)
    res.end('data: [DONE]\n\n')
  }
  const right = (await Promise.all(answers)).filter(Boolean).length
  t.equal(right, MANY)
})

t.test('after many clients reset their connections at random moments, no request is running', async t => {
  const open = new Set<net.Socket>()
  const upstream = await startUpstream(t, (req, res) => {
    req.resume()
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    res.write('data: 1\n\n')
  })
  upstream.server.on('connection', socket => {
    open.add(socket)
    socket.once('close', () => open.delete(socket))
  })
  const gateway = await startTestGateway(t, proxyTo(upstream.url))
  const { hostname, port } = new URL(gateway.url)
  const request = Buffer.from(post('/v1/other', { stream: true, filler: 'x'.repeat(200) }), 'latin1')
  await Promise.all(Array.from({ length: 600 }, async (_each, i) => {
    const socket = net.connect(Number(port), hostname)
    socket.on('error', () => {})
    await once(socket, 'connect')
    // Disconnects within the request, after the request, or after the first bytes of the response.
    const at = Math.floor((i * request.length) / 400)
    socket.write(request.subarray(0, at))
    if (at > request.length * 1.25) await once(socket, 'data')
    socket.resetAndDestroy()
    await once(socket, 'close')
  }))
  await nothingRuns(gateway.url)
  while (open.size > 0) await new Promise(setImmediate)
  t.pass('nothing runs, and no connection upstream is left')
})

t.test('after many HTTP/2 sessions end at random moments, no request is running', async t => {
  const open = new Set<http.ServerResponse>()
  const upstream = await startUpstream(t, (req, res) => {
    req.resume()
    open.add(res)
    res.once('close', () => open.delete(res))
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    res.write('data: 1\n\n')
  })
  const gateway = await startTestGateway(t, proxyTo(upstream.url))
  for (let i = 0; i < 20; i++) {
    const session = await openSession(t, gateway.url)
    const requests = Array.from({ length: 20 }, () => postH2(session, '/v1/other', { stream: true }))
    if (i % 2) await requests[i]?.until(/data/)
    session.destroy()
  }
  await nothingRuns(gateway.url)
  while (open.size > 0) await new Promise(setImmediate)
  t.pass('nothing runs, and no request upstream is left')
})

/** Reads the status until no request is running; a leaked request would block the test. */
async function nothingRuns(url: string): Promise<void> {
  for (;;) {
    const status = await fetch(`${url}/api/status`)
    if (((await status.json()) as { running: number }).running === 0) return
  }
}
