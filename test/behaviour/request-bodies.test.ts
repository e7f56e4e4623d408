import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import t from 'tap'
import { JsonScan } from '../../src/protocols/json/json-scan.ts'
import { KEY, startTestGateway } from '../support/gateway.ts'
import { H2Request, openSession } from '../support/http2.ts'
import { bodyOf, startUpstream } from '../support/upstream.ts'
import { chunk, connect } from '../support/wire.ts'

const MB = 1024 * 1024
const seen: { headers: NodeJS.Dict<string | string[]>; body: Buffer; url: string | undefined }[] = []
const upstream = await startUpstream(t, async (req, res) => {
  seen.push({ headers: req.headers, body: await bodyOf(req), url: req.url })
  res.setHeader('content-type', 'application/json').end('{}')
})
const gateway = await startTestGateway(t, `
server: { listen: 127.0.0.1:0, body_limit: 1mb }
upstreams: { up: { url: "${upstream.url}", usage: as_is } }
routes:
  - { model: fast, to: { upstream: up, model: gpt-4 } }
  - { to: up }
`)
const { url } = gateway

const TEXT = '{ "b":1.0, "n":1e5, "big":12345678901234567890123,\t"model" : "m", ' +
  '"a":"\\u00e9\\/", "dup":1, "dup":2 }\r\n'
const CODINGS = { gzip: gzipSync, deflate: deflateSync, br: brotliCompressSync, zstd: zstdCompressSync }

async function send(body: Uint8Array, headers: Record<string, string> = {}, path = '/v1/embeddings') {
  seen.length = 0
  const answer = await fetch(url + path, {
    method: 'POST', body: Buffer.from(body), headers: {
      'authorization': `Bearer ${KEY}`, 'content-type': 'application/json', ...headers,
    },
  })
  return { status: answer.status, text: await answer.text() }
}

t.test('a compressed body is scanned in steps of at most 64 kB', async t => {
  const read = t.capture(JsonScan.prototype, 'push', JsonScan.prototype.push)
  const text = JSON.stringify({ model: 'm', input: 'x'.repeat(900_000) })
  for (const [coding, compress] of Object.entries(CODINGS)) {
    t.equal((await send(compress(text), { 'content-encoding': coding })).status, 200)
    const steps = read().map(({ args: [chunk] }) => chunk.length)
    t.ok(steps.length > 1 && Math.max(...steps) <= 64 * 1024, `${coding}: ${steps.join(' ')}`)
  }
})

t.test('a body is forwarded byte for byte', async t => {
  t.equal((await send(Buffer.from(TEXT))).status, 200)
  t.equal(seen[0]?.body.toString(), TEXT)
  t.equal(seen[0]?.headers['content-length'], String(Buffer.byteLength(TEXT)))
})

t.test('renaming the model changes nothing else in the body', async t => {
  t.equal((await send(Buffer.from(TEXT.replace('"m"', '"fast"')))).status, 200)
  t.equal(seen[0]?.body.toString(), TEXT.replace('"m"', '"gpt-4"'))
  t.equal(seen[0]?.headers['content-length'], String(Buffer.byteLength(TEXT) + 4))
})

for (const [coding, compress] of Object.entries(CODINGS)) {
  t.test(`${coding}: a compressed body is read by the gateway, and forwarded unchanged`, async t => {
    const packed = compress(Buffer.from(TEXT))
    t.equal((await send(packed, { 'content-encoding': coding })).status, 200)
    t.ok(seen[0]?.body.equals(packed))
    t.equal(seen[0]?.headers['content-encoding'], coding)
  })

  t.test(`${coding}: a compressed body whose model is renamed is forwarded uncompressed`, async t => {
    const packed = compress(Buffer.from(TEXT.replace('"m"', '"fast"')))
    t.equal((await send(packed, { 'content-encoding': coding })).status, 200)
    t.equal(seen[0]?.body.toString(), TEXT.replace('"m"', '"gpt-4"'))
    t.equal(seen[0]?.headers['content-encoding'], undefined)
  })

  t.test(`${coding}: a decompression bomb gets 413, and nothing goes upstream`, async t => {
    const bomb = compress(Buffer.alloc(40 * MB, 0x20))
    t.ok(bomb.length < MB)
    const { status, text } = await send(bomb, { 'content-encoding': coding })
    t.equal(status, 413)
    t.match(text, /body_too_large/)
    t.equal(seen.length, 0)
  })

  t.test(`${coding}: an invalid model in a compressed body gets 400`, async t => {
    const { status } = await send(compress(Buffer.from('{"model":1}')), { 'content-encoding': coding })
    t.equal(status, 400)
    t.equal(seen.length, 0)
  })
}

t.test('a body that the gateway does not read is not decompressed', async t => {
  const { status } = await send(
    Buffer.from('no gzip'), { 'content-encoding': 'gzip', 'content-type': 'video/mp4' }, '/v1/files',
  )
  t.equal(status, 200)
  t.equal(seen[0]?.body.toString(), 'no gzip')
  t.equal(seen[0]?.headers['content-encoding'], 'gzip')
})

const HEAD = `POST /v1/embeddings HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${KEY}\r\n` +
  'Content-Type: application/json\r\n'

t.test('a declared length above the limit gets 413 before the body arrives', async t => {
  const client = await connect(t, url)
  client.send(`${HEAD}Content-Length: ${60 * MB}\r\n\r\n{`)
  t.match(await client.until(/\}\}$/), /^HTTP\/1\.1 413 [^]*connection: close[^]*body_too_large/i)
})

t.test('a chunked body gets 413 when it exceeds the limit', async t => {
  const client = await connect(t, url)
  client.send(`${HEAD}Transfer-Encoding: chunked\r\n\r\n${chunk(' '.repeat(MB))}`)
  client.send(chunk(' '))
  t.match(await client.until(/\}\}$/), /^HTTP\/1\.1 413 [^]*body_too_large/)
})

t.test('a body that is too large gets 413 instead of 100 Continue', async t => {
  const client = await connect(t, url)
  client.send(`${HEAD}Content-Length: ${60 * MB}\r\nExpect: 100-continue\r\n\r\n`)
  t.match(await client.until(/\}\}$/), /^HTTP\/1\.1 413 /)
})

for (const framing of ['Content-Length', 'Transfer-Encoding: chunked']) {
  t.test(`a client that sends 60 MB (${framing}) before it reads gets 413`, async t => {
    const client = await connect(t, url)
    // The client reads the response only after it has sent the whole request.
    client.socket.pause()
    const piece = Buffer.alloc(MB, 0x20)
    client.send(
      HEAD + (framing === 'Content-Length' ? `Content-Length: ${60 * MB}\r\n\r\n` : `${framing}\r\n\r\n`),
    )
    for (let i = 0; i < 60; i++) {
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      const written = (error?: Error | null) => (error ? reject(error) : resolve())
      if (framing === 'Content-Length') {
        client.socket.write(piece, written)
      } else {
        client.socket.write(`${MB.toString(16)}\r\n`)
        client.socket.write(piece)
        client.socket.write('\r\n', written)
      }
      await promise
    }
    client.socket.resume()
    t.match(await client.until(/\}\}$/), /^HTTP\/1\.1 413 /)
    t.equal(await client.ended, 'end', 'the connection ends without a reset')
  })
}

t.test('fetch with 60 MB gets 413', async t => {
  const { status, text } = await send(Buffer.alloc(60 * MB, 0x20))
  t.equal(status, 413)
  t.match(text, /body_too_large/)
})

t.test('fetch with an endless stream gets 413', async t => {
  const piece = new Uint8Array(64 * 1024).fill(0x20)
  const body = new ReadableStream<Uint8Array>({ pull: controller => controller.enqueue(piece) })
  const answer = await fetch(`${url}/v1/embeddings`, {
    method: 'POST', body, duplex: 'half',
    headers: { 'authorization': `Bearer ${KEY}`, 'content-type': 'application/json' },
  } as RequestInit)
  t.equal(answer.status, 413)
  t.match(await answer.text(), /body_too_large/)
})

t.test('HTTP/2: a body that is too large gets 413, and only the stream ends, not the session', async t => {
  const session = await openSession(t, url)
  const request = new H2Request(
    session, 'POST', '/v1/embeddings', { 'content-type': 'application/json' }, false,
  )
  const piece = Buffer.alloc(64 * 1024, 0x20)
  const more = () => {
    while (!request.stream.closed && !request.stream.destroyed) if (!request.stream.write(piece)) break
    request.stream.once('drain', more)
  }
  more()
  t.equal((await request.head)[':status'], 413)
  t.equal(await request.closed, 0)
  t.match(request.text, /body_too_large/)
  const next = new H2Request(session, 'GET', '/api/status')
  t.equal((await next.head)[':status'], 200, 'the session is still open')
})

t.test('a client with a refused key gets 401 before its body arrives', async t => {
  const client = await connect(t, url)
  client.send(`${HEAD.replace(KEY, 'wrong')}Content-Length: ${60 * MB}\r\n\r\n{`)
  t.match(await client.until(/\}\}$/), /^HTTP\/1\.1 401 [^]*connection: close/i)
  t.equal(await client.ended, 'end')
})

// Ends the test file, because the shared gateway keeps the process alive.
t.end()
