import { constants } from 'node:http2'
import type { ClientHttp2Session, ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import t from 'tap'
import type { Test } from 'tap'
import { certificateFiles } from '../support/certificate.ts'
import * as frames from '../support/frames.ts'
import { KEY, startTestGateway } from '../support/gateway.ts'
import type { TestGateway } from '../support/gateway.ts'
import { H2Request, openSession, openSessionOn, postH2, startHttp2Upstream } from '../support/http2.ts'
import { STREAM_HEAD, chunk, connect, post, proxyTo, startWireUpstream } from '../support/wire.ts'
import type { Wire } from '../support/wire.ts'

const CHAT = { model: 'm', stream: true, messages: [] }

/** The ways in which a client disconnects over HTTP/2. */
const LEAVES: Record<string, (request: H2Request, session: ClientHttp2Session, tcp: Socket) => void> = {
  'sends RST_STREAM': request => request.stream.close(constants.NGHTTP2_CANCEL),
  'ends its session': (_request, session) => session.destroy(),
  'ends its session with an error code': (_request, session) => session.destroy(
    new Error('x'), constants.NGHTTP2_PROTOCOL_ERROR,
  ),
  'resets its connection': (_request, _session, tcp) => tcp.resetAndDestroy(),
  'closes its connection': (_request, _session, tcp) => tcp.destroy(),
  'half-closes its connection': (_request, _session, tcp) => tcp.end(),
}

/** The moments of the disconnect: the data that the upstream sends before, and the data that the client waits for. */
const MOMENTS: Record<string, {
  play: (wire: Wire) => void
  seen: (request: H2Request) => Promise<unknown>
  status: number
}> = {
  'before the response head': { play: () => {}, seen: () => Promise.resolve(), status: 499 },
  'between the response head and the first byte': {
    play: wire => wire.send(STREAM_HEAD), seen: request => request.head, status: 200,
  },
  'in mid-stream': {
    play: wire => wire.send(STREAM_HEAD + chunk('data: {"n":1}\n\n')),
    seen: request => request.until(/"n":1/),
    status: 200,
  },
}

async function loggedAsGone(t: Test, gateway: TestGateway, status: number): Promise<void> {
  const line = await gateway.waitForLog(each => each.msg === 'exchange')
  t.equal(line.error, 'client_gone')
  t.equal(line.status, status)
  t.equal(gateway.logged.filter(each => each.msg === 'exchange').length, 1, 'logged once')
}

for (const [leaves, leave] of Object.entries(LEAVES)) {
  for (const [moment, { play, seen, status }] of Object.entries(MOMENTS)) {
    t.test(`HTTP/2: a client that ${leaves} ${moment} ends the upstream request at once`, async t => {
      const reached = Promise.withResolvers<Wire>()
      const upstream = await startWireUpstream(t, async wire => {
        await wire.request()
        play(wire)
        reached.resolve(wire)
        await wire.ended
      })
      const gateway = await startTestGateway(t, proxyTo(upstream.url))
      const { session, tcp } = await openSessionOn(t, gateway.url)
      const request = postH2(session, '/v1/other', CHAT)
      const wire = await reached.promise
      await seen(request)
      leave(request, session, tcp)
      await wire.ended
      await loggedAsGone(t, gateway, status)
    })
  }

  // Node's client ends the body before it resets the stream, so a separate test below sends the frames itself.
  if (leaves === 'sends RST_STREAM') continue
  t.test(`HTTP/2: a request does not go upstream if its client ${leaves} before the end of the body`, async t => {
    let connections = 0
    const upstream = await startWireUpstream(t, async () => {
      connections++
    })
    const gateway = await startTestGateway(t, proxyTo(upstream.url))
    const { session, tcp } = await openSessionOn(t, gateway.url)
    const request = new H2Request(session, 'POST', '/v1/other', { 'content-type': 'application/json' }, false)
    request.stream.write('{"model":"m",')
    // After a response to another request on the session, the gateway has started this request.
    await new H2Request(session, 'GET', '/api/status').closed
    leave(request, session, tcp)
    await loggedAsGone(t, gateway, 499)
    t.equal(connections, 0)
  })
}

t.test('HTTP/2: a body cut by RST_STREAM is never forwarded as complete', async t => {
  let connections = 0
  const upstream = await startWireUpstream(t, async () => {
    connections++
  })
  const gateway = await startTestGateway(t, proxyTo(upstream.url))
  const client = await connect(t, gateway.url)
  client.socket.write(Buffer.concat([
    frames.opening(),
    frames.request(1, [
      [':method', 'POST'], [':scheme', 'http'], [':authority', 'x'],
      [':path', '/v1/files'], ['x-api-key', KEY],
      ['content-type', 'application/octet-stream'],
    ], false),
    frames.frame(frames.DATA, 0, 1, Buffer.from('the first half of a file')),
    frames.reset(1),
  ]))
  await loggedAsGone(t, gateway, 499)
  t.equal(connections, 0)
})

t.test('HTTP/2: a cancelled stream does not end the other streams of the session', async t => {
  const wires: Wire[] = []
  const both = Promise.withResolvers<void>()
  const upstream = await startWireUpstream(t, async wire => {
    await wire.request()
    wire.send(STREAM_HEAD + chunk('data: {"n":1}\n\n'))
    if (wires.push(wire) === 2) both.resolve()
    await wire.ended
  })
  const gateway = await startTestGateway(t, proxyTo(upstream.url))
  const session = await openSession(t, gateway.url)
  const one = postH2(session, '/v1/other', CHAT)
  const two = postH2(session, '/v1/other', CHAT)
  await both.promise
  await Promise.all([one.until(/"n":1/), two.until(/"n":1/)])
  one.stream.close(constants.NGHTTP2_CANCEL)
  const torn = await Promise.race(wires.map(async wire => {
    await wire.ended
    return wire
  }))
  const left = wires.find(wire => wire !== torn) as Wire
  left.send(`${chunk('data: [DONE]\n\n')}0\r\n\r\n`)
  t.equal(await two.closed, 0)
  t.match(two.text, /\[DONE\]/)
})

t.test('a client that disconnects ends only its own stream ' +
  'on a shared HTTP/2 connection to the upstream', async t => {
  const certificate = certificateFiles(t)
  const streams: ServerHttp2Stream[] = []
  const both = Promise.withResolvers<void>()
  const upstream = await startHttp2Upstream(t, certificate, stream => {
    stream.respond({ ':status': 200, 'content-type': 'text/event-stream' })
    stream.write('data: {"n":1}\n\n')
    if (streams.push(stream) === 2) both.resolve()
  })
  const gateway = await startTestGateway(t, `
upstreams: { up: { url: "${upstream.url}", ca: "${certificate.certFile}", usage: as_is } }
routes: [{ to: up }]
`)
  const one = await connect(t, gateway.url)
  one.send(post('/v1/chat/completions', CHAT))
  await one.until(/"n":1/)
  const two = await connect(t, gateway.url)
  two.send(post('/v1/chat/completions', CHAT))
  await two.until(/"n":1/)
  await both.promise
  const [first, second] = streams as [ServerHttp2Stream, ServerHttp2Stream]
  const torn = new Promise(resolve => first.once('aborted', resolve))
  one.socket.destroy()
  await torn
  t.equal(upstream.sessions.size, 1)
  second.end('data: [DONE]\n\n')
  await two.until(/\[DONE\][^]*0\r\n\r\n$/)
})
