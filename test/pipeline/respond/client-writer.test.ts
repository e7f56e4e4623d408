import { once } from 'node:events'
import * as http from 'node:http'
import * as http2 from 'node:http2'
import type { AddressInfo } from 'node:net'
import type { Readable } from 'node:stream'
import t from 'tap'
import type { Test } from 'tap'
import { ClientWriter } from '../../../src/pipeline/respond/client-writer.ts'
import { frameChunks } from '../../../src/proxy/http/chunks.ts'
import { end, writeHead } from '../../../src/proxy/client/client.ts'
import type { ClientResponse } from '../../../src/proxy/client/client.ts'

/** A started response, and its body at the client, which is not read yet. */
async function begun(t: Test, version: 'h1' | 'h2'): Promise<{ res: ClientResponse; body: Readable }> {
  const server = version === 'h1' ? http.createServer() : http2.createServer()
  t.teardown(() => server.close())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const asked = once(server, 'request') as Promise<[unknown, ClientResponse]>
  if (version === 'h2') {
    const session = http2.connect(url)
    t.teardown(() => session.destroy())
    const stream = session.request({ ':path': '/' })
    const [, res] = await asked
    writeHead(res, 200, [])
    return { res, body: stream }
  }
  const req = http.get(url, { agent: false })
  t.teardown(() => req.destroy())
  const answered = once(req, 'response') as Promise<[http.IncomingMessage]>
  const res = (await asked)[1] as http.ServerResponse
  res.writeHead(200)
  frameChunks(res)
  res.flushHeaders()
  return { res, body: (await answered)[0] }
}

async function read(body: Readable): Promise<Buffer> {
  const pieces: Buffer[] = []
  for await (const piece of body) pieces.push(piece as Buffer)
  return Buffer.concat(pieces)
}

const SIZES = [1, 65_536, 65_537, 20_000_000, 3, 200_000, 5]
const PIECES = SIZES.map((size, n) => Buffer.alloc(size, `${n}${'abcdefgh'.repeat(9)}`))

for (const version of ['h1', 'h2'] as const) {
  t.test(`${version}: a client that reads slowly gets all bytes in order, and a single end`, async t => {
    const { res, body } = await begun(t, version)
    let moves = 0
    const out = new ClientWriter(res, () => moves++)
    let taken = true
    for (const piece of PIECES) taken = out.write(piece)
    t.notOk(taken)
    t.ok(out.blocked)
    out.end()
    t.ok((await read(body)).equals(Buffer.concat(PIECES)))
    t.ok(moves > 100, `seen to read ${moves} times`)
  })

  t.test(`${version}: an end after a blocked write is written once`, async t => {
    const { res, body } = await begun(t, version)
    const faults: unknown[] = []
    res.on('error', error => faults.push(error))
    const out = new ClientWriter(res, () => {})
    const piece = Buffer.alloc(65_536, 'x')
    let count = 1
    while (out.write(piece)) count++
    out.end()
    const [bytes] = await Promise.all([read(body), once(res, 'finish')])
    t.equal(bytes.length, count * piece.length)
    t.strictSame(faults, [])
  })

  t.test(`${version}: unsent is the number of bytes that are not sent yet, also after stop`, async t => {
    const { res, body } = await begun(t, version)
    const out = new ClientWriter(res, () => {})
    const total = Buffer.concat(PIECES).length
    for (const piece of PIECES) out.write(piece)
    const before = out.unsent
    t.ok(before > 0 && before < total, `${before} of ${total}`)
    // The client reads a part of the response, and then the test sends no more.
    let came = 0
    body.on('data', (piece: Buffer) => {
      came += piece.length
    })
    await once(res, 'drain')
    out.stop()
    const { unsent } = out
    t.ok(unsent > 0 && unsent < before, `${unsent} of ${total}`)
    end(res)
    await once(body, 'end')
    t.equal(total - unsent, came)
  })

  t.test(`${version}: flush sends all waiting bytes at once, and stop adds no end`, async t => {
    const { res, body } = await begun(t, version)
    const out = new ClientWriter(res, () => t.fail('no more is reported'))
    for (const piece of PIECES) out.write(piece)
    out.flush()
    out.stop()
    out.end()
    t.ok((await read(body)).equals(Buffer.concat(PIECES)))
  })
}

t.test('data that is written together with the head keeps all byte values', async t => {
  const all = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))
  const server = http.createServer((_, res) => {
    res.writeHead(200, { 'content-length': '512' })
    const writer = new ClientWriter(res, () => {})
    writer.write(all)
    writer.write(all)
    writer.end()
  }).listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  t.strictSame(Buffer.from(await response.arrayBuffer()), Buffer.concat([all, all]))
})
