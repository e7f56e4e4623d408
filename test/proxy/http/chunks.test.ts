import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, get, request, Agent } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import type { Test } from 'tap'
import { LAST_CHUNK, frameChunks, isFramed, write } from '../../../src/proxy/http/chunks.ts'
import { bodyOf } from '../../support/upstream.ts'

async function serve(t: Test, answer: (res: ServerResponse, req: IncomingMessage) => void): Promise<number> {
  const server = createServer((req, res) => answer(res, req)).listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

t.test('chunks of every size arrive, and the connection serves the next request', async t => {
  const pieces = [1, 9, 10, 15, 16, 255, 4_096, 16_384, 16_385, 300_000].map(size => randomBytes(size))
  const port = await serve(t, res => {
    res.writeHead(200, { 'content-type': 'application/octet-stream' })
    frameChunks(res)
    t.ok(isFramed(res))
    for (const piece of pieces) write(res, piece)
    res.end(LAST_CHUNK, 'latin1')
  })
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => agent.destroy())
  for (const reused of [false, true]) {
    const req = get({ port, host: '127.0.0.1', agent })
    const [res] = (await once(req, 'response')) as [IncomingMessage]
    t.equal(res.headers['transfer-encoding'], 'chunked')
    t.ok(Buffer.concat(pieces).equals(await bodyOf(res)))
    t.equal(req.reusedSocket, reused)
  }
})

t.test('the callback of a write is called when its bytes are sent', async t => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const port = await serve(t, res => {
    res.writeHead(200)
    frameChunks(res)
    write(res, Buffer.alloc(20_000), () => write(res, Buffer.from('x'), resolve))
  })
  const req = get({ port, host: '127.0.0.1' })
  req.on('error', () => {})
  const [res] = (await once(req, 'response')) as [IncomingMessage]
  await Promise.all([promise, once(res, 'data')])
  t.pass('both were reported')
  req.destroy()
})

t.test('a response without its last chunk is incomplete', async t => {
  const port = await serve(t, res => {
    res.writeHead(200)
    frameChunks(res)
    write(res, Buffer.from('half'), () => res.socket?.destroySoon())
  })
  const [res] = (await once(get({ port, host: '127.0.0.1' }), 'response')) as [IncomingMessage]
  await t.rejects(bodyOf(res), { code: 'ECONNRESET' })
})

t.test('a response that is not chunked is not framed', async t => {
  const port = await serve(t, (res, req) => {
    res.writeHead(req.url === '/empty' ? 204 : 200, req.url === '/sized' ? { 'content-length': '2' } : {})
    frameChunks(res)
    t.notOk(isFramed(res))
    res.end(req.url === '/sized' ? 'ok' : undefined)
  })
  for (const [method, path] of [['GET', '/sized'], ['GET', '/empty'], ['HEAD', '/']] as const) {
    const [res] =
      (await once(request({ port, host: '127.0.0.1', method, path }).end(), 'response')) as [IncomingMessage]
    t.equal((await bodyOf(res)).toString(), path === '/sized' ? 'ok' : '')
  }
})
