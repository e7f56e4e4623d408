import { setImmediate } from 'node:timers/promises'
import {
  brotliCompressSync, constants, createBrotliCompress, createGzip, createZstdCompress, gzipSync,
  zstdCompressSync,
} from 'node:zlib'
import t from 'tap'
import type { Test } from 'tap'
import { systemClock } from '../../../src/base/clock.ts'
import { GatewayError } from '../../../src/base/errors.ts'
import { UpstreamCall } from '../../../src/proxy/upstream/upstream-call.ts'
import type { ResponseHead } from '../../../src/proxy/upstream/response-head.ts'
import type { ResponseSink } from '../../../src/proxy/upstream/upstream-call.ts'
import { Deadlines } from '../../../src/proxy/http/deadlines.ts'
import { createProxy } from '../../../src/proxy/upstream/http-proxy.ts'
import { ReadTurns } from '../../../src/proxy/http/read-turns.ts'
import { createTransport } from '../../../src/proxy/upstream/transport.ts'
import type { ResponseHandler, Transport } from '../../../src/proxy/upstream/transport.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { addressOf, requestWith } from '../../support/upstream-address.ts'
import { chunk, startWireUpstream } from '../../support/wire.ts'
import type { Wire } from '../../support/wire.ts'

/** A sink that records its calls; `instead` replaces single methods. */
class NotingSink implements ResponseSink {
  readonly told: string[] = []
  readonly over = Promise.withResolvers<GatewayError | null>()
  readonly instead: Partial<ResponseSink>

  constructor(instead: Partial<ResponseSink> = {}) {
    this.instead = instead
  }

  head(head: ResponseHead): GatewayError | null {
    this.told.push(`head ${head.status}`)
    return this.instead.head?.(head) ?? null
  }

  data(piece: Buffer): boolean {
    this.told.push(`data ${piece}`)
    return this.instead.data?.(piece) ?? true
  }

  end(): void {
    this.told.push('end')
    this.instead.end?.()
    this.over.resolve(null)
  }

  broken(error: GatewayError): void {
    this.told.push(`broken ${error.code}`)
    this.over.resolve(error)
  }
}

async function setUp(t: Test, sink: NotingSink, play: (wire: Wire) => void | Promise<void>, unpacks = false) {
  const torn = Promise.withResolvers<void>()
  let requests = 0
  const upstream = await startWireUpstream(t, async wire => {
    if ((await wire.nextRequest()) === null) return
    requests++
    await play(wire)
    await wire.ended
    torn.resolve()
  })
  const transport = createTransport({
    origin: upstream.url, socketPath: null, connectTimeout: 5_000, ca: null,
  })
  t.teardown(() => transport.destroy())
  const limits = { connect: 5_000, firstByte: 5_000, idle: 5_000, total: 5_000 }
  const deadlines = new Deadlines(systemClock, limits, systemClock.monotonic(), error => call.abort(error))
  t.teardown(() => deadlines.stop())
  const call = new UpstreamCall({
    upstream: addressOf(upstream.url, transport),
    request: requestWith(['x-a', '1']),
    deadlines,
    readTurns: new ReadTurns(),
    client: null,
    decompresses: unpacks,
    credential: null, sink,
  })
  return { call, torn: torn.promise, requests: () => requests }
}

const ANSWER = `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${chunk('one')}`
const fault = () => {
  throw new TypeError('a fault of our own')
}

t.test('the sink gets head, data and end in this order', async t => {
  const sink = new NotingSink()
  const { call } = await setUp(t, sink, wire => wire.send(`${ANSWER}0\r\n\r\n`))
  t.equal(await call.run(createProxy()), null)
  t.equal(await sink.over.promise, null)
  t.strictSame(sink.told, ['head 200', 'data one', 'end'])
  call.abort(new GatewayError('client_gone', 'late'))
  call.resume()
  t.equal(sink.told.length, 3, 'nothing is reported after the end')
})

t.test('if the sink refuses a response, the attempt fails and the connection is closed', async t => {
  const sink = new NotingSink({ head: () => new GatewayError('upstream_rejected_key', 'x') })
  const { call, torn } = await setUp(t, sink, wire => wire.send(ANSWER))
  t.match(await call.run(createProxy()), { code: 'upstream_rejected_key' })
  await torn
  t.strictSame(sink.told, ['head 200'])
})

t.test('if the sink throws at the head, the error is internal and not an upstream error', async t => {
  const sink = new NotingSink({ head: fault })
  const { call, torn } = await setUp(t, sink, wire => wire.send(ANSWER))
  t.match(await call.run(createProxy()), { code: 'internal', cause: { message: 'a fault of our own' } })
  await torn
})

t.test('if the sink throws during a response, the response breaks and the connection is closed', async t => {
  const sink = new NotingSink({ data: fault })
  const { call, torn } = await setUp(t, sink, wire => wire.send(ANSWER))
  t.equal(await call.run(createProxy()), null)
  t.match(await sink.over.promise, { code: 'internal' })
  await torn
})

t.test('if the sink throws at the end of a response, the response breaks', async t => {
  const sink = new NotingSink({ end: fault })
  const { call } = await setUp(t, sink, wire => wire.send(`${ANSWER}0\r\n\r\n`))
  t.equal(await call.run(createProxy()), null)
  t.match(await sink.over.promise, { code: 'internal' })
})

const PACKED = 'HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n'
const WORDS = Array.from({ length: 200_000 }, (_, n) => n.toString(36)).join(' ')
const packed = gzipSync(WORDS).toString('latin1')

/** A sink that pauses the response after each piece, and resumes it one turn later. */
function slowSink(resume: () => void): NotingSink {
  return new NotingSink({
    data: () => {
      void setImmediate().then(resume)
      return false
    },
  })
}

t.test('a compressed response is decompressed as fast as the sink reads', async t => {
  const sink = slowSink(() => call.resume())
  const { call } = await setUp(t, sink, wire => wire.send(`${PACKED}${chunk(packed)}0\r\n\r\n`), true)
  t.equal(await call.run(createProxy()), null)
  t.equal(await sink.over.promise, null)
  const pieces = sink.told.slice(1, -1).map(told => told.slice('data '.length))
  t.ok(pieces.length > 10)
  t.equal(pieces.join(''), WORDS)
  t.equal(sink.told.at(-1), 'end')
})

t.test('each flushed part of a compressed response is decompressed at once', async t => {
  for (const [coding, packer] of Object.entries({
    gzip: createGzip(), br: createBrotliCompress(), zstd: createZstdCompress(),
  })) {
    const seen = Promise.withResolvers<void>()
    const sink = new NotingSink({
      data: () => {
        seen.resolve()
        return true
      },
    })
    const { call } = await setUp(t, sink, async wire => {
      wire.send(PACKED.replace('gzip', coding))
      packer.on('data', (piece: Buffer) => wire.send(chunk(piece.toString('latin1'))))
      packer.write('one')
      packer.flush()
      await seen.promise
      packer.on('end', () => wire.send('0\r\n\r\n')).end(' two')
    }, true)
    t.equal(await call.run(createProxy()), null)
    t.equal(await sink.over.promise, null)
    t.strictSame(sink.told, ['head 200', 'data one', 'data  two', 'end'], coding)
  }
})

const quickly = { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }
const CODINGS = {
  gzip: gzipSync, br: (text: string) => brotliCompressSync(text, quickly), zstd: zstdCompressSync,
}
for (const [coding, compress] of Object.entries(CODINGS)) {
  t.test(`the received part of a cut compressed response is decompressed before the cut is reported: ${coding}`, async t => {
    const sink = slowSink(() => call.resume())
    const { call } = await setUp(t, sink, wire => {
      const bytes = compress(WORDS)
      wire.send(PACKED.replace('gzip', coding) + chunk(bytes.toString('latin1', 0, bytes.length / 2)))
      wire.socket.end()
    }, true)
    t.equal(await call.run(createProxy()), null)
    t.match(await sink.over.promise, { code: 'upstream_cut' })
    const text = sink.told.slice(1, -1).map(told => told.slice('data '.length)).join('')
    t.ok(text.length > WORDS.length / 4)
    t.ok(WORDS.startsWith(text))
  })
}

t.test('a response with a wrong content-encoding is upstream_invalid, and the connection is closed', async t => {
  const sink = new NotingSink()
  const { call, torn } = await setUp(t, sink, wire => wire.send(PACKED + chunk('no gzip')), true)
  t.equal(await call.run(createProxy()), null)
  t.match(await sink.over.promise, { code: 'upstream_invalid' })
  await torn
  t.strictSame(sink.told, ['head 200', 'broken upstream_invalid'])
})

t.test('a connection with bytes after the end of the compressed body is closed', async t => {
  const sink = new NotingSink()
  // Padding, as gzip allows it.
  const { call, torn } = await setUp(t, sink, wire => wire.send(PACKED + chunk(`${packed}\0\0`)), true)
  t.equal(await call.run(createProxy()), null)
  t.equal(await sink.over.promise, null)
  await torn
  t.equal(sink.told.at(-1), 'end')
})

t.test('if the sink throws on decompressed data, the response breaks', async t => {
  const sink = new NotingSink({ data: fault })
  const { call, torn } = await setUp(t, sink, wire => wire.send(PACKED + chunk(packed)), true)
  t.equal(await call.run(createProxy()), null)
  t.match(await sink.over.promise, { code: 'internal' })
  await torn
  t.equal(sink.told.length, 3, 'no data follows')
})

t.test('after an abort the sink gets no more decompressed data', async t => {
  const sink = new NotingSink({
    data: () => {
      call.abort(new GatewayError('client_gone', 'gone'))
      return true
    },
  })
  const { call, torn } = await setUp(t, sink, wire => wire.send(PACKED + chunk(packed)), true)
  t.equal(await call.run(createProxy()), null)
  await torn
  t.equal(sink.told.length, 2)
})

t.test('decompression removes only content-encoding and content-length', async t => {
  let headers: readonly string[] = []
  const sink = new NotingSink({
    head: head => {
      headers = head.headers
      return null
    },
  })
  const size = Buffer.byteLength(packed, 'latin1')
  const { call } = await setUp(t, sink, wire => wire.send(
    `HTTP/1.1 200 OK\r\nX-A: 1\r\nContent-Encoding: GZIP\r\nContent-Length: ${size}\r\n\r\n${packed}`), true)
  t.equal(await call.run(createProxy()), null)
  t.equal(await sink.over.promise, null)
  t.strictSame(headers, ['X-A', '1'])
})

t.test('an attempt that is aborted before it has a connection sends nothing', async t => {
  const sink = new NotingSink()
  const { call, requests } = await setUp(t, sink, () => {})
  const run = call.run(createProxy())
  call.abort(new GatewayError('client_gone', 'gone'))
  t.match(await run, { code: 'client_gone' })
  t.equal(call.wasSent, false)
  t.equal(requests(), 0)
  t.strictSame(sink.told, [])
})

/** Starts a call over a transport that only keeps the handler; nothing is sent. */
async function begun(sink: ResponseSink, { unpacks = false, breaking = false } = {}) {
  const sent = Promise.withResolvers<ResponseHandler>()
  const aborts: Error[] = []
  const controller = { abort: (reason: Error) => aborts.push(reason), pause: () => {}, rawHeaders: [] as string[] }
  const limits = { connect: 5_000, firstByte: 5_000, idle: 5_000, total: 5_000 }
  const clock = new FakeClock()
  const call = new UpstreamCall({
    upstream: addressOf('http://a', { send: (_: unknown, handler: ResponseHandler) => sent.resolve(handler), breaking } as never),
    deadlines: new Deadlines(clock, limits, clock.monotonic(), () => {}),
    request: requestWith(),
    readTurns: new ReadTurns(),
    client: null,
    decompresses: unpacks, credential: null, sink,
  })
  const run = call.run(createProxy())
  return { call, run, aborts, controller: controller as never, raw: controller, handler: await sent.promise }
}

t.test('an attempt that is aborted before it gets a connection releases the connection', async t => {
  const { call, handler, controller, aborts } = await begun(new NotingSink())
  call.abort(new GatewayError('client_gone', 'gone'))
  handler.onRequestStart?.(controller, null)
  // Without this code undici fails other requests of the connection too.
  t.match(aborts, [{ code: 'UND_ERR_INFO' }])
})

t.test('a response that ends because its connection breaks is upstream_cut', async t => {
  const sink = new NotingSink()
  const { handler, controller } = await begun(sink, { breaking: true })
  handler.onRequestStart?.(controller, null)
  handler.onResponseStart?.(controller, 200, {}, 'OK')
  handler.onResponseEnd?.(controller, {})
  t.match(await sink.over.promise, { code: 'upstream_cut' })
  t.strictSame(sink.told, ['head 200', 'broken upstream_cut'])
})

t.test('a connect timeout of undici is reported as connect_timeout', async t => {
  const { handler, controller, run } = await begun(new NotingSink())
  const late = Object.assign(new Error('late'), { code: 'UND_ERR_CONNECT_TIMEOUT' })
  handler.onResponseError?.(controller, late)
  t.match(await run, { code: 'connect_timeout' })
})

t.test('compressed data before a reset is delivered before the reset is reported', async t => {
  const sink = new NotingSink()
  const { handler, controller, raw } = await begun(sink, { unpacks: true })
  raw.rawHeaders.push('content-encoding', 'gzip')
  handler.onRequestStart?.(controller, null)
  handler.onResponseStart?.(controller, 200, {}, 'OK')
  handler.onResponseData?.(controller, gzipSync('words').subarray(0, -8))
  handler.onResponseError?.(controller, Object.assign(new Error('reset'), { code: 'ECONNRESET' }))
  t.match(await sink.over.promise, { code: 'upstream_cut' })
  t.strictSame(sink.told, ['head 200', 'data words', 'broken upstream_cut'])
})

t.test('timeouts.connect applies to the connection that replaces a stale connection', async t => {
  const clock = new FakeClock()
  let sent = 0
  const transport = {
    send(_request: unknown, handler: ResponseHandler) {
      if (sent++ > 0) return
      handler.onRequestStart?.({ abort: () => {} } as never, null)
      handler.onResponseError?.(null as never, Object.assign(new Error('reset'), { code: 'ECONNRESET' }))
    },
  }
  const limits = { connect: 1_000, firstByte: 60_000, idle: 60_000, total: 60_000 }
  const deadlines = new Deadlines(clock, limits, clock.monotonic(), error => call.abort(error))
  const call = new UpstreamCall({
    upstream: addressOf('http://a', transport as unknown as Transport), deadlines,
    request: requestWith(),
    readTurns: new ReadTurns(),
    client: null,
    decompresses: false, credential: null, sink: new NotingSink(),
  })
  const run = call.run(createProxy())
  while (sent < 2) await setImmediate()
  t.equal(call.wasSent, false)
  clock.advance(1_000)
  t.match(await Promise.race([run, 'under way']), { code: 'connect_timeout' })
})

t.test('a request with an invalid header, path or method is refused with bad_header', async t => {
  for (const bad of [
    requestWith(['x a', '1']), requestWith(['x-a', 'a\nb']),
    requestWith([], { path: '/a b' }), requestWith([], { path: '/\u4e2d' }), requestWith([], { method: 'G T' }),
  ]) {
    const transport = createTransport({
      origin: 'http://127.0.0.1:9', socketPath: null, connectTimeout: 5_000, ca: null,
    })
    t.teardown(() => transport.destroy())
    const limits = { connect: 5_000, firstByte: 5_000, idle: 5_000, total: 5_000 }
    const deadlines = new Deadlines(systemClock, limits, systemClock.monotonic(), () => {})
    const call = new UpstreamCall({
      upstream: addressOf('http://127.0.0.1:9', transport), deadlines,
      readTurns: new ReadTurns(),
      client: null,
      decompresses: false, credential: null, sink: new NotingSink(),
      request: bad,
    })
    t.match(await call.run(createProxy()), { code: 'bad_header', status: 400 })
    deadlines.stop()
  }
})
