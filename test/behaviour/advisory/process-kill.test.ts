import t from 'tap'
import type { Test } from 'tap'
import { certificateFiles } from '../../support/certificate.ts'
import * as frames from '../../support/frames.ts'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import { H2Request, openSession } from '../../support/http2.ts'
import { connect, startWireUpstream } from '../../support/wire.ts'
import type { Wire } from '../../support/wire.ts'

/*
 * Inputs that ended the process, or would end it without special handling.
 * After each input the gateway serves the next request.
 */

async function setUp(t: Test, server = '') {
  const asked = Promise.withResolvers<void>()
  const upstream = await startWireUpstream(t, async wire => {
    if ((await wire.nextRequest()) !== null) asked.resolve()
    await wire.ended
  })
  const gateway = await startTestGateway(t, `
server: { listen: 127.0.0.1:0${server} }
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: up }]
`)
  return { gateway, asked: asked.promise }
}

async function serves(t: Test, url: string): Promise<void> {
  t.equal((await fetch(`${url}/api/status`)).status, 200, 'the gateway still serves')
}

const UPGRADE = 'GET /v1/realtime HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n'
const AUTH = `Host: x\r\nX-Api-Key: ${KEY}\r\n`

for (
  const first of ['GET /api/status HTTP/1.1\r\nHost: x\r\n\r\n', `GET /v1/files HTTP/1.1\r\n${AUTH}\r\n`]
) {
  for (const second of [`${UPGRADE}\r\n`, 'CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n']) {
    t.test(`a protocol change by ${second.split(' ')[0]}, pipelined after ${first.split(' ')[1]}, does not end the process`, async t => {
      const { gateway } = await setUp(t)
      const client = await connect(t, gateway.url)
      client.send(first + second)
      await client.ended
      t.notMatch(client.text, /HTTP\/1\.1 [^]*HTTP\/1\.1 2/, 'the second request gets no 2xx')
      await serves(t, gateway.url)
    })
  }
}

t.test('an upgrade request with a malformed body does not end the process', async t => {
  const { gateway } = await setUp(t)
  for (const auth of ['', `X-Api-Key: ${KEY}\r\n`]) {
    for (const request of [UPGRADE, 'CONNECT x:1 HTTP/1.1\r\nHost: x\r\n']) {
      for (const [framing, body] of [['Transfer-Encoding: chunked', 'zz\r\n'], ['Content-Length: 9', 'x']]) {
        const client = await connect(t, gateway.url)
        client.send(`${request + auth + framing}\r\n\r\n`)
        client.send(body as string)
        client.socket.end()
        await client.ended
        t.notMatch(client.text, /HTTP\/1\.1 [12]/)
      }
    }
  }
  await serves(t, gateway.url)
})

t.test('a malformed chunk gets 400, even if Transfer-Encoding comes after 2,500 other headers', async t => {
  const { gateway, asked } = await setUp(t)
  const client = await connect(t, gateway.url)
  client.send(`POST /v1/files HTTP/1.1\r\n${AUTH}${'a: b\r\n'.repeat(2_500)}Transfer-Encoding: chunked\r\n` +
    '\r\n2\r\n{}\r\n')
  const answer = client.until(/^HTTP\/1\.1 400 /)
  client.send('zz\r\n')
  await Promise.race([asked, answer])
  await answer
  await serves(t, gateway.url)
})

t.test('malformed bytes after a complete request get one 400, which follows the response to the request', async t => {
  const { promise: told, resolve: tell } = Promise.withResolvers<void>()
  const upstream = await startWireUpstream(t, async wire => {
    await wire.request()
    await told
    wire.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n')
    await wire.ended
  })
  const gateway = await startTestGateway(
    t, `upstreams: { up: { url: "${upstream.url}" } }\nroutes: [{ to: up }]\n`,
  )
  const client = await connect(t, gateway.url)
  client.send(`POST /v1/files HTTP/1.1\r\n${AUTH}Content-Length: 2\r\n\r\n{}`)
  for (let i = 0; i < 20; i++) {
    client.send('\0\0\0')
    await new Promise(setImmediate)
  }
  tell()
  t.equal(await client.ended, 'end')
  t.match(client.text, /^HTTP\/1\.1 200 [^]*\r\n0\r\n\r\nHTTP\/1\.1 400 [^]*\r\nconnection: close\r\n[^]*"code":"bad_framing"/i)
  t.equal(client.text.match(/HTTP\/1\.1/g)?.length, 2)
  await serves(t, gateway.url)
})

t.test('if a client sends malformed bytes after a request and disconnects, the upstream request ends', async t => {
  const { promise: asked, resolve } = Promise.withResolvers<Wire>()
  const upstream = await startWireUpstream(t, async wire => {
    await wire.request()
    resolve(wire)
    await wire.ended
  })
  const gateway = await startTestGateway(
    t, `upstreams: { up: { url: "${upstream.url}" } }\nroutes: [{ to: up }]\n`,
  )
  const client = await connect(t, gateway.url)
  client.send(`POST /v1/files HTTP/1.1\r\n${AUTH}Content-Length: 2\r\n\r\n{}\0\0\0`)
  const wire = await asked
  client.socket.end()
  await wire.ended
  t.match(await gateway.waitForLog(line => line.msg === 'exchange'), { end: 'client_gone' })
})

t.test('a body longer than its Content-Length gets 400', async t => {
  const { gateway } = await setUp(t)
  const client = await connect(t, gateway.url)
  const text = '{"model":"\xc3\xa9"}'
  client.send(`POST /v1/chat/completions HTTP/1.1\r\n${AUTH}Content-Type: application/json\r\n` +
    `Content-Length: ${text.length - 1}\r\n\r\n${text}`)
  await client.ended
  t.match(client.text, /^HTTP\/1\.1 400 [^]*"code":"invalid_json"/)
})

t.test('HTTP/2: a 426 response of the gateway does not end the process', async t => {
  const { gateway } = await setUp(t)
  const session = await openSession(t, gateway.url)
  const request = new H2Request(session, 'GET', '/v1/realtime')
  t.equal((await request.head)[':status'], 426)
  await serves(t, gateway.url)
})

t.test('hazard: HTTP/2: an Upgrade header in a response of the upstream is not forwarded', async t => {
  const upstream = await startWireUpstream(t, async wire => {
    await wire.request()
    wire.send('HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nUpgrade: h2,h2c\r\nHTTP2-Settings: x\r\n' +
      'Content-Length: 2\r\n\r\n{}')
    await wire.ended
  })
  const gateway = await startTestGateway(
    t, `upstreams: { up: { url: "${upstream.url}" } }\nroutes: [{ to: up }]\n`,
  )
  const session = await openSession(t, gateway.url)
  const request = new H2Request(session, 'GET', '/v1/files')
  t.equal((await request.head)[':status'], 200)
  t.equal((await request.head).upgrade, undefined)
  await serves(t, gateway.url)
})

t.test('an IPv6 zone in X-Forwarded-For does not end the process, and is not logged', async t => {
  const { gateway } = await setUp(t, ', trusted_proxies: [127.0.0.0/8, "fe80::/10"]')
  for (
    const hops of ['fe80::1%eth0', 'fe80::1%, 9.9.9.9%x', '%', ',,,', '::ffff:127.0.0.1, 1.2.3.4, fe80::2%lo']
  ) {
    const answer = await fetch(`${gateway.url}/v1/nothing`, { headers: { 'x-forwarded-for': hops } })
    t.equal(answer.status, 401)
    const line = await gateway.waitForLog(each => each.request === answer.headers.get('x-gateway-request-id'))
    t.notMatch(line.client, '%')
    if (hops.includes('1.2.3.4')) t.equal(line.client, '1.2.3.4')
  }
})

t.test('TLS: neither bytes that are not TLS nor a reset during the handshake ends the process', async t => {
  const { cert, certFile, keyFile } = certificateFiles(t)
  const { gateway } = await setUp(t, `, tls: { cert: "${certFile}", key: "${keyFile}" }`)
  const plain = gateway.url.replace('https', 'http')
  const client = await connect(t, plain)
  client.send('GET / HTTP/1.1\r\n\r\n')
  await client.ended
  const half = await connect(t, plain)
  half.socket.write(Buffer.from('160301020001', 'hex'))
  half.socket.resetAndDestroy()
  const session = await openSession(t, gateway.url, cert)
  t.equal((await new H2Request(session, 'GET', '/api/status').head)[':status'], 200)
})

t.test('HTTP/2: hundreds of requests, each reset in the same packet, do not end the process', async t => {
  const { gateway } = await setUp(t)
  const client = await connect(t, gateway.url)
  const bytes = [frames.opening()]
  for (let i = 0; i < 300; i++) {
    bytes.push(frames.request(2 * i + 1, [
      [':method', 'GET'], [':scheme', 'http'], [':path', '/v1/files'],
      [':authority', 'x'], ['x-api-key', KEY],
    ], true), frames.reset(2 * i + 1))
  }
  client.socket.write(Buffer.concat(bytes))
  await client.until(/[^]{9}/)
  client.socket.destroy()
  await serves(t, gateway.url)
})
