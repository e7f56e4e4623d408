import { once } from 'node:events'
import * as http2 from 'node:http2'
import * as net from 'node:net'
import t from 'tap'
import { certificateFiles } from '../../support/certificate.ts'
import { KEY, startTestGateway } from '../../support/gateway.ts'

t.test('if GOAWAY refuses several requests and the client of one disconnects, ' +
  'the other requests are served', async t => {
  const certificate = certificateFiles(t)
  const server = http2.createSecureServer(certificate)
  const refused = Promise.withResolvers<void>()
  let streams = 0
  server.on('stream', (stream: http2.ServerHttp2Stream) => {
    stream.on('error', () => {})
    streams++
    // The first stream gets a response, the next three are refused, and further streams are on another connection.
    if (streams === 1 || streams > 4) {
      stream.respond({ ':status': 200, 'content-type': 'application/json' })
      stream.end('{"n":1}')
    } else if (streams === 4) {
      stream.session?.goaway(http2.constants.NGHTTP2_NO_ERROR, 1)
      refused.resolve()
    }
  })
  const sockets: net.Socket[] = []
  const second = Promise.withResolvers<net.Socket>()
  const front = net.createServer(socket => {
    sockets.push(socket.on('error', () => {}))
    if (sockets.length === 2) second.resolve(socket)
    else server.emit('connection', socket)
  })
  front.listen(0, '127.0.0.1')
  await once(front, 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    front.close()
  })
  const { port } = front.address() as net.AddressInfo
  const gateway = await startTestGateway(t, `
timeouts: { connect: 5s, total: 5s }
upstreams: { up: { url: "https://127.0.0.1:${port}", ca: "${certificate.certFile}" } }
routes: [{ to: up }]
`)
  const ask = (signal?: AbortSignal) => fetch(`${gateway.url}/v1/files`, {
    headers: { 'x-api-key': KEY }, signal: signal ?? AbortSignal.timeout(10_000),
  })
  t.equal(await (await ask()).text(), '{"n":1}')
  const leaving = new AbortController()
  const leaver = ask(leaving.signal)
  const others = [ask(), ask()]
  await refused.promise
  // The refused requests wait for another connection, which is not accepted yet.
  const socket = await second.promise
  leaving.abort()
  await t.rejects(leaver)
  await gateway.waitForLog(line => line.error === 'client_gone')
  server.emit('connection', socket)
  for (const other of others) {
    const answer = await other
    t.equal(answer.status, 200)
    t.equal(await answer.text(), '{"n":1}')
  }
})
