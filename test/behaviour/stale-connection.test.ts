import { once } from 'node:events'
import * as https from 'node:https'
import * as net from 'node:net'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import type { Test } from 'tap'
import { certificateFiles } from '../support/certificate.ts'
import { startTestGateway } from '../support/gateway.ts'
import { startHttp2Upstream } from '../support/http2.ts'
import { startRawUpstream } from '../support/upstream.ts'
import { connect, post, proxyTo, startWireUpstream } from '../support/wire.ts'
import type { Wire } from '../support/wire.ts'

const ANSWER = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}'

/** An upstream that responds to the first request of its first connection, and then does what the test says. */
async function setUp(t: Test, then: (wire: Wire) => void) {
  let requests = 0
  const upstream = await startWireUpstream(t, async wire => {
    await wire.request()
    const first = ++requests === 1
    wire.send(ANSWER)
    if (!first) return
    await wire.request()
    requests++
    then(wire)
  })
  const gateway = await startTestGateway(t, proxyTo(upstream.url))
  const client = await connect(t, gateway.url)
  client.send(post('/v1/files', { n: 1 }))
  await client.until(/\{\}$/)
  return { gateway, client, requests: () => requests }
}

for (const [how, close] of [
  ['is reset', (wire: Wire) => wire.socket.resetAndDestroy()],
  ['is closed', (wire: Wire) => wire.socket.end()],
] as const) {
  t.test(`if an idle connection ${how} when it is used again, ` +
    `the request is sent on another connection`, async t => {
    const { client, requests } = await setUp(t, close)
    client.send(post('/v1/files', { n: 2 }))
    const all = await client.until(/\{\}[^]*\{\}$/)
    t.equal(all.match(/HTTP\/1\.1 200 OK/g)?.length, 2)
    t.equal(requests(), 3, 'the request is sent again on a new connection')
  })
}

t.test('a connection that closes while it is idle is not used again', async t => {
  const closed = Promise.withResolvers<void>()
  let requests = 0
  const upstream = await startWireUpstream(t, async wire => {
    await wire.request()
    requests++
    wire.send(ANSWER)
    if (requests > 1) return
    wire.socket.end()
    await wire.ended
    closed.resolve()
  })
  const gateway = await startTestGateway(t, proxyTo(upstream.url))
  const client = await connect(t, gateway.url)
  client.send(post('/v1/files', { n: 1 }))
  await client.until(/\{\}$/)
  await closed.promise
  client.send(post('/v1/files', { n: 2 }))
  await client.until(/\{\}[^]*\{\}$/)
  t.equal(requests, 2)
})

t.test('a request is not sent again if a part of the response has arrived', async t => {
  const { client, requests } = await setUp(t, wire => {
    wire.socket.write('HTTP/1.1 200 OK\r\nX-', () => wire.socket.resetAndDestroy())
  })
  client.send(post('/v1/files', { n: 2 }))
  t.match(await client.until(/upstream_reset/), /HTTP\/1\.1 502 /)
  t.equal(requests(), 2)
})

t.test('hazard: a request that may have run is not sent again: ' +
  'the upstream resets the connection after 1.2 s', async t => {
  const { client, requests } = await setUp(t, wire => {
    // The late reset is the event under test.
    setTimeout(() => wire.socket.resetAndDestroy(), 1_200)
  })
  client.send(post('/v1/files', { n: 2 }))
  t.match(await client.until(/upstream_reset/), /HTTP\/1\.1 502 /)
  t.equal(requests(), 2)
})

t.test('over HTTP/2, requests that may have run are not sent again when the connection breaks', async t => {
  const certificate = certificateFiles(t)
  const relayed: net.Socket[] = []
  let requests = 0
  const { port } = await startHttp2Upstream(t, certificate, stream => {
    if (++requests > 1) {
      // The late reset is the event under test.
      setTimeout(() => relayed[0]?.resetAndDestroy(), 1_200)
      return
    }
    stream.respond({ ':status': 200, 'content-type': 'application/json' })
    stream.end('{}')
  })
  const front = await startRawUpstream(t, socket => {
    const behind = net.connect(port, '127.0.0.1').on('error', () => {})
    relayed.push(socket)
    socket.pipe(behind).pipe(socket)
    socket.once('close', () => behind.destroy())
  })
  const gateway = await startTestGateway(t, `
upstreams: { up: { url: "${front.url.replace('http:', 'https:')}", ca: "${certificate.certFile}" } }
routes: [{ to: up }]
`)
  const client = await connect(t, gateway.url)
  client.send(post('/v1/files', { n: 1 }))
  await client.until(/\{\}/)
  const others = [await connect(t, gateway.url), await connect(t, gateway.url)]
  for (const each of others) each.send(post('/v1/files', { n: 2 }))
  for (const each of others) t.match(await each.until(/upstream_reset/), /HTTP\/1\.1 502 /)
  t.equal(requests, 3)
})

t.test('a request on a broken idle connection is sent again once, not repeatedly', async t => {
  let requests = 0
  const upstream = await startWireUpstream(t, async wire => {
    for (;;) {
      await wire.request()
      if (++requests > 2) {
        wire.socket.resetAndDestroy()
        return
      }
      wire.send(ANSWER)
    }
  })
  const gateway = await startTestGateway(t, proxyTo(upstream.url))
  // Two kept connections, both of which the upstream then resets.
  const clients = [await connect(t, gateway.url), await connect(t, gateway.url)]
  for (const client of clients) client.send(post('/v1/files', {}))
  for (const client of clients) await client.until(/\{\}$/)
  const third = await connect(t, gateway.url)
  third.send(post('/v1/files', {}))
  t.match(await third.until(/upstream_reset/), /HTTP\/1\.1 502 /)
  t.ok(requests <= 4)
})

for (const protocol of ['HTTP/1.1', 'HTTP/2']) {
  t.test(`a request on a new ${protocol} connection over TLS that breaks ` +
    'is not sent again', async t => {
    const certificate = certificateFiles(t)
    let requests = 0
    let url: string
    if (protocol === 'HTTP/2') {
      const upstream = await startHttp2Upstream(t, certificate, stream => {
        requests++
        stream.session?.destroy()
      })
      url = upstream.url
    } else {
      const server = https.createServer(certificate, req => {
        requests++
        req.socket.destroy()
      }).listen(0, '127.0.0.1')
      await once(server, 'listening')
      t.teardown(() => server.close())
      url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
    }
    const gateway = await startTestGateway(t, `
upstreams: { up: { url: "${url}", ca: "${certificate.certFile}" } }
routes: [{ to: up }]
`)
    const client = await connect(t, gateway.url)
    client.send(post('/v1/files', {}))
    t.match(await client.until(/upstream_reset/), /HTTP\/1\.1 502 /)
    t.equal(requests, 1)
  })
}
