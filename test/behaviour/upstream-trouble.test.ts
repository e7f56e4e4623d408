import t from 'tap'
import type { Test } from 'tap'
import { certificateFiles, selfSigned } from '../support/certificate.ts'
import { freePort } from '../support/free-port.ts'
import { KEY, startTestGateway } from '../support/gateway.ts'
import { startHttp2Upstream } from '../support/http2.ts'
import { connect, post, proxyTo, startWireUpstream } from '../support/wire.ts'
import type { Wire } from '../support/wire.ts'

const PLAIN = { model: 'm', messages: [] }

/** Sends one request through a gateway to the upstream at this URL. */
async function ask(t: Test, upstreamUrl: string) {
  const gateway = await startTestGateway(t, proxyTo(upstreamUrl))
  const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify(PLAIN),
  })
  const body = (await answer.json()) as { error: { code: string; message: string } }
  const line = await gateway.waitForLog(each => each.msg === 'exchange')
  return { answer, error: body.error, line, gateway }
}

t.test('a refused connection gives 502 upstream_unreachable', async t => {
  const { answer, error, line } = await ask(t, `http://127.0.0.1:${await freePort()}`)
  t.equal(answer.status, 502)
  t.equal(answer.headers.get('content-type'), 'application/json')
  t.equal(error.code, 'upstream_unreachable')
  t.match(line.cause, /ECONNREFUSED/, 'the log has the cause')
  t.notMatch(JSON.stringify(error), /127\.0\.0\.1|ECONN/, 'the client does not see the cause')
  t.equal(line.level, 40)
})

t.test('a host name that does not resolve gives 502 upstream_unreachable', async t => {
  const { answer, error, line } = await ask(t, 'http://no-such-host.invalid')
  t.equal(answer.status, 502)
  t.equal(error.code, 'upstream_unreachable')
  t.match(line.cause, /ENOTFOUND|EAI_AGAIN/)
  t.notMatch(error.message, /no-such-host/)
})

t.test('a self-signed certificate gives 502 upstream_unreachable', async t => {
  const upstream = await startHttp2Upstream(t, selfSigned(), () => t.fail('a request came'))
  const { answer, error, line } = await ask(t, upstream.url)
  t.equal(answer.status, 502)
  t.equal(error.code, 'upstream_unreachable')
  t.match(line.cause, /SELF_SIGNED/)
})

t.test('plain HTTP from an upstream with an https URL gives 502 upstream_unreachable', async t => {
  const upstream = await startWireUpstream(t, async wire => {
    wire.send('HTTP/1.1 400 Bad Request\r\n\r\n')
    await wire.ended
  })
  const { answer, error } = await ask(t, upstream.url.replace('http:', 'https:'))
  t.equal(answer.status, 502)
  t.equal(error.code, 'upstream_unreachable')
})

/** Faults of an upstream on its first connection, and the expected response of the client. */
const TROUBLES: [string, (wire: Wire) => void, string, RegExp?][] = [
  ['a reset before the response', wire => wire.socket.resetAndDestroy(), 'upstream_reset'],
  ['a close without a response', wire => wire.socket.end(), 'upstream_reset'],
  ['a reset in the middle of the head', wire => {
    wire.socket.write('HTTP/1.1 200 OK\r\nContent-Ty', () => wire.socket.resetAndDestroy())
  }, 'upstream_reset'],
  [
    'a close in the middle of the head',
    wire => wire.socket.end('HTTP/1.1 200 OK\r\nContent-Ty'), 'upstream_reset',
  ],
  ['garbage', wire => wire.socket.end('SSH-2.0-OpenSSH_9.6\r\n'), 'upstream_invalid'],
  ['an HTTP/0.9 response', wire => wire.socket.end('{"choices":[]}'), 'upstream_invalid'],
  ['a head that is too large', wire => {
    wire.send(`HTTP/1.1 200 OK\r\n${'X-Large: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\r\n'.repeat(3000)}\r\n`)
  }, 'upstream_invalid', /sent response headers that are larger than the gateway reads/],
  ['two content lengths', wire => {
    wire.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{} ')
  }, 'upstream_invalid'],
  ['a content length and chunks', wire => {
    wire.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n')
    wire.send('1e\r\n{}HTTP/1.1 200 OK\r\nX-Split: 1\r\n\r\n0\r\n\r\n')
  }, 'upstream_invalid'],
  ['a 101 that nobody requested', wire => {
    wire.send('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n')
  }, 'upstream_invalid'],
  [
    'a status of two digits',
    wire => wire.send('HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n'), 'upstream_invalid',
  ],
  [
    'a status below 100',
    wire => wire.send('HTTP/1.1 099 OK\r\nContent-Length: 2\r\n\r\n{}'), 'upstream_invalid', /sent the status 99$/,
  ],
  [
    'a status of zeros',
    wire => wire.send('HTTP/1.1 000 OK\r\nContent-Length: 2\r\n\r\n{}'), 'upstream_invalid', /sent the status 0$/,
  ],
  ['interim responses and then a reset', wire => {
    wire.socket.write('HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n', () => wire.socket.resetAndDestroy())
  }, 'upstream_reset'],
]
for (const [trouble, make, code, message = /./] of TROUBLES) {
  t.test(`${trouble} gives 502 ${code}, and the request is sent once`, async t => {
    let requests = 0
    const upstream = await startWireUpstream(t, async wire => {
      await wire.request()
      requests++
      make(wire)
      await wire.ended
    })
    const { answer, error, line } = await ask(t, upstream.url)
    t.equal(answer.status, 502)
    t.equal(error.code, code)
    t.match(error.message, message)
    t.equal(line.error, code)
    t.equal(requests, 1)
    t.ok(answer.headers.get('x-gateway-request-id'))
  })
}

t.test('an HTTP/2 upstream that resets the stream before the response gives 502 upstream_reset', async t => {
  const certificate = certificateFiles(t)
  let requests = 0
  const upstream = await startHttp2Upstream(t, certificate, stream => {
    requests++
    stream.close(2)
  })
  const gateway = await startTestGateway(t, `
upstreams: { up: { url: "${upstream.url}", ca: "${certificate.certFile}" } }
routes: [{ to: up }]
`)
  const answer = await fetch(`${gateway.url}/v1/files`, { headers: { 'x-api-key': KEY } })
  t.equal(answer.status, 502)
  t.match(await answer.text(), /upstream_reset/)
  t.equal(requests, 1)
})

t.test('an untrusted root gives 502 upstream_unreachable, and the error names the setting ca', async t => {
  const upstream = await startHttp2Upstream(t, certificateFiles(t), stream => stream.close())
  const { answer, error, line } = await ask(t, upstream.url)
  t.equal(answer.status, 502)
  t.match(error, { code: 'upstream_unreachable', message: /root is not trusted; its ca: can name/ })
  t.match(line, { why: /its ca: can name/, cause: /^DEPTH_ZERO_SELF_SIGNED_CERT: self-signed certificate$/ })
})

t.test('an upstream that recovers is used again', async t => {
  let broken = true
  const upstream = await startWireUpstream(t, async wire => {
    await wire.request()
    if (broken) wire.socket.resetAndDestroy()
    else wire.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}')
  })
  const gateway = await startTestGateway(t, proxyTo(upstream.url))
  const client = await connect(t, gateway.url)
  client.send(post('/v1/files', {}))
  await client.until(/^HTTP\/1\.1 502 /)
  broken = false
  client.send(post('/v1/files', {}))
  await client.until(/HTTP\/1\.1 200 OK[^]*\{\}$/)
})
