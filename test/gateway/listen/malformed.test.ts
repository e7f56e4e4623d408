import { once } from 'node:events'
import * as net from 'node:net'
import type { AddressInfo } from 'node:net'
import * as tls from 'node:tls'
import pino from 'pino'
import t from 'tap'
import type { Test } from 'tap'
import type { Gateway } from '../../../src/pipeline/parts/gateway.ts'
import { respondToMalformed } from '../../../src/gateway/listen/malformed.ts'
import { certificateFiles } from '../../support/certificate.ts'
import { startTestGateway } from '../../support/gateway.ts'
import { startUpstream } from '../../support/upstream.ts'
import { connect, post, proxyTo } from '../../support/wire.ts'

t.test('a malformed request gets one complete response and a log line, and its connection is closed', async t => {
  const gateway = await startTestGateway(t, proxyTo('http://127.0.0.1:1'))
  for (const [bytes, status, code, cause] of [
    ['NO HTTP\r\n\r\n', 400, 'bad_framing', 'HPE_INVALID_METHOD'],
    [`GET / HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(70_000)}\r\n\r\n`, 431, 'headers_too_large',
      'HPE_HEADER_OVERFLOW'],
  ] as const) {
    const client = await connect(t, gateway.url)
    client.send(bytes)
    await client.until(/\}\}$/)
    await client.ended
    const [head = '', body = ''] = client.text.split('\r\n\r\n')
    t.match(head, new RegExp(String.raw`^HTTP/1\.1 ${status} \w`), code)
    for (const header of [
      /\r\nconnection: close(\r\n|$)/, /\r\ncontent-type: application\/json\r\n/, /\r\nx-gateway-version: /,
      /\r\nvia: 1\.1 /, new RegExp(String.raw`\r\ncontent-length: ${body.length}\r\n`),
    ]) t.match(head, header, code)
    t.match(JSON.parse(body), { error: { code } })
    const request = /\r\nx-gateway-request-id: (\S+)/.exec(head)?.[1]
    const line = await gateway.waitForLog(line => line['request'] === request)
    t.match(line, { client: '127.0.0.1', status, error: code, cause })
  }
})

t.test('a failed TLS handshake is logged with the client and the cause', async t => {
  const { gateway, host, port } = await startTls(t)
  net.connect(port, host).on('error', () => {}).resume().write('GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n')
  const told = (cause: string) => gateway.waitForLog(line => line['cause'] === cause)
  t.match(await told('ERR_SSL_HTTP_REQUEST'), { client: '127.0.0.1', error: 'tls', msg: 'turned away' })
  // A cipher that needs another kind of key.
  tls.connect(port, host, { maxVersion: 'TLSv1.2', ciphers: 'AES128-SHA256' }).on('error', () => {})
  t.match(await told('ERR_SSL_NO_SHARED_CIPHER'), { client: '127.0.0.1', error: 'tls', msg: 'turned away' })
})

t.test('a client that disconnects before the TLS handshake is not logged', async t => {
  const { gateway, host, port } = await startTls(t)
  await once(net.connect(port, host).resume().end(), 'close')
  // A log line about the first connection would precede the line about this one.
  net.connect(port, host).on('error', () => {}).resume().write('no handshake at all\r\n')
  await gateway.waitForLog(line => line['msg'] === 'turned away')
  t.equal(gateway.logged.filter(({ msg }) => msg === 'turned away').length, 1)
})

async function startTls(t: Test) {
  const { certFile, keyFile } = certificateFiles(t)
  const gateway = await startTestGateway(t, `
server: { listen: 127.0.0.1:0, tls: { cert: "${certFile}", key: "${keyFile}" } }
auth: open
upstreams: { demo: { simulator: true } }
routes: [{ to: demo }]
`)
  const { hostname: host, port } = new URL(gateway.url)
  return { gateway, host, port: Number(port) }
}

t.test('a client that disconnects in the middle of a request head gets no response and is not logged', async t => {
  const gateway = await startTestGateway(t, proxyTo('http://127.0.0.1:1'))
  const client = await connect(t, gateway.url)
  client.socket.end('GET /v1/models HT')
  await client.ended
  t.equal(client.text, '')
  t.notOk(gateway.logged.some(({ msg }) => msg === 'turned away'))
})

t.test('a request without a Host header is refused with an error of the gateway', async t => {
  const gateway = await startTestGateway(t, proxyTo('http://127.0.0.1:1'))
  const client = await connect(t, gateway.url)
  client.send('GET /v1/models HTTP/1.1\r\n\r\n')
  t.match(await client.until(/\}\}$/), /^HTTP\/1\.1 400 [^]*x-gateway-request-id: [^]*"code":"bad_header"/)
})

t.test('a body with broken framing gets an error in the shape of the protocol of the request', async t => {
  const gateway = await startTestGateway(t, proxyTo('http://127.0.0.1:1'))
  const client = await connect(t, gateway.url)
  const head = post('/v1/messages', '').replace('Content-Length: 0', 'Transfer-Encoding: chunked')
  client.send(`${head}5\r\n{"mod\r\nno length\r\n`)
  t.match(await client.until(/\}$/), /^HTTP\/1\.1 400 [^]*\{"type":"error","error":\{/)
  t.equal(client.text.match(/HTTP\/1\.1/g)?.length, 1)
})

t.test('malformed bytes after a running request get one error, which follows the response to that request', async t => {
  for (const hasBegun of [false, true]) {
    const { promise: asked, resolve: ask } = Promise.withResolvers<void>()
    const { promise: sent, resolve: send } = Promise.withResolvers<void>()
    const upstream = await startUpstream(t, (req, res) => {
      req.resume()
      res.setHeader('content-type', 'application/json')
      if (hasBegun) res.write('{"ok"')
      ask()
      void sent.then(() => res.end(hasBegun ? ':true}' : '{"ok":true}'))
    })
    const gateway = await startTestGateway(t, proxyTo(upstream.url))
    const client = await connect(t, gateway.url)
    client.send(post('/v1/chat/completions', { model: 'm' }))
    await asked
    if (hasBegun) await client.until(/\{"ok"/)
    client.send('\x01\x02 rest\r\n\r\n')
    client.send('\x01\x02 more\r\n\r\n')
    // A response to another request shows that the gateway has read the malformed bytes.
    t.equal((await fetch(`${gateway.url}/api/status`)).status, 200)
    send()
    t.equal(await client.ended, 'end')
    t.match(client.text, /^HTTP\/1\.1 200 [^]*\{"ok"[^]*:true\}[^]*HTTP\/1\.1 400 [^]*"code":"bad_framing"[^}]*\}\}$/)
    t.equal(client.text.match(/HTTP\/1\.1/g)?.length, 2)
  }
})

t.test('after a response with Connection: close, malformed bytes get no error', async t => {
  const { promise: asked, resolve: ask } = Promise.withResolvers<void>()
  const { promise: sent, resolve: send } = Promise.withResolvers<void>()
  const upstream = await startUpstream(t, (req, res) => {
    req.resume()
    ask()
    void sent.then(() => res.setHeader('content-type', 'application/json').end('{"ok":true}'))
  })
  const gateway = await startTestGateway(t, proxyTo(upstream.url))
  const client = await connect(t, gateway.url)
  client.send(`${post('/v1/chat/completions', { model: 'm' }, ['Connection: close'])}\x01\x02 rest\r\n\r\n`)
  await asked
  send()
  t.equal(await client.ended, 'end')
  t.match(client.text, /^HTTP\/1\.1 200 [^]*\{"ok":true\}$/)
})

t.test('a request whose head is late gets 408', async t => {
  const gateway = {
    newId: () => 'an-id', version: '0', log: pino({ level: 'silent' }),
  } as unknown as Gateway
  const late = Object.assign(new Error('late'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' })
  const server = net.createServer(socket => respondToMalformed(gateway, late, socket)).listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  const client = await connect(t, `http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  t.match(await client.until(/\}\}$/), /^HTTP\/1\.1 408 [^]*"code":"headers_timeout"/)
  t.equal(await client.ended, 'end')
})
