import t from 'tap'
import type { Test } from 'tap'
import { systemClock } from '../../../src/base/clock.ts'
import { GatewayError } from '../../../src/base/errors.ts'
import { UpstreamCall } from '../../../src/proxy/upstream/upstream-call.ts'
import { Deadlines } from '../../../src/proxy/http/deadlines.ts'
import { createProxy } from '../../../src/proxy/upstream/http-proxy.ts'
import type { Pass, ProxyServer } from '../../../src/proxy/upstream/http-proxy.ts'
import { ReadTurns } from '../../../src/proxy/http/read-turns.ts'
import { createTransport } from '../../../src/proxy/upstream/transport.ts'
import type { OutgoingRequest } from '../../../src/proxy/upstream/transport.ts'
import { addressOf, requestWith } from '../../support/upstream-address.ts'
import { startWireUpstream } from '../../support/wire.ts'

const RESPONSE = 'HTTP/1.1 200 OK\r\nX-Odd: \xe9\r\nX-Twice: 1\r\nX-Twice: 2\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n' +
  'Content-Length: 4\r\n\r\nbody'

/** Sends one request through http-proxy-3 to an upstream that notes its bytes. */
async function send(
  t: Test, proxy: ProxyServer, request: OutgoingRequest = requestWith(['X-A', '1']), { path = '', response = RESPONSE } = {},
) {
  let received = ''
  const upstream = await startWireUpstream(t, async wire => {
    received = await wire.until(/\r\n\r\n/)
    wire.send(response)
  })
  const transport = createTransport({ origin: upstream.url, socketPath: null, connectTimeout: 5_000, ca: null })
  t.teardown(() => transport.destroy())
  const limits = { connect: 5_000, firstByte: 5_000, idle: 5_000, total: 5_000 }
  const deadlines = new Deadlines(systemClock, limits, systemClock.monotonic(), error => call.abort(error))
  t.teardown(() => deadlines.stop())
  const over = Promise.withResolvers<GatewayError | null>()
  let status = 0
  let headers: readonly string[] = []
  let body = ''
  const call = new UpstreamCall({
    upstream: addressOf(upstream.url, transport, path),
    request,
    client: null,
    deadlines,
    readTurns: new ReadTurns(),
    decompresses: false,
    credential: null,
    sink: {
      head: head => {
        status = head.status
        headers = head.headers
        return null
      },
      data: chunk => {
        body += chunk
        return true
      },
      end: () => over.resolve(null),
      broken: over.resolve,
    },
  })
  const failed = await call.run(proxy)
  const error = failed ?? await over.promise
  return { lines: received.split('\r\n'), url: upstream.url, error, status, headers, body }
}

/** Headers that the gateway adds. */
const OWN = ['x-gateway-request-id: id-1', 'via: 1.1 model-gateway']

t.test('the order, spelling, lines and bytes of headers are forwarded unchanged', async t => {
  const headers = ['X-Zero', '\xff', 'X-Twice', '1', 'x-TWICE', '2', 'User-Agent', 'a', 'user-agent', 'b', 'X-Empty', '']
  const { lines, url, error, status, headers: back, body } = await send(t, createProxy(), requestWith(headers))
  t.equal(lines[0], 'GET /x HTTP/1.1')
  t.ok(lines.includes(`host: ${new URL(url).host}`))
  const sent = lines.slice(lines.indexOf('X-Zero: \xff'))
  t.strictSame(sent, ['X-Zero: \xff', 'X-Twice: 1', 'x-TWICE: 2', 'User-Agent: a', 'user-agent: b', 'X-Empty: ', ...OWN, '', ''])
  t.equal(error, null)
  t.equal(status, 200)
  t.strictSame(back, [
    'X-Odd', '\xe9', 'X-Twice', '1', 'X-Twice', '2', 'Set-Cookie', 'a=1', 'Set-Cookie', 'b=2', 'Content-Length', '4',
  ])
  t.equal(body, 'body')
})

t.test('the path of the request is appended to the path of the upstream URL', async t => {
  for (const [target, path, due] of [
    ['/base', '/v1/x?a=1&b=%20', '/base/v1/x?a=1&b=%20'],
    ['/base', "/it's//%2e%2e/x", "/base/it's//%2e%2e/x"],
    ['', '//x', '//x'],
  ] as const) {
    const { lines } = await send(t, createProxy(), requestWith([], { path }), { path: target })
    t.equal(lines[0], `GET ${due} HTTP/1.1`)
  }
})

t.test('an added pass can change the request', async t => {
  const proxy = createProxy()
  const own: Pass = (_req, _res, { target, call: { request } }) => {
    request.headers.push('x-added', `by a pass, for ${target.prefix}`)
    request.path += '?asked=1'
  }
  proxy.before('web', 'transport', own as never)
  const { lines } = await send(t, proxy, requestWith(['X-A', '1']), { path: '/base' })
  t.equal(lines[0], 'GET /base/x?asked=1 HTTP/1.1')
  t.ok(lines.includes('X-A: 1'))
  t.ok(lines.includes('x-added: by a pass, for /base'))
})

t.test('a pass that is added before the pass `address` gets the unchanged request of the client', async t => {
  const proxy = createProxy()
  const seen: unknown[] = []
  const own: Pass = (_req, _res, { call: { request: { path, source } } }) => void seen.push(path, source.raw)
  proxy.before('web', 'address', own as never)
  await send(t, proxy, requestWith(['X-A', '1', 'Cookie', 'a=1']), { path: '/base' })
  t.strictSame(seen, ['/x', ['X-A', '1', 'Cookie', 'a=1']])
})

t.test('a pass that throws fails the call, and nothing is sent', async t => {
  const proxy = createProxy()
  proxy.before('web', 'headers', () => {
    throw new Error('a fault')
  })
  const { error, status, lines } = await send(t, proxy)
  t.match(error, { code: 'internal', cause: { message: 'a fault' } })
  t.equal(status, 0)
  t.strictSame(lines, [''])
})

t.test('a pass can end the call', async t => {
  const proxy = createProxy()
  const own: Pass = (_req, _res, { call }) => {
    call.abort(new GatewayError('overloaded', 'not now'))
    return true
  }
  proxy.before('web', 'transport', own as never)
  const { error, lines } = await send(t, proxy)
  t.match(error, { code: 'overloaded' })
  t.strictSame(lines, [''])
})

t.test('a response with the status 999 is upstream_invalid', async t => {
  const { error } = await send(t, createProxy(), requestWith(), { response: 'HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n' })
  t.match(error, { code: 'upstream_invalid' })
})

t.test('a body is forwarded with its length, and a request without framing headers has no body', async t => {
  const body = Buffer.from('hi')
  const { lines } = await send(t, createProxy(), requestWith(['Content-Length', '7'], { method: 'POST', body }))
  t.strictSame(lines.filter(line => /^(content-length|transfer-encoding|connection):/i.test(line)), [
    'connection: keep-alive', 'content-length: 2',
  ])
  const { lines: empty } = await send(t, createProxy(), requestWith([], { method: 'DELETE' }))
  t.notOk(empty.some(line => /^(content-length|transfer-encoding):/i.test(line)))
})
