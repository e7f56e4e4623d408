import { once } from 'node:events'
import * as net from 'node:net'
import t from 'tap'
import type { Test } from 'tap'
import * as frames from '../../support/frames.ts'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import { openSession, postH2 } from '../../support/http2.ts'
import { STREAM_HEAD, chunk, connect, post, startWireUpstream } from '../../support/wire.ts'
import type { Wire } from '../../support/wire.ts'

const CHAT = { model: 'm', stream: true, messages: [] }
const EVENT = chunk('data: {"choices":[{"index":0,"delta":{"content":"hi"}}]}\n\n')
const END = `${chunk('data: [DONE]\n\n')}0\r\n\r\n`

/** A gateway that shares its port, on a free port or that of `beside`, and the connections of its upstream. */
async function sharing(t: Test, beside?: { url: string }) {
  const wires: Wire[] = []
  const upstream = await startWireUpstream(t, async wire => {
    while (await wire.nextRequest()) {
      wires.push(wire)
      wire.send(STREAM_HEAD + EVENT)
    }
  })
  const port = beside ? new URL(beside.url).port : '0'
  const gateway = await startTestGateway(t, `
server: { listen: "127.0.0.1:${port}", reuse_port: true, drain: 30s }
upstreams: { up: { url: "${upstream.url}", usage: as_is } }
routes: [{ to: up }]
`)
  return { gateway, wires }
}

t.test('two gateways share a port only if both set reuse_port', async t => {
  const { gateway } = await sharing(t)
  await sharing(t, gateway)
  const { port } = new URL(gateway.url)
  const rest = 'upstreams: { demo: { simulator: true } }\nroutes: [{ to: demo }]\n'
  await t.rejects(
    startTestGateway(t, `server: { listen: "127.0.0.1:${port}" }\n${rest}`), { code: 'EADDRINUSE' },
  )
})

t.test('HTTP/1.1: the old gateway finishes requests on open connections, and the new gateway gets new connections', async t => {
  const old = await sharing(t)
  const idle = await connect(t, old.gateway.url)
  idle.send(post('/v1/chat/completions', CHAT))
  await idle.until(/hi/)
  old.wires[0]?.send(END)
  await idle.until(/0\r\n\r\n$/)
  idle.clear()
  const unused = await connect(t, old.gateway.url)
  const waiting = await connect(t, old.gateway.url)
  waiting.send(post('/v1/chat/completions', CHAT).slice(0, -1))
  const streaming = await connect(t, old.gateway.url)
  streaming.send(post('/v1/chat/completions', CHAT))
  await streaming.until(/hi/)

  const successor = await sharing(t, old.gateway)
  const drained = old.gateway.drain()
  const newcomers = await Promise.all(Array.from({ length: 20 }, () => connect(t, old.gateway.url)))
  for (const newcomer of newcomers) newcomer.send(post('/v1/chat/completions', CHAT))
  for (const newcomer of newcomers) await newcomer.until(/hi/)
  t.equal(successor.wires.length, newcomers.length)

  idle.send('GET /api/status HTTP/1.1\r\nHost: x\r\n\r\n')
  t.match(
    await idle.until(/\}$/),
    /^HTTP\/1\.1 200 OK\r\n[^]*\r\nconnection: close\r\n[^]*"status":"handing_over"/i,
  )
  t.equal(await idle.ended, 'end')
  unused.send(post('/v1/chat/completions', CHAT))
  waiting.send(post('/v1/chat/completions', CHAT).slice(-1))
  for (const each of [unused, waiting]) {
    t.match(await each.until(/hi/), /200 OK\r\n[^]*\r\nconnection: close\r\n/i)
  }
  t.equal(old.wires.length, 4)
  for (const wire of old.wires.slice(1)) wire.send(EVENT + END)
  for (const each of [unused, waiting, streaming]) {
    t.match(await each.until(/0\r\n\r\n$/), /hi[^]*hi[^]*\[DONE\]/)
  }
  for (const each of [unused, waiting]) t.equal(await each.ended, 'end')

  // The response head allowed keep-alive, so one more request is served.
  streaming.clear()
  streaming.send('GET /api/status HTTP/1.1\r\nHost: x\r\n\r\n')
  t.match(await streaming.until(/\}$/), /\r\nconnection: close\r\n/i)
  t.equal(await streaming.ended, 'end')
  t.equal(await drained, 0)
})

t.test('HTTP/2: running streams finish, and then the session ends', async t => {
  const old = await sharing(t)
  const session = await openSession(t, old.gateway.url)
  const running = postH2(session, '/v1/chat/completions', CHAT)
  await running.until(/hi/)
  const goaway = once(session, 'goaway')
  const ended = once(session, 'close')
  const drained = old.gateway.drain()
  const next = postH2(session, '/v1/chat/completions', CHAT)
  await next.until(/hi/)
  await goaway
  for (const wire of old.wires) wire.send(EVENT + END)
  for (const each of [running, next]) {
    t.equal(await each.closed, 0)
    t.match(each.text, /hi[^]*hi[^]*\[DONE\]/)
  }
  await ended
  t.equal(await drained, 0)
})

t.test('HTTP/2: a request that arrives as the drain begins is served, and GOAWAY marks later requests as unprocessed', async t => {
  const old = await sharing(t)
  const { hostname, port } = new URL(old.gateway.url)
  const socket = net.connect(Number(port), hostname)
  t.teardown(() => socket.destroy())
  let received: Buffer = Buffer.alloc(0)
  let wake = () => {}
  socket.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk])
    wake()
  })
  const until = async (like: (frame: frames.Frame) => boolean): Promise<frames.Frame> => {
    for (;;) {
      const found = frames.parseFrames(received).find(like)
      if (found) return found
      await new Promise<void>(resolve => (wake = resolve))
    }
  }
  const fields = [
    [':method', 'POST'], [':scheme', 'http'], [':path', '/v1/chat/completions'], [':authority', 'x'],
    ['authorization', `Bearer ${KEY}`], ['content-type', 'application/json'],
  ] as const
  const chat = (stream: number): Buffer => Buffer.concat([
    frames.request(stream, fields, false),
    frames.frame(frames.DATA, frames.END_STREAM, stream, Buffer.from(JSON.stringify(CHAT))),
  ])
  socket.write(frames.opening())
  await until(({ type }) => type === frames.SETTINGS)
  const drained = old.gateway.drain()
  socket.write(chat(1))
  const { payload } = await until(({ type }) => type === frames.GOAWAY)
  t.equal(payload.readUInt32BE(0), 1, 'the last processed stream is the first')
  t.equal(payload.readUInt32BE(4), 0, 'GOAWAY has no error code')
  socket.write(chat(3))
  await until(({ type, stream }) => type === frames.DATA && stream === 1)
  t.equal(old.wires.length, 1, 'the later request does not go upstream')
  for (const wire of old.wires) wire.send(EVENT + END)
  await until(({ type, stream, flags }) =>
    type === frames.DATA && stream === 1 && (flags & frames.END_STREAM) !== 0)
  await once(socket, 'close')
  t.equal(await drained, 0)
})

t.test('close() ends a running drain and its open connections', async t => {
  const old = await sharing(t)
  const silent = await connect(t, old.gateway.url)
  const drained = old.gateway.drain()
  t.equal(await old.gateway.close(), 0)
  await drained
  await silent.ended
})
