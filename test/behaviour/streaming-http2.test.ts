import { once } from 'node:events'
import * as http2 from 'node:http2'
import type { ServerHttp2Stream } from 'node:http2'
import t from 'tap'
import type { Test } from 'tap'
import { certificateFiles, selfSigned } from '../support/certificate.ts'
import { KEY, startTestGateway } from '../support/gateway.ts'
import type { TestGateway } from '../support/gateway.ts'
import { H2Request, openSession, postH2, startHttp2Upstream } from '../support/http2.ts'
import { bodyOf, startUpstream } from '../support/upstream.ts'
import { connect, post, proxyTo, startWireUpstream } from '../support/wire.ts'
import { acknowledgedUpstream } from './acknowledged-upstream.ts'

const CHAT = { model: 'm', stream: true, messages: [] }

async function streamsAtOnce(
  t: Test, gateway: TestGateway, acknowledge: (() => void)[], ca?: string,
): Promise<void> {
  const session = await openSession(t, gateway.url, ca)
  const request = postH2(session, '/v1/chat/completions', CHAT)
  for (const [i, tell] of acknowledge.entries()) {
    await request.until(new RegExp(`data: \\{"n":${i}\\}\n\n`))
    tell()
  }
  t.equal(await request.closed, 0)
  t.ok(request.ended, 'a proper end')
  t.match(request.text, /data: \[DONE\]\n\n$/)
  const head = await request.head
  t.equal(head[':status'], 200)
  t.equal(head['x-gateway-version'], '0.0.0-test')
  t.equal(head['transfer-encoding'], undefined)
}

t.test('HTTP/2 with prior knowledge: each event reaches the client at once', async t => {
  const { upstream, acknowledge } = await acknowledgedUpstream(t, 4)
  await streamsAtOnce(t, await startTestGateway(t, proxyTo(upstream.url)), acknowledge)
})

t.test('HTTP/2 over TLS: each event reaches the client at once', async t => {
  const { cert, certFile, keyFile } = certificateFiles(t)
  const { upstream, acknowledge } = await acknowledgedUpstream(t, 4)
  const gateway = await startTestGateway(t, `
server: { listen: 127.0.0.1:0, tls: { cert: "${certFile}", key: "${keyFile}" } }
${proxyTo(upstream.url)}`)
  await streamsAtOnce(t, gateway, acknowledge, cert)
})

t.test('HTTP/1.1 over TLS works on the same port as HTTP/2, by ALPN', async t => {
  const { cert, certFile, keyFile } = certificateFiles(t)
  const { upstream, acknowledge } = await acknowledgedUpstream(t, 2)
  const gateway = await startTestGateway(t, `
server: { listen: 127.0.0.1:0, tls: { cert: "${certFile}", key: "${keyFile}" } }
${proxyTo(upstream.url)}`)
  const client = await connect(t, gateway.url, cert)
  client.send(post('/v1/chat/completions', CHAT))
  for (const [i, tell] of acknowledge.entries()) {
    await client.until(new RegExp(`data: \\{"n":${i}\\}\n\n`))
    tell()
  }
  t.match(await client.until(/0\r\n\r\n$/), /\[DONE\]/)
})

t.test('the response head reaches the client before the upstream sends the body', async t => {
  let go = () => {}
  const told = new Promise<void>(resolve => (go = resolve))
  const upstream = await startUpstream(t, async (_req, res) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
    await told
    res.end('data: [DONE]\n\n')
  })
  const gateway = await startTestGateway(t, proxyTo(upstream.url))
  const session = await openSession(t, gateway.url)
  const request = postH2(session, '/v1/chat/completions', CHAT)
  const head = await request.head
  t.equal(head['content-type'], 'text/event-stream')
  go()
  t.equal(await request.closed, 0)
})

t.test('several set-cookie headers and latin-1 values are forwarded to HTTP/2', async t => {
  const upstream = await startWireUpstream(t, async wire => {
    await wire.request()
    wire.send('HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nConnection: close\r\n' +
      'Keep-Alive: timeout=1\r\n' +
      'Upgrade: h2c\r\nContent-Length: 2\r\n\r\n{}')
  })
  const gateway = await startTestGateway(t, proxyTo(upstream.url))
  const session = await openSession(t, gateway.url)
  const request = new H2Request(session, 'GET', '/v1/files')
  const head = await request.head
  t.strictSame(head['set-cookie'], ['a=1', 'b=2'])
  t.equal(head['content-length'], '2')
  for (const name of ['connection', 'keep-alive', 'upgrade']) t.equal(head[name], undefined)
  t.equal(await request.closed, 0)
  t.equal(request.text, '{}')
})

t.test('a header with white space after its value is forwarded to HTTP/2 without the white space', async t => {
  const upstream = await startWireUpstream(t, async wire => {
    await wire.request()
    wire.send('HTTP/1.1 429 Slow Down\r\nRetry-After: 7 \t\r\nX-Last: caf\xe9\xa0 \r\n' +
      'Content-Length: 2\r\n\r\n{}')
  })
  const gateway = await startTestGateway(t, proxyTo(upstream.url))
  const head = await new H2Request(await openSession(t, gateway.url), 'GET', '/v1/files').head
  t.equal(head['retry-after'], '7')
  t.equal(head['x-last'], 'caf\xe9\xa0')
})

t.test('a response with status 204, 205 or 304 is well-formed, whatever its content-length', async t => {
  const upstream = await startWireUpstream(t, async wire => {
    for (let request = await wire.nextRequest(); request !== null; request = await wire.nextRequest()) {
      const status = /files\/(\d+)/.exec(request.head)?.[1]
      wire.send(`HTTP/1.1 ${status} X\r\nContent-Length: 5\r\n\r\n${status === '205' ? 'hello' : ''}`)
    }
  })
  const gateway = await startTestGateway(t, proxyTo(upstream.url))
  const session = await openSession(t, gateway.url)
  for (const status of [204, 205, 304]) {
    const request = new H2Request(session, 'GET', `/v1/files/${status}`)
    t.equal(await request.closed, 0)
    t.equal((await request.head)[':status'], status)
    t.ok(request.ended)
  }
})

t.test('streams that a client does not read do not block the next request of the session', async t => {
  const body = Buffer.alloc(1_000_000, 'x')
  const upstream = await startUpstream(t, (req, res) => res.end(req.url === '/v1/files/large' ? body : '{}'))
  const gateway = await startTestGateway(t, proxyTo(upstream.url))
  const session = http2.connect(gateway.url, { maxSessionMemory: 1_000 })
  t.teardown(() => session.destroy())
  await once(session, 'remoteSettings')
  const slow = Array.from({ length: 400 }, () => {
    const { stream, head } = new H2Request(session, 'GET', '/v1/files/large')
    stream.pause()
    return head
  })
  await Promise.all(slow)
  const next = new H2Request(session, 'GET', '/v1/files/small')
  t.equal(await next.closed, 0)
  t.equal(next.text, '{}')
})

t.test('many simultaneous requests to an HTTP/2 upstream share one connection', async t => {
  const certificate = certificateFiles(t)
  const waiting: ServerHttp2Stream[] = []
  let all = () => {}
  const arrived = new Promise<void>(resolve => (all = resolve))
  const upstream = await startHttp2Upstream(t, certificate, (stream, headers) => {
    t.equal(headers['authorization'], 'Bearer up-secret')
    t.equal(headers['x-api-key'], undefined)
    waiting.push(stream)
    if (waiting.length === 20) all()
  })
  const gateway = await startTestGateway(t, `
upstreams:
  up: { url: "${upstream.url}", ca: "${certificate.certFile}", usage: as_is, auth: { bearer: up-secret } }
routes: [{ to: up }]
`)
  const session = await openSession(t, gateway.url)
  const requests = Array.from({ length: 20 }, () => postH2(session, '/v1/chat/completions', CHAT))
  await arrived
  t.equal(upstream.sessions.size, 1, 'one connection')
  for (const [i, stream] of waiting.entries()) {
    stream.respond({
      ':status': 200, 'content-type': 'text/event-stream', 'x-n': String(i), 'set-cookie': ['a=1', 'b=2'],
    })
    stream.write('data: {"first":true}\n\n')
  }
  await Promise.all(requests.map(request => request.until(/first/)))
  for (const stream of waiting) stream.end('data: [DONE]\n\n')
  for (const request of requests) {
    t.equal(await request.closed, 0)
    t.match(request.text, /first.*\n\ndata: \[DONE\]\n\n$/)
    const head = await request.head
    t.strictSame(head['set-cookie'], ['a=1', 'b=2'])
    t.match(head.via, /^2(\.0)? model-gateway$/)
  }
})

t.test('headers sent twice, in two spellings or without a value, are forwarded over HTTP/2', async t => {
  const certificate = certificateFiles(t)
  const upstream = await startHttp2Upstream(t, certificate, (stream, headers) => {
    stream.respond({
      ':status': 200, 'x-agent': String(headers['user-agent']), 'x-listed': String(headers['x-list']),
    })
    stream.end('{}')
  })
  const gateway = await startTestGateway(t, `
upstreams: { up: { url: "${upstream.url}", ca: "${certificate.certFile}" } }
routes: [{ to: up }]
`)
  const client = await connect(t, gateway.url)
  const twice = ['User-Agent: one', 'user-agent: two', 'X-List: 1', 'X-List:']
  client.send(post('/v1/files', {}, twice))
  const answer = await client.until(/\r\n0\r\n\r\n$/)
  t.match(answer, /^HTTP\/1\.1 200 /)
  t.match(answer, /\r\nx-agent: one\r\n/)
  t.match(answer, /\r\nx-listed: 1,\r\n/)
})

t.test('a request body is forwarded from HTTP/2 to HTTP/2', async t => {
  const certificate = certificateFiles(t)
  const upstream = await startHttp2Upstream(t, certificate, async (stream, headers) => {
    const body = await bodyOf(stream as never)
    stream.respond({ ':status': 200, 'x-length': String(headers['content-length']) })
    stream.end(body)
  })
  const gateway = await startTestGateway(t, `
upstreams: { up: { url: "${upstream.url}/base", ca: "${certificate.certFile}" } }
routes: [{ to: up }]
`)
  const session = await openSession(t, gateway.url)
  const text = JSON.stringify({ model: 'm', input: 'x'.repeat(1_000_000) })
  const request = new H2Request(
    session, 'POST', '/v1/embeddings', { 'content-type': 'application/json' }, false,
  )
  request.stream.end(text)
  t.equal(await request.closed, 0)
  t.ok(request.text === text, 'the client gets every byte back')
  t.equal((await request.head)['x-length'], String(text.length))
})

t.test('a large upload does not block other requests of the same upstream session', async t => {
  const certificate = certificateFiles(t)
  const { promise: large, resolve } = Promise.withResolvers<ServerHttp2Stream>()
  const upstream = await startHttp2Upstream(t, certificate, (stream, headers) => {
    if (headers[':path'] === '/v1/files/large') {
      stream.pause()
      resolve(stream)
    } else {
      stream.respond({ ':status': 200 })
      stream.end('{}')
    }
  })
  const gateway = await startTestGateway(t, `
upstreams: { up: { url: "${upstream.url}", ca: "${certificate.certFile}" } }
routes: [{ to: up }]
`)
  const headers = { 'x-api-key': KEY }
  const body = Buffer.alloc(16_000_000)
  const sent = fetch(`${gateway.url}/v1/files/large`, { method: 'POST', headers, body })
  const stream = await large
  const small = await fetch(`${gateway.url}/v1/files/small`, { headers })
  t.equal(small.status, 200)
  t.equal(await small.text(), '{}')
  stream.respond({ ':status': 413 })
  stream.end('early')
  const early = await sent
  t.equal(early.status, 413)
  t.equal(await early.text(), 'early')
  t.equal(upstream.sessions.size, 1)
})

t.test('an upstream with a self-signed certificate gets no request', async t => {
  const upstream = await startHttp2Upstream(t, selfSigned(), () => t.fail('a request came'))
  const gateway = await startTestGateway(t, proxyTo(upstream.url))
  const session = await openSession(t, gateway.url)
  const request = new H2Request(session, 'GET', '/v1/files')
  t.equal((await request.head)[':status'], 502)
  await request.closed
  t.match(request.text, /upstream_unreachable/)
})
