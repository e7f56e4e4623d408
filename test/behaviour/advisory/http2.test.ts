import { once } from 'node:events'
import t from 'tap'
import type { Test } from 'tap'
import { certificateFiles } from '../../support/certificate.ts'
import * as frames from '../../support/frames.ts'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import { H2Request, openSession, startHttp2Upstream } from '../../support/http2.ts'
import { startUpstream } from '../../support/upstream.ts'
import { connect, proxyTo, startWireUpstream } from '../../support/wire.ts'
import type { Wire } from '../../support/wire.ts'

const FIELDS: [string, string][] = [
  [':method', 'GET'], [':scheme', 'http'], [':path', '/v1/files'], [':authority', 'x'], ['x-api-key', KEY],
]

async function setUp(t: Test) {
  let requests = 0
  const upstream = await startUpstream(t, (_req, res) => {
    requests++
    res.end('{}')
  })
  const gateway = await startTestGateway(t, proxyTo(upstream.url))
  return { gateway, requests: () => requests }
}

/** Resolves when more can be written, or when the connection has closed. */
async function drained({ socket, ended }: Wire): Promise<void> {
  await Promise.race([once(socket, 'drain').catch(() => {}), once(socket, 'close').catch(() => {}), ended])
}

async function serves(t: Test, url: string): Promise<void> {
  const session = await openSession(t, url)
  t.equal((await new H2Request(session, 'GET', '/v1/files').head)[':status'], 200, 'the gateway still serves')
}

t.test('CVE-2024-27983 and similar: a CONTINUATION flood ends the ' +
  'connection of the attacker, and holds no memory', async t => {
  const { gateway, requests } = await setUp(t)
  const client = await connect(t, gateway.url)
  client.socket.write(Buffer.concat([
    frames.opening(), frames.frame(frames.HEADERS, frames.END_STREAM, 1, frames.headerBlock(FIELDS)),
  ]))
  const flood = frames.frame(frames.CONTINUATION, 0, 1, frames.headerBlock([['x-flood', 'x'.repeat(8_000)]]))
  let sent = 0
  while (!client.socket.destroyed && sent < 2_000) {
    sent++
    if (!client.socket.write(flood)) await drained(client)
    else await new Promise(setImmediate)
  }
  await client.ended
  t.ok(sent < 2_000, `ended after ${sent} frames`)
  t.equal(requests(), 0)
  await serves(t, gateway.url)
})

t.test('CVE-2023-44487: a client that resets thousands of streams is disconnected with GOAWAY', async t => {
  let open = 0
  let most = 0
  const upstream = await startWireUpstream(t, async wire => {
    most = Math.max(most, ++open)
    await wire.ended
    open--
  })
  const gateway = await startTestGateway(t, proxyTo(upstream.url))
  const client = await connect(t, gateway.url)
  client.socket.write(frames.opening())
  for (let i = 0; i < 4_000 && !client.socket.destroyed; i++) {
    const stream = 2 * i + 1
    const both = Buffer.concat([frames.request(stream, FIELDS, true), frames.reset(stream)])
    if (!client.socket.write(both)) await drained(client)
  }
  await client.ended
  const ended = frames.parseFrames(Buffer.from(client.text, 'latin1')).some(
    each => each.type === frames.GOAWAY,
  )
  t.ok(ended, 'GOAWAY')
  t.ok(most < 1_500, `${most} upstream connections at most`)
  const status = await fetch(`${gateway.url}/api/status`)
  t.equal(status.status, 200)
})

t.test('600 requests at once on one session are all served', async t => {
  const { gateway } = await setUp(t)
  const session = await openSession(t, gateway.url)
  const requests = Array.from({ length: 600 }, () => new H2Request(session, 'GET', '/v1/files'))
  for (const request of requests) {
    t.equal((await request.head)[':status'], 200)
  }
})

t.test('headers above the size limit are refused, and 500 small headers are accepted', async t => {
  const { gateway, requests } = await setUp(t)
  const many = Object.fromEntries(Array.from({ length: 500 }, (_each, i) => [`x-${i}`, 'v']))
  const session = await openSession(t, gateway.url)
  t.equal((await new H2Request(session, 'GET', '/v1/files', many).head)[':status'], 200)
  t.equal(requests(), 1)
  const client = await connect(t, gateway.url)
  const large: [string, string][] = Array.from({ length: 10 }, (_each, i) => [`x-${i}`, 'v'.repeat(9_000)])
  const block = frames.headerBlock([...FIELDS, ...large])
  const parts = [frames.frame(frames.HEADERS, frames.END_STREAM, 1, block.subarray(0, 16_000))]
  for (let at = 16_000; at < block.length; at += 16_000) {
    const last = at + 16_000 >= block.length
    parts.push(
      frames.frame(frames.CONTINUATION, last ? frames.END_HEADERS : 0, 1, block.subarray(at, at + 16_000)),
    )
  }
  client.socket.write(Buffer.concat([frames.opening(), ...parts]))
  client.socket.end()
  await client.ended
  t.equal(requests(), 1, 'the large headers do not go upstream')
  await serves(t, gateway.url)
})

for (const [what, bytes] of [
  ['SETTINGS', frames.frame(frames.SETTINGS, 0, 0)],
  ['PING', frames.frame(frames.PING, 0, 0, Buffer.alloc(8))],
  ['empty DATA', frames.frame(frames.DATA, 0, 1)],
  ['WINDOW_UPDATE', frames.frame(frames.WINDOW_UPDATE, 0, 0, Buffer.from([0, 0, 0, 1]))],
] as const) {
  t.test(`other clients are served during a flood of ${what} frames from a client that does not read`, async t => {
    const { gateway } = await setUp(t)
    const client = await connect(t, gateway.url)
    client.socket.pause()
    client.socket.write(Buffer.concat([frames.opening(), frames.request(1, FIELDS, false)]))
    const flood = Buffer.concat(Array.from({ length: 500 }, () => bytes))
    for (let i = 0; i < 100 && !client.socket.destroyed && client.socket.writableLength < 1_000_000; i++) {
      client.socket.write(flood)
      await new Promise(setImmediate)
    }
    await serves(t, gateway.url)
    client.socket.destroy()
  })
}

const REFUSED: [string, [string, string][]][] = [
  ['a Connection header', [...FIELDS, ['connection', 'close']]],
  ['Transfer-Encoding', [...FIELDS, ['transfer-encoding', 'chunked']]],
  ['a header in upper case', [...FIELDS, ['X-Upper', '1']]],
  ['a request without a path', FIELDS.filter(([name]) => name !== ':path')],
  ['a request with two paths', [...FIELDS.slice(0, 4), [':path', '/v1/other'], ...FIELDS.slice(4)]],
  ['a pseudo-header after other headers', [...FIELDS, [':authority', 'y']]],
  ['a request line in the method', [[':method', 'GET /v1/hidden HTTP/1.1\r\nX: '], ...FIELDS.slice(1)]],
  ['a request line in the path', FIELDS.map(([name, value]) => [
    name, name === ':path' ? '/v1/files HTTP/1.1\r\nX: 1' : value,
  ])],
  ['a wrong content-length', [...FIELDS, ['content-length', '5']]],
]
for (const [what, fields] of REFUSED) {
  t.test(`HTTP/2 to HTTP/1.1: ${what} is refused, and nothing goes upstream`, async t => {
    const { gateway, requests } = await setUp(t)
    const client = await connect(t, gateway.url)
    client.socket.write(Buffer.concat([frames.opening(), frames.request(1, fields, true)]))
    client.socket.write(frames.frame(frames.PING, 0, 0, Buffer.from('all done')))
    await Promise.race([client.until(/all done/), client.ended])
    const answers = frames.parseFrames(Buffer.from(client.text, 'latin1'))
    t.ok(answers.some(({ type, payload }) => type === frames.RST_STREAM || type === frames.GOAWAY
      || (type === frames.HEADERS && payload.length > 0)))
    t.equal(requests(), 0)
    await serves(t, gateway.url)
  })
}

for (const [what, field] of [
  ['a line break in a value', ['x-a', 'b\r\nx-injected: 1']], ['a NUL in a value', ['x-a', 'b\0']],
  ['a space in a name', ['x a', 'b']], ['a colon in a name', ['x:a', 'b']],
] as const) {
  // nghttp2 drops such a header, and the request continues without the header.
  t.test(`HTTP/2 to HTTP/1.1: ${what} never goes upstream`, async t => {
    const upstream = await startWireUpstream(t, async wire => {
      const { head } = await wire.request()
      t.notMatch(head, /injected|x-a|x a|x:a|\0/)
      wire.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}')
      await wire.ended
    })
    const gateway = await startTestGateway(t, proxyTo(upstream.url))
    const client = await connect(t, gateway.url)
    client.socket.write(Buffer.concat([frames.opening(), frames.request(1, [...FIELDS, field], true)]))
    await client.until(/\{\}/)
  })
}

t.test('after the upstream sends GOAWAY, running streams ' +
  'finish, and new requests use a new session', async t => {
  const certificate = certificateFiles(t)
  let sessions = 0
  const upstream = await startHttp2Upstream(t, certificate, stream => {
    stream.respond({ ':status': 200 })
    stream.end('{}')
    stream.session?.goaway(0)
  })
  const gateway = await startTestGateway(t, `
upstreams: { up: { url: "${upstream.url}", ca: "${certificate.certFile}" } }
routes: [{ to: up }]
`)
  for (let i = 0; i < 5; i++) {
    const answer = await fetch(`${gateway.url}/v1/files`, { headers: { 'x-api-key': KEY } })
    t.equal(answer.status, 200)
    t.equal(await answer.text(), '{}')
  }
  sessions = upstream.sessions.size
  t.ok(sessions <= 5)
})

t.test('CONNECT and unsupported Expect headers get an error of the gateway, not of Node.js', async t => {
  const { gateway, requests } = await setUp(t)
  const session = await openSession(t, gateway.url)
  const asked = [
    [400, () => session.request({ ':method': 'CONNECT', ':authority': 'a:443' })],
    [417, () => new H2Request(session, 'GET', '/v1/files', { expect: 'the-impossible' }).stream],
  ] as const
  for (const [status, ask] of asked) {
    const stream = ask()
    let text = ''
    stream.on('data', (chunk: Buffer) => {
      text += chunk
    })
    const [head] = (await once(stream, 'response')) as [NodeJS.Dict<string>]
    const closed = once(stream, 'close')
    stream.end()
    await closed
    t.equal(head[':status'], status)
    t.match(head['x-gateway-request-id'], /^[\da-f-]{36}$/)
    t.match(text, /^\{"error":\{.*"type":"invalid_request_error"/)
  }
  t.equal(requests(), 0)
})

for (const [what, path, isWhole] of [
  ['to a complete request', '/v1/models', true], ['with an error', '/nowhere', true],
  ['to an incomplete request', '/nowhere', false],
] as const) {
  t.test(`a response of the gateway ${what} ends the stream`, async t => {
    const { gateway } = await setUp(t)
    const client = await connect(t, gateway.url)
    const fields = FIELDS.map(([name, value]): [string, string] => [name, name === ':path' ? path : value])
    client.socket.write(Buffer.concat([frames.opening(), frames.request(1, fields, isWhole)]))
    let got: readonly frames.Frame[] = []
    const ends = ({ type, flags }: frames.Frame) => (
      type === frames.RST_STREAM || (isWhole && type === frames.DATA && (flags & frames.END_STREAM) !== 0)
    )
    while (!got.some(ends)) {
      await once(client.socket, 'data')
      got = frames.parseFrames(Buffer.from(client.text, 'latin1')).filter(({ stream }) => stream === 1)
    }
    const end = got.findIndex(({ flags }) => (flags & frames.END_STREAM) !== 0)
    t.not(end, -1)
    // A reset after END_STREAM means that the rest of the request is not needed (RFC 9113 section 8.1).
    t.strictSame(got.slice(end + 1).map(({ type }) => type), isWhole ? [] : [frames.RST_STREAM])
  })
}

t.test('Expect: 100-Continue with a capital letter gets 100 Continue', async t => {
  const { gateway } = await setUp(t)
  const session = await openSession(t, gateway.url)
  const request = new H2Request(session, 'POST', '/v1/files', { expect: '100-Continue' }, false)
  await once(request.stream, 'continue')
  request.stream.end('hi')
  t.equal((await request.head)[':status'], 200)
})
