import { once } from 'node:events'
import * as http from 'node:http'
import type { IncomingMessage } from 'node:http'
import t from 'tap'
import { KEY, startTestGateway } from '../support/gateway.ts'
import { startUpstream } from '../support/upstream.ts'
import { STREAM_HEAD, chunk, connect, post, proxyTo, startWireUpstream } from '../support/wire.ts'
import { acknowledgedUpstream } from './acknowledged-upstream.ts'

const CHAT = { model: 'm', stream: true, messages: [] }

t.test('each event reaches the client before the upstream sends the next event', async t => {
  const { upstream, acknowledge } = await acknowledgedUpstream(t, 5)
  const gateway = await startTestGateway(t, proxyTo(upstream.url))
  const client = await connect(t, gateway.url)
  client.send(post('/v1/chat/completions', CHAT))
  for (const [i, tell] of acknowledge.entries()) {
    await client.until(new RegExp(`data: \\{"n":${i}\\}\n\n`))
    tell()
  }
  const all = await client.until(/\r\n0\r\n\r\n$/)
  t.match(all, /content-type: text\/event-stream/i)
  t.match(all, /data: \[DONE\]\n\n/)
  const line = await gateway.waitForLog(each => each.msg === 'exchange')
  t.equal(line.status, 200)
  t.equal(line.error, undefined)
})

t.test('each byte of a stream that arrives byte by byte reaches the client at once', async t => {
  const body = 'data: {"a":"\xc3\xa9"}\r\n\r\n: ping\n\ndata: [DONE]\n\n'
  let next = () => {}
  const upstream = await startWireUpstream(t, async wire => {
    await wire.request()
    wire.send(STREAM_HEAD)
    for (const byte of body) {
      const taken = new Promise<void>(resolve => (next = resolve))
      wire.send(chunk(byte))
      await taken
    }
    wire.send('0\r\n\r\n')
  })
  const gateway = await startTestGateway(t, proxyTo(upstream.url))
  const request = http.request(`${gateway.url}/v1/chat/completions`, {
    method: 'POST', headers: { 'x-api-key': KEY, 'content-type': 'application/json' },
  })
  request.end(JSON.stringify(CHAT))
  const [answer] = (await once(request, 'response')) as [IncomingMessage]
  let got = ''
  for await (const piece of answer) {
    t.equal((piece as Buffer).length, 1)
    got += (piece as Buffer).toString('latin1')
    next()
  }
  t.equal(got, body)
})

t.test('the head of a stream reaches the client before the upstream sends the body', async t => {
  let go = () => {}
  const told = new Promise<void>(resolve => (go = resolve))
  const upstream = await startUpstream(t, async (_req, res) => {
    res.writeHead(200, { 'content-type': 'text/event-stream', 'x-request-id': 'req_1' })
    res.flushHeaders()
    await told
    res.end('data: [DONE]\n\n')
  })
  const gateway = await startTestGateway(t, proxyTo(upstream.url))
  const client = await connect(t, gateway.url)
  client.send(post('/v1/chat/completions', CHAT))
  t.match(await client.until(/\r\n\r\n/), /^HTTP\/1\.1 200 OK\r\n[^]*X-Request-Id: req_1\r\n/i)
  go()
  await client.until(/\[DONE\]/)
})

t.test('the head of a JSON response reaches the client before the upstream sends the body', async t => {
  let go = () => {}
  const told = new Promise<void>(resolve => (go = resolve))
  const upstream = await startUpstream(t, async (_req, res) => {
    res.writeHead(200, { 'content-type': 'application/json', 'content-length': 2 })
    res.flushHeaders()
    await told
    res.end('{}')
  })
  const gateway = await startTestGateway(t, proxyTo(upstream.url))
  const client = await connect(t, gateway.url)
  client.send(post('/v1/embeddings', { model: 'm', input: 'x' }))
  t.match(await client.until(/\r\n\r\n/), /content-length: 2/i)
  go()
  await client.until(/\r\n\r\n\{\}$/)
})

t.test('a client connection is kept open for several requests', async t => {
  const upstream = await startUpstream(t, (_req, res) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    res.end('data: [DONE]\n\n')
  })
  const gateway = await startTestGateway(t, proxyTo(upstream.url))
  const client = await connect(t, gateway.url)
  for (let i = 1; i <= 3; i++) {
    client.send(post('/v1/chat/completions', CHAT))
    const all = await client.until(new RegExp(`(?:[^]*?\r\n0\r\n\r\n){${i}}$`))
    t.equal(all.match(/HTTP\/1\.1 200 OK/g)?.length, i)
  }
})

t.test('connections to an upstream are reused', async t => {
  const ports = new Set<unknown>()
  const upstream = await startUpstream(t, (req, res) => {
    ports.add(req.socket.remotePort)
    res.end('{}')
  })
  const gateway = await startTestGateway(t, proxyTo(upstream.url))
  for (let i = 0; i < 5; i++) {
    const answer = await fetch(`${gateway.url}/v1/files`, { headers: { 'x-api-key': KEY } })
    await answer.text()
  }
  t.equal(ports.size, 1)
})
