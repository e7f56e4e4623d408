import { once } from 'node:events'
import * as http from 'node:http'
import type { AddressInfo } from 'node:net'
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import fc from 'fast-check'
import t from 'tap'
import type { Test } from 'tap'
import { systemClock } from '../../../src/base/clock.ts'
import { decodeBody, hasBody, readBody } from '../../../src/proxy/client/read-body.ts'
import type { BodyOptions } from '../../../src/proxy/client/read-body.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { connect } from '../../support/wire.ts'

/** A server that reads each body with these options, and reports the outcome. */
async function reading(t: Test, options: Partial<BodyOptions>) {
  const outcomes: Promise<Buffer | Error>[] = []
  const server = http.createServer((req, res) => {
    outcomes.push(readBody(req, { limit: 1_000, idle: 60_000, clock: systemClock, ...options }).then(
      body => (res.end('ok'), body),
      (error: Error) => (res.end('refused'), error),
    ))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, outcomes }
}

t.test('a chunked body is joined, and each chunk is reported as it arrives', async t => {
  const seen: string[] = []
  const clock = new FakeClock()
  const { url, outcomes } = await reading(t, { clock, onChunk: piece => seen.push(piece.toString()) })
  const client = await connect(t, url)
  client.send('POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n')
  while (seen.length === 0) await new Promise(setImmediate)
  client.send('2\r\nde\r\n0\r\n\r\n')
  await client.until(/ok/)
  t.equal((await outcomes[0])?.toString(), 'abcde')
  t.equal(seen.join(''), 'abcde')
  t.equal(clock.pending, 0, 'no timer keeps it in memory')
})

for (const [what, request] of [
  ['the declared length', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n'],
  [
    'the number of received bytes',
    `POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n${'x'.repeat(1001)}\r\n`,
  ],
]) {
  t.test(`a body is refused before its end if ${what} is above the limit`, async t => {
    const { url, outcomes } = await reading(t, {})
    const client = await connect(t, url)
    client.send(request as string)
    await client.until(/refused/)
    t.match(await outcomes[0], { code: 'body_too_large', message: /\(server\.body_limit\)$/ })
  })
}

t.test('a body as large as the limit is accepted', async t => {
  const { url, outcomes } = await reading(t, {})
  const client = await connect(t, url)
  client.send(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n${'x'.repeat(1000)}`)
  await client.until(/ok/)
  t.equal(((await outcomes[0]) as Buffer).length, 1000)
})

t.test('the total timeout ends a body that keeps arriving', async t => {
  const { url, outcomes } = await reading(t, { total: { endsAt: systemClock.monotonic() + 150, ms: 150 } })
  const client = await connect(t, url)
  client.send('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n')
  const drip = setInterval(() => client.send('x'), 20)
  t.teardown(() => clearInterval(drip))
  await client.until(/refused/)
  t.match(await outcomes[0], { code: 'total_timeout' })
})

t.test('hasBody follows the framing headers', async t => {
  const has = (headers: http.IncomingHttpHeaders) => hasBody({ headers } as http.IncomingMessage)
  t.equal(has({}), false)
  t.equal(has({ 'content-length': '0' }), false)
  t.equal(has({ 'content-length': '1' }), true)
  t.equal(has({ 'transfer-encoding': 'chunked' }), true)
})

const CODINGS: Record<string, (data: Buffer) => Buffer> = {
  gzip: gzipSync, 'x-gzip': gzipSync, deflate: deflateSync, br: brotliCompressSync, zstd: zstdCompressSync,
}
for (const [coding, compress] of Object.entries(CODINGS)) {
  t.test(`${coding}: decodeBody restores the compressed bytes`, async t => {
    await fc.assert(fc.asyncProperty(fc.uint8Array({ maxLength: 2_000 }), async bytes => {
      const body = Buffer.from(bytes)
      t.ok(body.equals(await decodeBody(compress(body), ` ${coding.toUpperCase()} `, 10_000)))
    }), { numRuns: 10 })
  })

  t.test(`${coding}: a body that is invalid, cut, or too large after decompression is refused`, async t => {
    const bomb = compress(Buffer.alloc(50_000_000))
    await t.rejects(decodeBody(bomb, coding, 1_000_000), { code: 'body_too_large' })
    await t.rejects(
      decodeBody(Buffer.from('no such thing'), coding, 1_000), { code: 'wrong_content_encoding' },
    )
    await t.rejects(decodeBody(compress(Buffer.from('x'.repeat(999))).subarray(0, -3), coding, 1_000), {
      code: 'wrong_content_encoding',
    })
    await t.rejects(decodeBody(Buffer.alloc(0), coding, 1_000), { code: 'wrong_content_encoding' })
  })
}

t.test('an unknown content-encoding is refused', async t => {
  for (const coding of ['compress', 'gzip, br', 'constructor', '__proto__', 'toString']) {
    await t.rejects(decodeBody(Buffer.from('x'), coding, 10), { code: 'wrong_content_encoding' }, coding)
  }
})
