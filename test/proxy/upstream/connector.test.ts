import { once } from 'node:events'
import * as net from 'node:net'
import { join } from 'node:path'
import * as tls from 'node:tls'
import t from 'tap'
import type { Test } from 'tap'
import { createTransport } from '../../../src/proxy/upstream/transport.ts'
import { selfSigned } from '../../support/certificate.ts'
import { responseText } from '../../support/response-text.ts'
import { startSlowName } from '../slow-name.ts'

const ANSWER = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

async function ask(t: Test, server: net.Server, ca: string | null): Promise<string> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as net.AddressInfo
  const origin = `${ca === null ? 'http' : 'https'}://localhost:${port}`
  const transport = createTransport({ origin, socketPath: null, connectTimeout: 10_000, ca })
  t.teardown(() => transport.destroy())
  const request = { method: 'POST', path: '/', headers: [], body: Buffer.from('{}') }
  return responseText(handler => transport.send(request, handler), () => {})
}

function answering(socket: net.Socket): void {
  socket.on('error', () => {}).on('data', () => socket.write(ANSWER))
}

t.test('connecting to an address can take longer than the default timeout of Node.js', async t => {
  startSlowName(t)
  t.equal(await ask(t, net.createServer(answering), null), 'ok')
})

t.test('a slow TLS connection is verified by its host name', async t => {
  startSlowName(t)
  const certificate = selfSigned()
  const ca = join(t.testdir({ 'ca.pem': certificate.cert }), 'ca.pem')
  const server = tls.createServer(certificate, answering)
  t.equal(await ask(t, server, ca), 'ok')
})
