import { gzipSync } from 'node:zlib'
import t from 'tap'
import type { Test } from 'tap'
import { certificateFiles } from '../support/certificate.ts'
import { KEY, startTestGateway } from '../support/gateway.ts'
import { H2Request, openSession } from '../support/http2.ts'
import { startUpstream } from '../support/upstream.ts'
import { STREAM_HEAD, chunk, connect, post, proxyTo, startWireUpstream } from '../support/wire.ts'

/** A gateway with an upstream that sends the same bytes as response to each request. */
async function answering(t: Test, answer: string) {
  let requests = 0
  const upstream = await startWireUpstream(t, async wire => {
    while ((await wire.nextRequest()) !== null) {
      requests++
      wire.send(answer)
    }
  })
  return { gateway: await startTestGateway(t, proxyTo(upstream.url)), requests: () => requests }
}

const GET = (path: string, rest = '') => `GET ${path} HTTP/1.1\r\nHost: x\r\nX-Api-Key: ${KEY}\r\n${rest}\r\n`

for (const [what, interim] of [
  ['interim responses', 'HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n'],
  // RFC 9110 section 15.2: a client must be able to parse 1xx responses that it does not expect.
  ['an unexpected 100 response', 'HTTP/1.1 100 Continue\r\n\r\n'],
  ['several 100 responses, with headers', 'HTTP/1.1 100 Continue\r\nLink: </x>\r\nX-Via: 1\r\n\r\n'.repeat(3)],
  ['100 and 103 responses', 'HTTP/1.1 100\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n'],
] as const) {
  t.test(`the gateway does not forward ${what} of the upstream, and reuses the connection`, async t => {
    let connections = 0
    const upstream = await startWireUpstream(t, async wire => {
      connections++
      while ((await wire.nextRequest()) !== null) {
        wire.send(`${interim}HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}`)
      }
    })
    const gateway = await startTestGateway(t, proxyTo(upstream.url))
    const client = await connect(t, gateway.url)
    for (const request of [GET('/v1/files'), post('/v1/files', {})]) {
      client.clear()
      client.send(request)
      const all = await client.until(/\}$/)
      t.match(all, /^HTTP\/1\.1 200 OK\r\n/)
      t.notMatch(all, /Link|X-Via/i)
    }
    t.equal(connections, 1)
  })
}

for (const status of ['204 No Content', '304 Not Modified']) {
  t.test(`a response with status ${status} has no body, and the connection is reused`, async t => {
    const { gateway } = await answering(t, `HTTP/1.1 ${status}\r\nETag: "x"\r\n\r\n`)
    const client = await connect(t, gateway.url)
    client.send(GET('/v1/files/1') + GET('/v1/files/2', 'Connection: close\r\n'))
    await client.ended
    t.equal(client.text.match(new RegExp(`HTTP/1\\.1 ${status}\r\n`, 'g'))?.length, 2)
    t.notMatch(client.text, /transfer-encoding|content-length/i)
    t.match(client.text, /ETag: "x"/)
    const request = new H2Request(await openSession(t, gateway.url), 'GET', '/v1/files/3')
    t.equal((await request.head)[':status'], Number(status.slice(0, 3)))
    t.equal(await request.closed, 0)
  })
}

t.test('HEAD: the response has the content-length of the upstream, and ends without a body', async t => {
  const { gateway } = await answering(
    t, 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1234\r\n\r\n',
  )
  const client = await connect(t, gateway.url)
  const head = GET('/v1/files/f').replace('GET', 'HEAD')
  client.send(head)
  t.match(await client.until(/\r\n\r\n$/), /content-length: 1234\r\n/i)
  client.send(head)
  await client.until(/(HTTP\/1\.1 200 OK[^]*){2}\r\n\r\n$/)
  const request = new H2Request(await openSession(t, gateway.url), 'HEAD', '/v1/files/f')
  t.equal((await request.head)['content-length'], '1234')
  t.equal(await request.closed, 0)
})

t.test("errors of the upstream are forwarded unchanged", async t => {
  const body = '{"error":{"message":"slow down","details":[1.0,1e5]}}'
  const { gateway, requests } = await answering(
    t,
    'HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\nX-Should-Retry: true\r\nRequest-Id: req_9\r\n' +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  )
  const client = await connect(t, gateway.url)
  client.send(post('/v1/messages', { model: 'm', messages: [] }))
  const answer = await client.until(/\}\}$/)
  t.match(answer, /^HTTP\/1\.1 429 Too Many Requests\r\n/)
  t.match(answer, /Retry-After: 7\r\nX-Should-Retry: true\r\nRequest-Id: req_9\r\n/)
  t.equal(answer.split('\r\n\r\n')[1], body)
  t.equal(requests(), 1)
})

t.test('a compressed response that the client accepts is forwarded byte for byte', async t => {
  const packed = gzipSync('{"data":[]}')
  let asked: unknown
  const upstream = await startUpstream(t, (req, res) => {
    asked = req.headers['accept-encoding']
    res.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' })
    res.end(packed)
  })
  const gateway = await startTestGateway(t, proxyTo(upstream.url))
  const client = await connect(t, gateway.url)
  client.send(post('/v1/embeddings', { model: 'm', input: 'x' }, [
    'Accept-Encoding: gzip, br', 'Connection: close',
  ]))
  await client.ended
  t.equal(asked, 'gzip, br')
  t.match(client.text, /content-encoding: gzip/i)
  t.ok(Buffer.from(client.text, 'latin1').includes(packed))
})

t.test('a chunked response with an empty body is complete', async t => {
  const { gateway } = await answering(t, 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n')
  const answer = await fetch(`${gateway.url}/v1/files`, { headers: { 'x-api-key': KEY } })
  t.equal(answer.status, 200)
  t.equal(await answer.text(), '')
})

t.test('an HTTP/1.0 client gets a complete response, and then the connection ends', async t => {
  const { gateway } = await answering(
    t, 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n',
  )
  const client = await connect(t, gateway.url)
  client.send(GET('/v1/files').replace('HTTP/1.1', 'HTTP/1.0'))
  t.equal(await client.ended, 'end')
  t.notMatch(client.text, /transfer-encoding/i)
  t.equal(client.text.split('\r\n\r\n')[1], '{}')
})

t.test('Expect: 100-continue of an HTTP/1.0 client is ignored', async t => {
  const { gateway } = await answering(t, 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}')
  const client = await connect(t, gateway.url)
  client.send(post('/v1/files', {}, ['Expect: 100-continue']).replace('HTTP/1.1', 'HTTP/1.0'))
  t.equal(await client.ended, 'end')
  t.match(client.text, /^HTTP\/1\.1 200 /)
})

for (const [what, type, piece] of [
  ['response', 'application/octet-stream', '{}'], ['stream', 'text/event-stream', 'data: {}\n\n'],
] as const) {
  for (const secure of [false, true]) {
    const how = secure ? ', over TLS' : ''
    t.test(`an HTTP/1.0 client gets a reset if the ${what} is cut${how}`, async t => {
      const seen = Promise.withResolvers<void>()
      const upstream = await startWireUpstream(t, async wire => {
        await wire.request()
        wire.send(STREAM_HEAD.replace('text/event-stream', type) + chunk(piece))
        await seen.promise
        wire.socket.resetAndDestroy()
      })
      const { cert, certFile, keyFile } = certificateFiles(t)
      const tls = secure ? `, tls: { cert: "${certFile}", key: "${keyFile}" }` : ''
      const gateway = await startTestGateway(
        t, proxyTo(upstream.url, `server: { listen: 127.0.0.1:0${tls} }`),
      )
      const client = await connect(t, gateway.url, cert)
      const request = post('/v1/chat/completions', { model: 'm', stream: true, messages: [] })
      client.send(request.replace('HTTP/1.1', 'HTTP/1.0'))
      await client.until(/\{\}/)
      seen.resolve()
      t.equal(await client.ended, 'reset')
    })
  }
}

t.test('a response that arrives during a large upload reaches the client', async t => {
  const upstream = await startWireUpstream(t, async wire => {
    await wire.until(/\r\n\r\n/)
    wire.socket.pause()
    wire.send(
      'HTTP/1.1 413 Payload Too Large\r\nContent-Type: application/json\r\nContent-Length: 15\r\n\r\n',
    )
    wire.send('{"too":"large"}')
    await wire.ended
  })
  const gateway = await startTestGateway(t, proxyTo(upstream.url))
  const body = Buffer.alloc(30 * 1024 * 1024, 0x20)
  const answer = await fetch(`${gateway.url}/v1/files`, {
    method: 'POST', headers: { 'x-api-key': KEY, 'content-type': 'application/octet-stream' }, body,
  })
  t.equal(answer.status, 413)
  t.equal(await answer.text(), '{"too":"large"}')
})

t.test('after an early response the next request does not wait for the unfinished upload', async t => {
  const upstream = await startWireUpstream(t, async wire => {
    await wire.until(/\r\n\r\n/)
    // Data that arrives from now on is not read.
    wire.socket.pause()
    wire.send('HTTP/1.1 413 Payload Too Large\r\nContent-Length: 2\r\n\r\n{}')
    await wire.ended
  })
  const gateway = await startTestGateway(t, proxyTo(upstream.url))
  for (const size of [30 * 1024 * 1024, 1]) {
    const answer = await fetch(`${gateway.url}/v1/files`, {
      method: 'POST', headers: { 'x-api-key': KEY, 'content-type': 'application/octet-stream' },
      body: Buffer.alloc(size, 0x20),
    })
    t.equal(answer.status, 413)
    t.equal(await answer.text(), '{}')
  }
})

t.test('after an early response the unfinished upload does not mix with the next request', async t => {
  const lines: string[] = []
  const upstream = await startUpstream(t, (req, res) => {
    lines.push(`${req.method} ${req.url}`)
    res.writeHead(413, { 'content-length': 2 }).end('{}')
    req.resume()
  })
  const gateway = await startTestGateway(t, proxyTo(upstream.url))
  const body = 'POST /v1/hidden HTTP/1.1\r\n\r\n'.repeat(400_000)
  for (let i = 0; i < 3; i++) {
    const answer = await fetch(`${gateway.url}/v1/files`, {
      method: 'POST', headers: { 'x-api-key': KEY, 'content-type': 'application/octet-stream' }, body,
    })
    t.equal(answer.status, 413)
    await answer.text()
  }
  t.strictSame(lines, Array.from({ length: 3 }, () => 'POST /v1/files'))
})

for (const status of [401, 403]) {
  t.test(`hazard: if the upstream refuses the credential with ${status}, the client gets 502, ` +
    `as the key of the client is valid`, async t => {
    const upstream = await startUpstream(t, (req, res) => {
      res.writeHead(status, { 'content-type': 'application/json', 'www-authenticate': 'Bearer realm="up"' })
      res.end(`{"error":"Incorrect API key provided: ${req.headers.authorization}"}`)
    })
    const gateway = await startTestGateway(t, `
upstreams: { up: { url: "${upstream.url}", auth: { bearer: operator-secret-1234 } } }
routes: [{ to: up }]
`)
    for (const path of ['/v1/chat/completions', '/v1/messages']) {
      const answer = await fetch(`${gateway.url}${path}`, {
        method: 'POST', headers: { 'x-api-key': KEY, 'content-type': 'application/json' },
        body: '{"model":"m","messages":[]}',
      })
      t.equal(answer.status, 502)
      t.equal(answer.headers.get('www-authenticate'), null)
      t.equal(answer.headers.get('x-should-retry'), 'false')
      t.notMatch(await answer.text(), /secret|Incorrect|realm/)
    }
    const loud = await gateway.waitForLog(each => each.level === 50)
    t.equal(loud.upstream, 'up')
    t.equal(loud.status, status)
    t.notMatch(JSON.stringify(gateway.logged), /operator-secret/)
  })
}

t.test('a status above 599 gives 502 upstream_invalid', async t => {
  const { gateway } = await answering(t, 'HTTP/1.1 999 Denied\r\nContent-Length: 0\r\n\r\n')
  const answer = await fetch(`${gateway.url}/v1/files`, { headers: { 'x-api-key': KEY } })
  t.equal(answer.status, 502)
  t.match(await answer.text(), /upstream_invalid/)
})
