import { once } from 'node:events'
import * as http2 from 'node:http2'
import * as net from 'node:net'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import type { Test } from 'tap'
import { createTransport } from '../../src/proxy/upstream/transport.ts'
import { selfSigned } from '../support/certificate.ts'
import { responseText } from '../support/response-text.ts'

const CONTINUE = 'HTTP/1.1 100 Continue\r\nX-Here: only\r\n\r\n'

/** Sends `times` successive requests, and resolves with the response texts. */
async function answers(t: Test, server: net.Server, times: number, ca: string | null = null) {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as net.AddressInfo
  const origin = `${ca === null ? 'http' : 'https'}://127.0.0.1:${port}`
  const transport = createTransport({ origin, socketPath: null, connectTimeout: 10_000, ca })
  t.teardown(async () => {
    await transport.destroy()
    server.close()
  })
  const request = { method: 'GET', path: '/', headers: [], body: null }
  const all: string[] = []
  for (let n = 0; n < times; n++) {
    all.push(await responseText(handler => transport.send(request, handler)))
    // The connection is free for the next request one turn of the event loop later.
    await setImmediate()
  }
  return all
}

t.test('several unsolicited 100 responses are ignored, wherever the bytes are split', async t => {
  const answer = `${CONTINUE}${CONTINUE}HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok`
  let requests = 0
  let connections = 0
  const server = net.createServer({ noDelay: true }, socket => {
    connections++
    socket.on('error', () => {}).on('data', () => {
      const cut = ++requests
      socket.write(answer.slice(0, cut))
      void setImmediate().then(() => socket.write(answer.slice(cut)))
    })
  })
  const all = await answers(t, server, answer.length - 1)
  t.ok(all.every(each => each === 'ok'))
  t.equal(connections, 1)
})

t.test('HTTP/2: unsolicited 100 and 103 responses are ignored', async t => {
  const certificate = selfSigned()
  const ca = join(t.testdir({ 'ca.pem': certificate.cert }), 'ca.pem')
  const server = http2.createSecureServer(certificate)
  server.on('stream', (stream: http2.ServerHttp2Stream) => {
    stream.additionalHeaders({ ':status': 100 })
    stream.additionalHeaders({ ':status': 103, link: '</x>' })
    stream.respond({ ':status': 200 })
    stream.end('ok')
  })
  t.same(await answers(t, server, 2, ca), ['ok', 'ok'])
})
