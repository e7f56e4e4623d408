import { constants } from 'node:http2'
import type { ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import t from 'tap'
import type { Test } from 'tap'
import { certificateFiles } from '../support/certificate.ts'
import { startTestGateway } from '../support/gateway.ts'
import { openSession, postH2, startHttp2Upstream } from '../support/http2.ts'
import { connect, post, proxyTo, startWireUpstream } from '../support/wire.ts'

const MB = 1024 * 1024
const PIECE = 'x'.repeat(64 * 1024)
const HEAD = (size: number) =>
  `HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: ${size}\r\n\r\n`

/**
 * Writes events until the socket buffer is full, and continues after a drain. `stuck`
 * settles after many turns of the event loop without a drain
 * and without progress.
 */
function pump(
  socket: { write(text: string): boolean; once(event: 'drain', listener: () => void): unknown },
  total: number,
) {
  let written = 0
  const stuck = Promise.withResolvers<number>()
  const done = Promise.withResolvers<void>()
  let drains = 0
  const next = () => {
    while (written < total) {
      written += PIECE.length
      if (socket.write(PIECE)) continue
      const before = drains
      watch(before, 0)
      socket.once('drain', () => {
        drains++
        next()
      })
      return
    }
    done.resolve()
  }
  const watch = (before: number, turns: number) => {
    if (drains !== before) return
    if (turns === 200) stuck.resolve(written)
    else setImmediate(() => setTimeout(() => watch(before, turns + 1), 1))
  }
  next()
  return { stuck: stuck.promise, done: done.promise }
}

/** An upstream that sends `total` bytes as fast as they are read. */
async function largeUpstream(t: Test, total: number) {
  const running = Promise.withResolvers<ReturnType<typeof pump>>()
  const upstream = await startWireUpstream(t, async wire => {
    await wire.request()
    wire.send(HEAD(total))
    running.resolve(pump(wire.socket, total))
    await wire.ended
  })
  return { gateway: await startTestGateway(t, proxyTo(upstream.url)), running: running.promise }
}

t.test('the upstream stops sending while a client does not read, and the client gets every byte once it reads', async t => {
  const total = 100 * MB
  const { gateway, running } = await largeUpstream(t, total)
  const client = await connect(t, gateway.url)
  client.send(post('/v1/files/f/content', {}))
  const early = await client.until(/\r\n\r\n/)
  client.socket.pause()
  const written = await (await running).stuck
  t.ok(written < 40 * MB, `${written} bytes are with the kernel and in bounded buffers`)
  const head = early.indexOf('\r\n\r\n') + 4
  await countTo(client.socket, total - (client.text.length - head))
  t.pass('the client gets every byte')
})

t.test('HTTP/2: the upstream stops sending while a client does not read, ' +
  'and the client gets every byte once it reads', async t => {
  const total = 40 * MB
  const { gateway, running } = await largeUpstream(t, total)
  const session = await openSession(t, gateway.url)
  const request = postH2(session, '/v1/files/f/content', {})
  request.stream.removeAllListeners('data').pause()
  await request.head
  const written = await (await running).stuck
  t.ok(written < 20 * MB, `${written} bytes`)
  let got = 0
  request.stream.on('data', (piece: Buffer) => (got += piece.length)).resume()
  t.equal(await request.closed, constants.NGHTTP2_NO_ERROR)
  t.equal(got, total)
})

t.test('an HTTP/2 upstream stops sending while a client does not read', async t => {
  const total = 60 * MB
  const certificate = certificateFiles(t)
  const streams = Promise.withResolvers<ServerHttp2Stream>()
  const upstream = await startHttp2Upstream(t, certificate, stream => {
    stream.respond({ ':status': 200, 'content-length': total })
    streams.resolve(stream)
  })
  const gateway = await startTestGateway(t, `
upstreams: { up: { url: "${upstream.url}", ca: "${certificate.certFile}" } }
routes: [{ to: up }]
`)
  const client = await connect(t, gateway.url)
  client.send(post('/v1/files/f/content', {}))
  const early = await client.until(/\r\n\r\n/)
  client.socket.pause()
  const stream = await streams.promise
  const running = pump(stream, total)
  t.ok((await running.stuck) < 40 * MB)
  const head = early.indexOf('\r\n\r\n') + 4
  const counted = countTo(client.socket, total - (client.text.length - head))
  await running.done
  stream.end()
  await counted
  t.pass('the client gets every byte')
})

t.test('a response of 200 MB is forwarded with bounded memory', async t => {
  const total = 200 * MB
  const { gateway } = await largeUpstream(t, total)
  const client = await connect(t, gateway.url)
  const held = () => {
    const { external, heapUsed } = process.memoryUsage()
    return external + heapUsed
  }
  const before = held()
  let most = 0
  client.send(post('/v1/files/f/content', {}))
  await countTo(client.socket, total, () => {
    most = Math.max(most, held() - before)
  })
  t.ok(most < 150 * MB, `${Math.round(most / MB)} MB at most, garbage included`)
})

/** Reads and drops data until `total` bytes have arrived. */
async function countTo(socket: Socket, total: number, onPiece = () => {}): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  let got = 0
  socket.removeAllListeners('data')
  socket.on('data', (piece: Buffer) => {
    got += piece.length
    onPiece()
    if (got >= total) resolve()
  })
  socket.resume()
  await promise
}
