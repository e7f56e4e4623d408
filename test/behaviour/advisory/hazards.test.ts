import { once } from 'node:events'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'
import { STREAM_HEAD, chunk, connect, post, proxyTo, startWireUpstream } from '../../support/wire.ts'

/*
 * Known faults of gateways that use http-proxy-3 or similar libraries: one
 * test for each fault. Smuggling, Expect, request targets and hop-by-hop
 * headers are in other files of this folder; client disconnects, cuts and timeouts in
 * test/behaviour.
 */

const GET = `GET /v1/files HTTP/1.1\r\nHost: x\r\nX-Api-Key: ${KEY}\r\n`

t.test('hazard: the gateway adds Connection: close neither to requests nor to responses', async t => {
  const connections: unknown[] = []
  const upstream = await startUpstream(t, (req, res) => {
    connections.push(req.headers.connection)
    res.end('{}')
  })
  const gateway = await startTestGateway(t, proxyTo(upstream.url))
  const client = await connect(t, gateway.url)
  for (let i = 1; i <= 3; i++) {
    client.send(`${GET}\r\n`)
    await client.until(new RegExp(`(HTTP/1\\.1 200 OK[^]*){${i}}\\{\\}`))
  }
  t.notMatch(client.text, /connection: close/i)
  t.strictSame(connections, ['keep-alive', 'keep-alive', 'keep-alive'])
})

t.test("hazard: a Connection: close header of a client is not forwarded to the upstream", async t => {
  const connections: unknown[] = []
  const upstream = await startUpstream(t, (req, res) => {
    connections.push(req.headers.connection)
    res.end('{}')
  })
  const gateway = await startTestGateway(t, proxyTo(upstream.url))
  const client = await connect(t, gateway.url)
  client.send(`${GET}Connection: close\r\n\r\n`)
  t.equal(await client.ended, 'end')
  t.match(client.text, /connection: close/i)
  t.strictSame(connections, ['keep-alive'])
})

t.test('hazard: X-Forwarded-For, X-Forwarded-Proto and Via are not doubled ' +
  'when a request is sent again', async t => {
  const heads: string[] = []
  const upstream = await startWireUpstream(t, async wire => {
    for (;;) {
      const request = await wire.nextRequest()
      if (request === null) return
      heads.push(request.head)
      // The second request on the first connection gets a reset.
      if (heads.length === 2) wire.socket.resetAndDestroy()
      else wire.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}')
    }
  })
  const gateway = await startTestGateway(t, `
server: { listen: 127.0.0.1:0, trusted_proxies: [127.0.0.1] }
${proxyTo(upstream.url)}`)
  const client = await connect(t, gateway.url)
  for (let i = 1; i <= 2; i++) {
    client.send(`${GET}X-Forwarded-For: 9.9.9.9\r\nX-Forwarded-Proto: https\r\n\r\n`)
    await client.until(new RegExp(`(HTTP/1\\.1 200 OK[^]*){${i}}\\{\\}`))
  }
  t.equal(heads.length, 3)
  for (const head of heads) {
    t.strictSame(head.match(/x-forwarded-for: .*/gi), ['X-Forwarded-For: 9.9.9.9, 127.0.0.1'])
    t.strictSame(head.match(/x-forwarded-proto: .*/gi), ['X-Forwarded-Proto: https'])
    t.equal(head.match(/\r\nvia: /gi)?.length, 1)
  }
})

t.test('hazard: if the upstream resets the connection in mid-stream, the client connection ends too', async t => {
  const seen = Promise.withResolvers<void>()
  const upstream = await startWireUpstream(t, async wire => {
    await wire.request()
    wire.send(STREAM_HEAD + chunk('data: {"n":1}\n\n'))
    await seen.promise
    wire.socket.resetAndDestroy()
  })
  const gateway = await startTestGateway(t, proxyTo(upstream.url))
  const client = await connect(t, gateway.url)
  client.send(post('/v1/other', { stream: true }))
  await client.until(/"n":1/)
  seen.resolve()
  await client.ended
  t.notMatch(client.text, /0\r\n\r\n$/)
})

t.test('hazard: the response head reaches the client before the first byte of the body', async t => {
  const upstream = await startWireUpstream(t, async wire => {
    await wire.request()
    wire.send(STREAM_HEAD)
    await wire.ended
  })
  const gateway = await startTestGateway(t, proxyTo(upstream.url))
  const client = await connect(t, gateway.url)
  client.send(post('/v1/other', { stream: true }))
  t.match(await client.until(/\r\n\r\n/), /^HTTP\/1\.1 200 OK/)
})

t.test('hazard: if the upstream does not respond in time, the client gets 504 instead of a reset', async t => {
  const upstream = await startWireUpstream(t, wire => wire.ended.then(() => {}))
  const gateway = await startTestGateway(t, `timeouts: { first_byte: 50ms }\n${proxyTo(upstream.url)}`)
  const answer = await fetch(`${gateway.url}/v1/files`, { headers: { 'x-api-key': KEY } })
  t.equal(answer.status, 504)
  t.match(await answer.json(), { error: { code: 'first_byte_timeout' } })
})

t.test('hazard: a stream may last longer than timeouts.first_byte ' +
  'and timeouts.idle', async t => {
  const upstream = await startWireUpstream(t, async wire => {
    await wire.request()
    wire.send(STREAM_HEAD)
    for (let i = 0; i < 10; i++) {
      await new Promise(resolve => setTimeout(resolve, 250))
      wire.send(chunk('data: {}\n\n'))
    }
    wire.send('0\r\n\r\n')
  })
  const gateway = await startTestGateway(
    t, `timeouts: { first_byte: 2s, idle: 2s }\n${proxyTo(upstream.url)}`,
  )
  const answer = await fetch(`${gateway.url}/v1/other`, { headers: { 'x-api-key': KEY } })
  t.equal((await answer.text()).match(/data/g)?.length, 10)
})

t.test('hazard: a request does not go upstream if its client disconnects before the end of the body', async t => {
  let connections = 0
  const upstream = await startWireUpstream(t, async () => {
    connections++
  })
  const gateway = await startTestGateway(t, proxyTo(upstream.url))
  const client = await connect(t, gateway.url)
  client.send(post('/v1/files', {}).slice(0, -1))
  await (await fetch(`${gateway.url}/api/status`)).text()
  client.socket.resetAndDestroy()
  await once(client.socket, 'close')
  const line = await gateway.waitForLog(each => each.msg === 'exchange')
  t.equal(line.error, 'client_gone')
  t.equal(connections, 0)
})

t.test('hazard: 30 requests on one connection cause no warning about leaked listeners', async t => {
  const warnings: Error[] = []
  const note = (warning: Error) => warnings.push(warning)
  process.on('warning', note)
  t.teardown(() => process.off('warning', note))
  const upstream = await startUpstream(t, async (req, res) => {
    await bodyOf(req)
    res.end('{}')
  })
  const gateway = await startTestGateway(t, proxyTo(upstream.url))
  const client = await connect(t, gateway.url)
  for (let i = 1; i <= 30; i++) {
    client.send(post('/v1/files', { i }))
    await client.until(/\{\}$/)
    client.clear()
  }
  await new Promise(setImmediate)
  t.strictSame(warnings, [])
})

t.test('hazard: the environment variable FORCE_FETCH_PATH has no effect', async t => {
  const upstream = await startUpstream(t, async (req, res) => {
    res.end(`${req.method} ${req.url} ${(await bodyOf(req)).toString()}`)
  })
  const gateway = await startTestGateway(t, proxyTo(upstream.url))
  t.teardown(() => delete process.env.FORCE_FETCH_PATH)
  for (const value of ['true', 'false', '']) {
    process.env.FORCE_FETCH_PATH = value
    const answer = await fetch(`${gateway.url}/v1/files`, {
      method: 'POST', body: 'x', headers: { 'x-api-key': KEY },
    })
    t.equal(await answer.text(), 'POST /v1/files x')
  }
})

t.test('hazard: a route for /v1/messages also matches /v1/messages?beta=true, ' +
  'and the query and anthropic-beta are forwarded', async t => {
  const seen: { url: string | undefined; beta: unknown; version: unknown }[] = []
  const upstream = await startUpstream(t, (req, res) => {
    seen.push({
      url: req.url, beta: req.headers['anthropic-beta'], version: req.headers['anthropic-version'],
    })
    req.resume()
    res.end('{}')
  })
  const gateway = await startTestGateway(t, `
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ path: /v1/messages, to: up }, { path: /v1/messages/count_tokens, to: up }]
`)
  const paths = ['/v1/messages?beta=true', '/v1/messages/count_tokens?beta=true']
  for (const path of paths) {
    const answer = await fetch(gateway.url + path, {
      method: 'POST', body: '{"model":"m","messages":[]}',
      headers: {
        'x-api-key': KEY, 'content-type': 'application/json',
        'anthropic-version': '2023-06-01', 'anthropic-beta': 'a-2025-01-01,b-2025-02-02',
      },
    })
    t.equal(answer.status, 200)
  }
  t.strictSame(seen, paths.map(url => ({ url, beta: 'a-2025-01-01,b-2025-02-02', version: '2023-06-01' })))
})

t.test('hazard: GET /v1/models responds in the shape of the protocol of the client', async t => {
  const gateway = await startTestGateway(
    t, 'upstreams: { demo: { simulator: true } }\nroutes: [{ model: [a, b], to: demo }]\n',
  )
  const ask = async (path: string, headers: Record<string, string>) =>
    (await fetch(gateway.url + path, { headers: { authorization: `Bearer ${KEY}`, ...headers } })).json()
  t.match(await ask('/v1/models', {}), { object: 'list', data: [{ id: 'a', object: 'model' }, { id: 'b' }] })
  t.match(await ask('/v1/models', { 'anthropic-version': 'x' }), {
    data: [{ type: 'model', id: 'a' }, { id: 'b' }], has_more: false,
  })
  t.match(await ask('/v1/models', { 'vendorb-version': 'x' }), { data: [{ type: 'model' }, {}] })
  t.match(await ask('/v1/models', { 'x-goog-api-key': KEY }), {
    models: [{ name: 'models/a' }, { name: 'models/b' }],
  })
  t.match(await ask(`/v1/models?key=${KEY}`, {}), { models: [{}, {}] })
  t.match(await ask('/v1beta/models', {}), { models: [{}, {}] })
  for (const place of ['/openai/models', '/v1/models']) {
    t.match(await ask(`${place}?api-version=1&api-key=${KEY}`, {}), { object: 'list' }, 'Azure clients get the shape of OpenAI')
  }
  t.match(await ask('/v1/unheard-of?api-key=wrong', {}), { error: { type: 'invalid_request_error' } })
})

t.test('hazard: a compressed stream reaches the client with its content-encoding', async t => {
  const packed = gzipSync('data: {"choices":[]}\n\ndata: [DONE]\n\n')
  let asked: unknown
  const upstream = await startUpstream(t, (req, res) => {
    asked = req.headers['accept-encoding']
    req.resume()
    res.writeHead(200, {
      'content-type': 'text/event-stream', 'content-encoding': 'gzip', 'content-length': packed.length,
    })
    res.end(packed)
  })
  const gateway = await startTestGateway(
    t, `upstreams: { up: { url: "${upstream.url}" } }\nroutes: [{ to: up }]\n`,
  )
  const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST', body: '{"model":"m","stream":true}',
    headers: { 'x-api-key': KEY, 'content-type': 'application/json', 'accept-encoding': 'gzip' },
  })
  t.equal(asked, 'identity', 'the gateway requests an uncompressed stream')
  t.equal(answer.headers.get('content-encoding'), 'gzip')
  t.match(
    await answer.text(), /^data: [^]*\[DONE\]\n\n$/, 'the stream of an upstream that compresses anyway is forwarded unchanged',
  )
})
