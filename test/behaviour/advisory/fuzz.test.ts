import { once } from 'node:events'
import * as net from 'node:net'
import fc from 'fast-check'
import t from 'tap'
import * as frames from '../../support/frames.ts'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import { openSession, postH2 } from '../../support/http2.ts'
import { bodyOf, startRawUpstream, startUpstream } from '../../support/upstream.ts'

/*
 * Whatever bytes arrive, the process serves the next request, and sends the upstream
 * only well-formed requests, each with one length.
 */

const upstream = await startUpstream(t, async (req, res) => {
  await bodyOf(req)
  if (req.headers['transfer-encoding'] !== undefined) t.fail('transfer-encoding was sent upstream')
  if (!/^\/v1[/a-z]/.test(req.url ?? '')) t.fail(`the path ${req.url} was sent upstream`)
  if (JSON.stringify(req.rawHeaders).includes(KEY)) t.fail('the key was sent upstream')
  res.end('{}')
})
const gateway = await startTestGateway(t, `
server: { listen: 127.0.0.1:0, body_limit: 64kb }
upstreams: { up: { url: "${upstream.url}", websocket: true } }
routes: [{ path: /v1/*, to: up }]
`)
const { hostname, port } = new URL(gateway.url)

/** Sends bytes in pieces, ends, and waits for the end of the connection. */
async function feed(...pieces: Buffer[]): Promise<string> {
  const socket = net.connect(Number(port), hostname)
  let answer = ''
  socket.on('data', (chunk: Buffer) => (answer += chunk.toString('latin1'))).on('error', () => {})
  await once(socket, 'connect')
  for (const piece of pieces) {
    if (socket.destroyed) break
    socket.write(piece)
    await new Promise(setImmediate)
  }
  socket.end()
  if (!socket.destroyed) await once(socket, 'close').catch(() => {})
  return answer
}

async function stillServes(url = gateway.url): Promise<void> {
  const status = await fetch(`${url}/api/status`)
  if (status.status !== 200) throw new Error(`status ${status.status}`)
  await status.arrayBuffer()
}

const latin1 = fc.uint8Array({ maxLength: 300 }).map(bytes => Buffer.from(bytes).toString('latin1'))
const token = fc.stringMatching(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,40}$/)
const common = fc.constantFrom(
  '', 'chunked', 'close', '0', '5', '100-continue', 'gzip', 'websocket', 'x'.repeat(5_000),
)
const headerName = fc.constantFrom(
  'Content-Length', 'Transfer-Encoding', 'Connection',
  'Upgrade', 'Expect', 'Content-Encoding', 'Content-Type', 'TE',
  'Trailer', 'Host', 'X-Forwarded-For', 'Sec-WebSocket-Key',
  'Sec-WebSocket-Version', 'HTTP2-Settings', 'Cookie', 'Via',
)
// Most of the bytes are well-formed, so that many requests are parsed far.
const value = fc.oneof(
  { weight: 1, arbitrary: latin1 }, { weight: 4, arbitrary: common }, { weight: 8, arbitrary: token },
)
const name = fc.oneof({ weight: 3, arbitrary: token }, { weight: 1, arbitrary: headerName })
const verbs = fc.constantFrom('GET', 'POST', 'PUT', 'DELETE', 'HEAD', 'PATCH')
const method = fc.oneof(
  { weight: 8, arbitrary: verbs },
  { weight: 2, arbitrary: fc.constantFrom('OPTIONS', 'TRACE', 'CONNECT', 'PRI') },
  { weight: 1, arbitrary: token },
)
const known = fc.constantFrom(
  '/v1/chat/completions', '/v1/files', '/v1/files/x?a=1', '/v1/messages', '/v1/models',
  '/v1beta/models/m:generateContent',
  '/api/status', '*', '/v1/realtime', '//v1//files',
)
const path = fc.oneof(
  { weight: 4, arbitrary: known },
  { weight: 1, arbitrary: latin1.map(text => `/v1/${text}`) },
  { weight: 1, arbitrary: fc.webPath().map(text => `/v1${text}`) },
  { weight: 1, arbitrary: fc.stringMatching(/^\/v1\/[a-z%0-9./\\?#&=;:@]{0,60}$/) },
)
const auth = `Host: x\r\nAuthorization: Bearer ${KEY}\r\n`
const JSON_BODY = '{"model":"m","messages":[]}'
const JSON_HEAD = `Content-Type: application/json\r\nContent-Length: ${JSON_BODY.length}\r\n`
const offer = fc.constantFrom(
  '', '', '', 'Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n',
)
const request = fc.tuple(
  method, path, fc.array(fc.tuple(name, value), { maxLength: 12 }), fc.option(latin1), offer,
).map(
  ([verb, target, headers, body, upgrade]) => {
    const lines = headers.map(([key, text]) => `${key}: ${text}\r\n`).join('')
    return `${verb} ${target} HTTP/1.1\r\n${auth}${upgrade}${body === null ? JSON_HEAD : ''}${lines}\r\n` +
      `${body ?? JSON_BODY}`
  },
)

t.test('the gateway still serves after random bytes', async () => {
  await fc.assert(fc.asyncProperty(fc.array(
    fc.uint8Array({ maxLength: 400 }), { maxLength: 4 },
  ), async pieces => {
    await feed(...pieces.map(piece => Buffer.from(piece)))
    await stillServes()
  }), { numRuns: 100 })
})

t.test('the gateway still serves after almost valid requests that are cut at random places', async () => {
  await fc.assert(fc.asyncProperty(fc.array(
    request, { minLength: 1, maxLength: 3 },
  ), fc.nat(), async (requests, where) => {
    const bytes = Buffer.from(requests.join(''), 'latin1')
    const at = where % (bytes.length + 1)
    await feed(bytes.subarray(0, at), bytes.subarray(at))
    await stillServes()
  }), { numRuns: 250 })
})

t.test('the gateway still serves after random request targets', async () => {
  const target = fc.oneof(path, latin1, fc.webUrl(), fc.webUrl().map(url => url.replace('http', 'h')))
  await fc.assert(fc.asyncProperty(target, async text => {
    await feed(Buffer.from(`GET ${text} HTTP/1.1\r\n${auth}Connection: close\r\n\r\n`, 'latin1'))
    await stillServes()
  }), { numRuns: 200 })
})

t.test('the gateway still serves after up to 500 random headers', async () => {
  await fc.assert(fc.asyncProperty(fc.array(
    fc.tuple(name, latin1), { minLength: 1, maxLength: 500 },
  ), async headers => {
    const lines =
      headers.map(([key, text]) => `${key}: ${text.replaceAll(/[^\t\x20-\x7e\x80-\xff]/g, '')}\r\n`).join('')
    await feed(Buffer.from(`POST /v1/files HTTP/1.1\r\n${auth}${lines}\r\n`, 'latin1'))
    await stillServes()
  }), { numRuns: 60 })
})

t.test('the gateway still serves after random headers over HTTP/2', async () => {
  const pseudo = fc.constantFrom(':path', ':method', ':authority', ':status', ':protocol', '')
  const h2name = fc.oneof(name.map(text => text.toLowerCase()), latin1, pseudo)
  await fc.assert(fc.asyncProperty(
    method, path, fc.array(fc.tuple(h2name, value), { maxLength: 12 }), fc.boolean(), latin1,
    async (verb, target, fields, end, body) => {
      await feed(frames.opening(), Buffer.concat([
        frames.request(1, [
          [':method', verb], [':scheme', 'http'], [':path', target],
          [':authority', 'x'], ['x-api-key', KEY], ...fields,
        ], end),
        ...end ? [] : [frames.frame(frames.DATA, frames.END_STREAM, 1, Buffer.from(body, 'latin1'))],
      ]))
      await stillServes()
    },
  ), { numRuns: 200 })
})

t.test('the gateway still serves after random HTTP/2 frames', async () => {
  const anyFrame = fc.tuple(
    fc.oneof(fc.nat(9), fc.nat(255)),
    fc.nat(255),
    fc.oneof(fc.nat(5), fc.nat(0x7fffffff)),
    fc.uint8Array({ maxLength: 200 }),
  ).map(([type, flags, stream, payload]) => frames.frame(type, flags, stream, Buffer.from(payload)))
  const whole = frames.request(
    1, [[':method', 'POST'], [':scheme', 'http'], [':path', '/v1/files'], ['x-api-key', KEY]], false,
  )
  await fc.assert(fc.asyncProperty(fc.array(
    fc.oneof(anyFrame, fc.constant(whole)), { maxLength: 12 },
  ), async list => {
    await feed(frames.opening(), ...list)
    await stillServes()
  }), { numRuns: 150 })
})

t.test('the gateway still serves after random responses of an upstream', async t => {
  let answer = Buffer.alloc(0)
  const hostile = await startRawUpstream(t, socket => {
    socket.once('data', () => socket.end(answer))
  })
  const behind = await startTestGateway(
    t, `upstreams: { up: { url: "${hostile.url}" } }\nroutes: [{ to: up }]\n`,
  )
  const session = await openSession(t, behind.url)
  const line = fc.tuple(
    fc.oneof(name, headerName),
    fc.oneof(value, fc.constantFrom('text/event-stream', 'application/json', 'chunked', '3', 'gzip')),
  )
  const chunked = fc.array(latin1, { maxLength: 4 }).map(
    texts => `${texts.map(text => `${text.length.toString(16)}\r\n${text}\r\n`).join('')}0\r\n\r\n`,
  )
  const statuses = fc.constantFrom('200', '204', '304', '429', '500', '101', '103', '999')
  const whole = fc.tuple(
    fc.oneof({ weight: 8, arbitrary: statuses }, { weight: 1, arbitrary: latin1 }),
    fc.array(line, { maxLength: 8 }),
    fc.oneof(latin1, chunked, fc.constant('data: {"choices":[]}\n\ndata: [DONE]\n\n')),
  ).map(([status, lines, body]) =>
    `HTTP/1.1 ${status} X\r\n${lines.map(([key, text]) => `${key}: ${text}\r\n`).join('')}\r\n${body}`)
  await fc.assert(fc.asyncProperty(fc.oneof(whole, latin1), fc.boolean(), async (text, stream) => {
    answer = Buffer.from(text, 'latin1')
    const request = postH2(session, '/v1/chat/completions', { model: 'm', stream, messages: [] })
    const client = fetch(`${behind.url}/v1/messages`, {
      method: 'POST', body: JSON.stringify({ model: 'm', stream }),
      headers: { 'x-api-key': KEY, 'content-type': 'application/json' },
    })
    await client.then(got => got.arrayBuffer()).catch(() => {})
    await request.closed
    await stillServes(behind.url)
  }), { numRuns: 150 })
})

// Ends the test file, because the shared gateway keeps the process alive.
t.end()
