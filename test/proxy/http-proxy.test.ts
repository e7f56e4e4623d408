import type { ServerOptions } from 'http-proxy-3'
import t from 'tap'
import type { Test } from 'tap'
import { systemClock } from '../../src/base/clock.ts'
import type { GatewayError } from '../../src/base/errors.ts'
import { Attempt } from '../../src/proxy/attempt.ts'
import { Deadlines } from '../../src/proxy/deadlines.ts'
import { createProxy } from '../../src/proxy/http-proxy.ts'
import type { ProxyServer } from '../../src/proxy/http-proxy.ts'
import { ReadTurns } from '../../src/proxy/read-turns.ts'
import { createTransport } from '../../src/proxy/transport.ts'
import type { OutgoingRequest } from '../../src/proxy/transport.ts'
import { startWireUpstream } from '../support/wire.ts'

const RESPONSE = 'HTTP/1.1 200 OK\r\nX-Odd: \xe9\r\nX-Twice: 1\r\nX-Twice: 2\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n' +
  'Content-Length: 4\r\n\r\nbody'

/** Sends one request through http-proxy-3 to an upstream that notes its bytes. */
async function send(
  t: Test, proxy: ProxyServer, request: Partial<OutgoingRequest> = {}, { path = '', response = RESPONSE } = {},
) {
  let received = ''
  const upstream = await startWireUpstream(t, async wire => {
    received = await wire.until(/\r\n\r\n/)
    wire.send(response)
  })
  const transport = createTransport({ origin: upstream.url, socketPath: null, connectTimeout: 5_000, ca: null })
  t.teardown(() => transport.destroy())
  const limits = { connect: 5_000, firstByte: 5_000, idle: 5_000, total: 5_000 }
  const deadlines = new Deadlines(systemClock, limits, systemClock.monotonic(), error => attempt.abort(error))
  t.teardown(() => deadlines.stop())
  const over = Promise.withResolvers<GatewayError | null>()
  let status = 0
  let headers: readonly string[] = []
  let body = ''
  const attempt = new Attempt({
    transport,
    upstreamUrl: new URL(upstream.url + path),
    request: { method: 'GET', path: '/x', headers: ['X-A', '1'], body: null, ...request },
    clientResponse: null,
    deadlines,
    readTurns: new ReadTurns(),
    decompresses: false,
    sinkFor: () => ({
      head: (received, lines) => {
        status = received
        headers = lines
        return null
      },
      data: chunk => {
        body += chunk
        return true
      },
      end: () => over.resolve(null),
      broken: over.resolve,
    }),
  })
  const failed = await attempt.run(proxy)
  const error = failed ?? await over.promise
  return { lines: received.split('\r\n'), url: upstream.url, error, status, headers, body }
}

t.test('what nobody changes arrives as it was sent: order, spelling, lines and bytes of headers', async t => {
  const headers = ['X-Zero', '\xff', 'X-Twice', '1', 'x-TWICE', '2', 'User-Agent', 'a', 'user-agent', 'b', 'X-Empty', '']
  const { lines, url, error, status, headers: back, body } = await send(t, createProxy(), { headers })
  t.equal(lines[0], 'GET /x HTTP/1.1')
  t.ok(lines.includes(`host: ${new URL(url).host}`))
  const sent = lines.slice(lines.indexOf('X-Zero: \xff'))
  t.strictSame(sent, ['X-Zero: \xff', 'X-Twice: 1', 'x-TWICE: 2', 'User-Agent: a', 'user-agent: b', 'X-Empty: ', '', ''])
  t.equal(error, null)
  t.equal(status, 200)
  t.strictSame(back, [
    'X-Odd', '\xe9', 'X-Twice', '1', 'X-Twice', '2', 'Set-Cookie', 'a=1', 'Set-Cookie', 'b=2', 'Content-Length', '4',
  ])
  t.equal(body, 'body')
})

t.test('http-proxy-3 puts the path behind that of the target', async t => {
  for (const [target, path, due] of [
    ['/base', '/v1/x?a=1&b=%20', '/base/v1/x?a=1&b=%20'],
    ['/base/', "/it's//%2e%2e/x", "/base/it's//%2e%2e/x"],
    ['', '//x', '//x'],
  ] as const) {
    const { lines } = await send(t, createProxy(), { path }, { path: target })
    t.equal(lines[0], `GET ${due} HTTP/1.1`)
  }
})

t.test('its options reach the upstream', async t => {
  const options: ServerOptions = { headers: { 'X-Added': 'by an option', 'x-a': '2' }, method: 'PUT' }
  const { lines } = await send(t, createProxy(options))
  t.equal(lines[0], 'PUT /x HTTP/1.1')
  t.ok(lines.includes('x-added: by an option'))
  t.notOk(lines.includes('X-A: 1'), 'it was overwritten')
  const { lines: others } = await send(t, createProxy({ auth: 'user:word', ignorePath: true }), {
    headers: ['Authorization', 'Bearer x'],
  })
  t.equal(others[0], 'GET / HTTP/1.1')
  t.strictSame(others.filter(line => /^auth/i.test(line)), [`authorization: Basic ${btoa('user:word')}`])
})

t.test('its start event sees the request, and changes it', async t => {
  const proxy = createProxy()
  proxy.on('start', (req, _res, target) => {
    t.match(req, { method: 'GET', url: '/x', headers: { 'x-a': '1' } })
    t.equal((target as URL).pathname, '/base')
    req.headers['x-started'] = 'yes'
    delete req.headers['x-a']
  })
  const { lines } = await send(t, proxy, {}, { path: '/base' })
  t.ok(lines.includes('x-started: yes'))
  t.notOk(lines.some(line => /^x-a:/i.test(line)))
})

t.test('its callbacks change the request, and the response', async t => {
  const seen: unknown[] = []
  const proxy = createProxy({
    fetchOptions: {
      onBeforeRequest: async init => {
        await Promise.resolve()
        ;(init.headers as Headers).set('x-before', '1')
      },
      onAfterResponse: async response => {
        await Promise.resolve()
        t.type(response, Response)
        response.headers.set('x-after', '1')
        response.headers.delete('x-odd')
        response.headers.append('set-cookie', 'c=3')
      },
    },
  })
  proxy.on('proxyRes', ({ statusCode, headers }) => seen.push(statusCode, headers['x-twice']))
  const { lines, headers, body } = await send(t, proxy)
  t.ok(lines.includes('x-before: 1'))
  t.ok(lines.includes('X-A: 1'))
  t.strictSame(headers, [
    'X-Twice', '1', 'X-Twice', '2', 'Content-Length', '4',
    'set-cookie', 'a=1', 'set-cookie', 'b=2', 'set-cookie', 'c=3', 'x-after', '1',
  ])
  t.equal(body, 'body', 'it waits for its head')
  t.strictSame(seen, [200, '1, 2'])
})

t.test('a callback that throws fails the attempt, and the upstream is torn down', async t => {
  const fault = () => {
    throw new Error('a fault')
  }
  for (const fetchOptions of [{ onBeforeRequest: fault }, { onAfterResponse: fault }]) {
    const { error, status } = await send(t, createProxy({ fetchOptions }))
    t.match(error, { code: 'internal', cause: { message: 'a fault' } })
    t.equal(status, 0)
  }
})

t.test('a status that is none of HTTP is no response', async t => {
  const { error } = await send(t, createProxy(), {}, { response: 'HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n' })
  t.match(error, { code: 'upstream_invalid' })
})

t.test('a body goes up as it is, and none as none', async t => {
  const body = Buffer.from('hi')
  const { lines } = await send(t, createProxy(), { method: 'POST', headers: ['content-length', '2'], body })
  t.strictSame(lines.filter(line => /^(content-length|transfer-encoding|connection):/i.test(line)), [
    'connection: keep-alive', 'content-length: 2',
  ])
  const { lines: empty } = await send(t, createProxy(), { method: 'DELETE', headers: [] })
  t.notOk(empty.some(line => /^(content-length|transfer-encoding):/i.test(line)))
})
