import t from 'tap'
import type { Test } from 'tap'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import { bodyOf, rawRequest, startUpstream } from '../../support/upstream.ts'

/** An upstream that notes every request that reaches it, and a gateway in front. */
async function setUp(t: Test) {
  const seen: { line: string; headers: NodeJS.Dict<string | string[]>; body: string }[] = []
  const upstream = await startUpstream(t, async (req, res) => {
    const body = await bodyOf(req)
    seen.push({ line: `${req.method} ${req.url}`, headers: req.headers, body: body.toString() })
    res.setHeader('content-type', 'application/json').end('{"ok":true}')
  })
  const gateway = await startTestGateway(t, `
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ path: /v1/*, to: up }]
`)
  return { seen, gateway }
}

const AUTH = `Host: gateway\r\nAuthorization: Bearer ${KEY}\r\n`
const HIDDEN = 'GET /v1/hidden HTTP/1.1\r\nHost: x\r\n\r\n'

for (const method of ['DELETE', 'OPTIONS', 'GET', 'POST', 'PUT', 'PATCH']) {
  t.test(`CVE-2026-29057: a request hidden in the body of a chunked ${method} stays in the body`, async t => {
    const { seen, gateway } = await setUp(t)
    const body = `${HIDDEN.length.toString(16)}\r\n${HIDDEN}\r\n0\r\n\r\n`
    const answer = await rawRequest(
      gateway.url,
      `${method} /v1/files/x HTTP/1.1\r\n${AUTH}Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n` +
        `${body}`,
    )
    if (method === 'OPTIONS') t.match(answer, /^HTTP\/1\.1 405 /)
    else t.match(answer, /^HTTP\/1\.1 200 /)
    t.notOk(seen.some(request => request.line.includes('hidden')), 'the hidden request is not sent as a request')
    for (const request of seen) {
      t.equal(request.headers['transfer-encoding'], undefined)
      t.equal(request.headers['content-length'], String(HIDDEN.length))
      t.equal(request.body, HIDDEN)
    }
  })
}

const refused: [string, string][] = [
  ['Content-Length and Transfer-Encoding together',
    `POST /v1/files HTTP/1.1\r\n${AUTH}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n` +
      `${HIDDEN}`],
  ['two different Content-Lengths',
    `POST /v1/files HTTP/1.1\r\n${AUTH}Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello`],
  ['a list of Content-Lengths', `POST /v1/files HTTP/1.1\r\n${AUTH}Content-Length: 5, 5\r\n\r\nhello`],
  ['a signed Content-Length', `POST /v1/files HTTP/1.1\r\n${AUTH}Content-Length: +5\r\n\r\nhello`],
  [
    'an unknown transfer coding',
    `POST /v1/files HTTP/1.1\r\n${AUTH}Transfer-Encoding: xchunked\r\n\r\nhello`,
  ],
  [
    'chunked that is not the last coding',
    `POST /v1/files HTTP/1.1\r\n${AUTH}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n`,
  ],
  [
    'a second coding besides chunked',
    `POST /v1/files HTTP/1.1\r\n${AUTH}Transfer-Encoding: gzip, chunked\r\nConnection: close\r\n\r\n` +
      '2\r\n{}\r\n0\r\n\r\n',
  ],
  ['space before the colon', `POST /v1/files HTTP/1.1\r\n${AUTH}Content-Length : 5\r\n\r\nhello`],
  [
    'obs-fold',
    `POST /v1/files HTTP/1.1\r\n${AUTH}X-A: b\r\n Content-Length: 5\r\nContent-Length: 0\r\n\r\nhello`,
  ],
  ['a bare CR in a header', `GET /v1/files HTTP/1.1\r\n${AUTH}X-A: a\rX-B: b\r\n\r\n`],
  ['a bare LF as a line end', `GET /v1/files HTTP/1.1\nHost: x\nAuthorization: Bearer ${KEY}\n\n`],
  ['a NUL in a header', `GET /v1/files HTTP/1.1\r\n${AUTH}X-A: a\0b\r\n\r\n`],
  [
    'a bad chunk size',
    `POST /v1/files HTTP/1.1\r\n${AUTH}Transfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n`,
  ],
  ['HTTP/2.0 in the request line', `GET /v1/files HTTP/2.0\r\n${AUTH}\r\n`],
  ['HTTP/0.9', 'GET /v1/files\r\n\r\n'],
  ['two spaces after the method', `GET  /v1/files HTTP/1.1\r\n${AUTH}\r\n`],
  ['two spaces before the version', `GET /v1/files  HTTP/1.1\r\n${AUTH}\r\n`],
  ['two spaces before a valid request', `GET  /v1/files HTTP/1.1\r\n${AUTH}\r\nGET /v1/files HTTP/1.1\r\n${AUTH}\r\n`],
  ['a chunk longer than its size',
    `POST /v1/files HTTP/1.1\r\n${AUTH}Transfer-Encoding: chunked\r\n\r\n3\r\nhello\r\n0\r\n\r\n`],
]
for (const [what, bytes] of refused) {
  t.test(`framing: ${what} is refused, and nothing goes upstream`, async t => {
    const { seen, gateway } = await setUp(t)
    const answer = await rawRequest(gateway.url, bytes)
    t.match(answer, /^HTTP\/1\.1 400 /)
    t.match(answer, /x-gateway-request-id: \S+/i)
    t.match(answer, /x-gateway-version: \S+/i)
    t.equal(answer.match(/HTTP\/1\.1 /g)?.length, 1, 'one response, then the connection ends')
    t.equal(seen.length, 0)
  })
}

t.test('framing: chunk extensions and trailers are read, but not forwarded', async t => {
  const { seen, gateway } = await setUp(t)
  const answer = await rawRequest(
    gateway.url,
    `POST /v1/files HTTP/1.1\r\n${AUTH}Transfer-Encoding: chunked\r\nTrailer: X-T\r\nConnection: close\r\n` +
      '\r\n' +
      '5;ext=1;q="a"\r\nhello\r\n0\r\nX-T: 1\r\n\r\n',
  )
  t.match(answer, /^HTTP\/1\.1 200 /)
  t.equal(seen[0]?.body, 'hello')
  t.equal(seen[0]?.headers['x-t'], undefined)
  t.equal(seen[0]?.headers.trailer, undefined)
})

t.test('framing: pipelined requests get their responses in order', async t => {
  const { seen, gateway } = await setUp(t)
  const one = `GET /v1/files/1 HTTP/1.1\r\n${AUTH}\r\n`
  const two = `GET /v1/files/2 HTTP/1.1\r\n${AUTH}Connection: close\r\n\r\n`
  const answer = await rawRequest(gateway.url, one + two)
  t.equal(answer.match(/HTTP\/1\.1 200 /g)?.length, 2)
  t.strictSame(seen.map(request => request.line), ['GET /v1/files/1', 'GET /v1/files/2'])
})

t.test('framing: invalid bytes after a request are refused after the response to the request', async t => {
  const { seen, gateway } = await setUp(t)
  for (const garbage of ['\x01\x02\r\n\r\n', `GET /v1/files HTTP/2.0\r\n${AUTH}\r\n`, 'GET /v1/files HTTP/1.1\r\nX: \0\r\n\r\n']) {
    const answer = await rawRequest(gateway.url, `GET /v1/files/1 HTTP/1.1\r\n${AUTH}\r\nGET /v1/files/2 HTTP/1.1\r\n${AUTH}\r\n${garbage}`)
    t.strictSame(answer.match(/HTTP\/1\.1 \d+/g), ['HTTP/1.1 200', 'HTTP/1.1 200', 'HTTP/1.1 400'])
    t.match(answer, /"code":"bad_framing"[^}]*\}\}$/)
  }
  t.strictSame(seen.map(({ line }) => line.slice(-1)), ['1', '2', '1', '2', '1', '2'])
})

t.test('framing: a request target in absolute form is routed by its path', async t => {
  const { seen, gateway } = await setUp(t)
  const answer = await rawRequest(
    gateway.url, `GET http://other.example/v1/files?a=1 HTTP/1.1\r\n${AUTH}Connection: close\r\n\r\n`,
  )
  t.match(answer, /^HTTP\/1\.1 200 /)
  t.equal(seen[0]?.line, 'GET /v1/files?a=1')
})

for (const target of ['http://[/',
  'http://', 'http://a:99999/', 'ftp://a/v1/x', '*', 'v1/files', '/v1/%2e%2e/x',
  '/v1/a/../b', '/v1/a\\..\\b', '/v1/%', '/v1/%zz', '/v1/%00', '/v1/x#y', '/v1/%c3%28', '/v1/a%5c..%5cb']) {
  t.test(`hazard: the request target ${target} gets 400 or 404, ` +
    'and nothing goes upstream', async t => {
    const { seen, gateway } = await setUp(t)
    const answer = await rawRequest(gateway.url, `GET ${target} HTTP/1.1\r\n${AUTH}Connection: close\r\n\r\n`)
    t.match(answer, /^HTTP\/1\.1 40[04] /)
    t.equal(seen.length, 0)
    const after = await fetch(`${gateway.url}/api/status`)
    t.equal(after.status, 200, 'the gateway still serves')
  })
}

t.test('hazard: //v1//files is routed and forwarded as /v1/files', async t => {
  const { seen, gateway } = await setUp(t)
  await rawRequest(gateway.url, `GET //v1//files HTTP/1.1\r\n${AUTH}Connection: close\r\n\r\n`)
  t.equal(seen[0]?.line, 'GET /v1/files')
})

t.test('CONNECT and TRACE are refused', async t => {
  const { seen, gateway } = await setUp(t)
  t.match(await rawRequest(gateway.url, `CONNECT a:443 HTTP/1.1\r\n${AUTH}\r\n`), /^HTTP\/1\.1 40[05] /)
  const trace = await rawRequest(gateway.url, `TRACE /v1/files HTTP/1.1\r\n${AUTH}Connection: close\r\n\r\n`)
  t.match(trace, /^HTTP\/1\.1 405 /)
  t.match(trace, /allow: GET/i)
  t.equal(seen.length, 0)
})

t.test('a request without Host is refused', async t => {
  const { gateway } = await setUp(t)
  t.match(await rawRequest(gateway.url, `GET /v1/files HTTP/1.1\r\nAuthorization: Bearer ${KEY}\r\n` +
    'Connection: close\r\n\r\n'), /^HTTP\/1\.1 400 /)
})

t.test('a request with two Host headers is refused', async t => {
  const { seen, gateway } = await setUp(t)
  for (const version of ['1.0', '1.1']) {
    t.match(await rawRequest(gateway.url, `GET /v1/files HTTP/${version}\r\n${AUTH}hOST: gateway\r\n` +
      'Connection: close\r\n\r\n'), /^HTTP\/1\.1 400 [^]*"code":"bad_header"/)
  }
  t.equal(seen.length, 0)
})

t.test('an unsupported Expect header gets 417', async t => {
  const { seen, gateway } = await setUp(t)
  t.match(await rawRequest(gateway.url, `GET /v1/files HTTP/1.1\r\n${AUTH}Expect: 200-ok\r\n` +
    'Connection: close\r\n\r\n'), /^HTTP\/1\.1 417 [^]*"code":"expectation_failed"/)
  t.equal(seen.length, 0)
})
