import { once } from 'node:events'
import * as net from 'node:net'
import t from 'tap'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import { bodyOf, rawRequest, startRawUpstream, startUpstream } from '../../support/upstream.ts'

const SECRETS = /sk-test|operator-secret|session=|goog-|query-key/

t.test('request headers are forwarded in their original spelling, except credentials, cookies and hop-by-hop headers', async t => {
  let seen: string[] = []
  let url = ''
  const upstream = await startUpstream(t, async (req, res) => {
    await bodyOf(req)
    seen = req.rawHeaders
    url = req.url ?? ''
    res.end('{}')
  })
  const gateway = await startTestGateway(t, `
upstreams:
  up:
    url: "${upstream.url}/prefix"
    auth: { header: x-up-key, value: operator-secret }
    headers: { anthropic-version: "2023-06-01", x-default: "1", x-given: "default" }
routes: [{ path: /v1/*, to: up }]
`)
  await rawRequest(gateway.url, [
    'POST /v1/files?a=1&key=query-key&b=%20 HTTP/1.1',
    'Host: gateway',
    `Authorization: Bearer ${KEY}`,
    'X-Api-Key: sk-test-x',
    'x-goog-api-key: goog-key',
    'Api-Key: azure-key',
    'X-Up-Key: forged',
    'Cookie: session=1',
    'Connection: close, X-Hop',
    'X-Hop: 1',
    'Keep-Alive: timeout=5',
    'TE: trailers',
    'Proxy-Authorization: Basic x',
    'Proxy-Connection: keep-alive',
    'Upgrade: h2c',
    'HTTP2-Settings: x',
    'Expect: 100-continue',
    'X-Forwarded-For: 1.2.3.4',
    'X-Forwarded-Proto: https',
    'Forwarded: for=1.2.3.4',
    'X-Real-IP: 1.2.3.4',
    'X-Gateway-Request-Id: forged-by-the-client',
    'Via: 1.0 edge',
    'VendorB-Version: 2026-10-21',
    'anthropic-beta: a,b',
    'OpenAI-Organization: org',
    'X-Stainless-Lang: js',
    'traceparent: 00-1-2-01',
    'X-Given: client',
    'X-Latin: caf\xe9',
    'X-Twice: 1',
    'X-Twice: 2',
    'Content-Type: application/octet-stream',
    'Content-Length: 2',
    '',
    'hi',
  ].join('\r\n').replace('caf\xe9', 'caf\xe9'))
  const pairs = new Map<string, string[]>()
  for (let i = 0; i < seen.length; i += 2) {
    const name = seen[i] as string
    pairs.set(name, [...(pairs.get(name) ?? []), seen[i + 1] as string])
  }
  t.equal(url, '/prefix/v1/files?a=1&b=%20', 'the query is forwarded unchanged, except the key')
  const lower = new Set([...pairs.keys()].map(name => name.toLowerCase()))
  for (const name of ['authorization', 'x-api-key', 'x-goog-api-key', 'api-key', 'cookie', 'x-hop', 'keep-alive', 'te',
    'proxy-authorization', 'proxy-connection', 'upgrade', 'http2-settings', 'expect', 'x-forwarded-for',
    'x-forwarded-proto', 'forwarded', 'x-real-ip', 'transfer-encoding', 'vendorb-version']) {
    t.notOk(lower.has(name), `${name} is not forwarded`)
  }
  t.strictSame(pairs.get('x-up-key'), ['operator-secret'], 'only the credential of the operator is sent')
  t.strictSame(pairs.get('anthropic-version'), ['2026-10-21'], 'the version is sent under its usual name')
  t.strictSame(pairs.get('anthropic-beta'), ['a,b'])
  t.strictSame(pairs.get('OpenAI-Organization'), ['org'])
  t.strictSame(pairs.get('X-Stainless-Lang'), ['js'])
  t.strictSame(pairs.get('traceparent'), ['00-1-2-01'])
  t.strictSame(pairs.get('X-Given'), ['client'], 'a header of the client takes precedence over the default')
  t.strictSame(pairs.get('x-default'), ['1'])
  t.strictSame(pairs.get('X-Twice'), ['1', '2'])
  t.strictSame(pairs.get('X-Latin'), ['caf\xe9'])
  t.strictSame(pairs.get('content-length'), ['2'])
  t.strictSame(pairs.get('via'), ['1.0 edge, 1.1 model-gateway'])
  t.not(pairs.get('x-gateway-request-id')?.[0], 'forged-by-the-client')
  t.notMatch(JSON.stringify(gateway.logged), SECRETS, 'no credential is logged')
})

t.test('a header of `upstreams.NAME.headers` is added if the client does not send the header', async t => {
  let version: unknown
  const upstream = await startUpstream(t, (req, res) => {
    version = req.headers['anthropic-version']
    res.end('{}')
  })
  const gateway = await startTestGateway(t, `
upstreams: { up: { url: "${upstream.url}", headers: { anthropic-version: "2023-06-01" } } }
routes: [{ to: up }]
`)
  await fetch(`${gateway.url}/v1/files`, { headers: { 'x-api-key': KEY } })
  t.equal(version, '2023-06-01')
})

t.test('anthropic-version is forwarded under the name in version_header', async t => {
  let headers: NodeJS.Dict<string | string[]> = {}
  const upstream = await startUpstream(t, (req, res) => {
    headers = req.headers
    res.end('{}')
  })
  const gateway = await startTestGateway(t, `
upstreams: { up: { url: "${upstream.url}", version_header: vendorb-version } }
routes: [{ to: up }]
`)
  await fetch(`${gateway.url}/v1/files`, { headers: { 'x-api-key': KEY, 'anthropic-version': '2026-10-21' } })
  t.equal(headers['vendorb-version'], '2026-10-21')
  t.equal(headers['anthropic-version'], undefined)
})

t.test('the request id and the client address are taken from the headers of a trusted proxy', async t => {
  let headers: NodeJS.Dict<string | string[]> = {}
  const upstream = await startUpstream(t, (req, res) => {
    headers = req.headers
    res.end('{}')
  })
  const gateway = await startTestGateway(t, `
server: { listen: 127.0.0.1:0, trusted_proxies: [127.0.0.0/8] }
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: up }]
`)
  const answer = await fetch(`${gateway.url}/v1/files`, {
    headers: {
      'x-api-key': KEY, 'x-gateway-request-id': 'edge-00000001', 'x-forwarded-for': '9.9.9.9, 1.2.3.4',
    },
  })
  await answer.text()
  t.equal(answer.headers.get('x-gateway-request-id'), 'edge-00000001')
  t.equal(headers['x-gateway-request-id'], 'edge-00000001')
  t.equal(headers['x-forwarded-for'], '9.9.9.9, 1.2.3.4, 127.0.0.1')
  const line = await gateway.waitForLog(each => each.msg === 'exchange')
  t.equal(line.client, '1.2.3.4')
})

t.test('response headers are forwarded, except hop-by-hop headers and headers that the gateway sets', async t => {
  const upstream = await startRawUpstream(t, socket => {
    socket.once('data', () => {
      socket.end([
        'HTTP/1.1 200 OK',
        'Content-Type: application/json',
        'Connection: close, X-Hop',
        'X-Hop: 1',
        'Keep-Alive: timeout=5',
        'Proxy-Authenticate: Basic',
        'Trailer: x',
        'Upgrade: h2',
        'Alt-Svc: h3=":443"',
        'Via: 1.1 edge',
        'X-Gateway-Version: forged',
        'X-Gateway-Request-Id: forged',
        'X-Request-Id: req_1',
        'OpenAI-Processing-Ms: 7',
        'Set-Cookie: a=1',
        'Set-Cookie: b=2',
        'X-Latin: caf\xe9',
        'Content-Length: 2',
        '',
        '{}',
      ].join('\r\n').toString(), 'latin1')
    })
  })
  const gateway = await startTestGateway(t, `
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: up }]
`)
  const answer = await rawRequest(
    gateway.url, `GET /v1/files HTTP/1.1\r\nHost: x\r\nX-Api-Key: ${KEY}\r\nConnection: close\r\n\r\n`,
  )
  const [head = '', body] = answer.split('\r\n\r\n')
  t.equal(body, '{}')
  for (const name of ['x-hop', 'proxy-authenticate', 'trailer', 'upgrade', 'alt-svc']) {
    t.notMatch(head.toLowerCase(), new RegExp(`\r\n${name}:`), `${name} is not forwarded`)
  }
  t.match(head, /\r\nX-Request-Id: req_1\r\n/)
  t.match(head, /\r\nOpenAI-Processing-Ms: 7\r\n/)
  t.match(head, /\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n/)
  t.match(head, /\r\nX-Latin: caf\xe9\r\n/)
  t.match(head, /\r\nvia: 1\.1 edge, 1\.1 model-gateway/i)
  t.notMatch(head, /forged/)
})

t.test('hazard: the gateway responds to Expect: 100-continue, and forwards neither Expect nor the key', async t => {
  let headers: NodeJS.Dict<string | string[]> = {}
  const upstream = await startUpstream(t, async (req, res) => {
    headers = req.headers
    await bodyOf(req)
    res.end('{}')
  })
  const gateway = await startTestGateway(t, `
upstreams: { up: { url: "${upstream.url}", auth: { bearer: operator-secret } } }
routes: [{ to: up }]
`)
  const { hostname, port } = new URL(gateway.url)
  const socket = net.connect(Number(port), hostname)
  t.teardown(() => socket.destroy())
  socket.write(`POST /v1/files HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${KEY}\r\n` +
    'Expect: 100-continue\r\nContent-Length: 2\r\n\r\n')
  const [interim] = (await once(socket, 'data')) as [Buffer]
  t.match(interim.toString(), /^HTTP\/1\.1 100 /)
  socket.write('hi')
  const [answer] = (await once(socket, 'data')) as [Buffer]
  t.match(answer.toString(), /^HTTP\/1\.1 200 /)
  t.equal(headers.authorization, 'Bearer operator-secret')
  t.equal(headers.expect, undefined)
})

t.test('hazard: a request with Expect: 100-continue and without a key gets 401 before its body is sent', async t => {
  const gateway = await startTestGateway(t, `
upstreams: { demo: { simulator: true } }
routes: [{ to: demo }]
`)
  const answer = await rawRequest(gateway.url, 'POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n' +
    'Expect: 100-continue\r\nContent-Length: 1000000\r\n\r\n')
  t.match(answer, /^HTTP\/1\.1 401 /)
  t.match(answer, /connection: close/i)
})
