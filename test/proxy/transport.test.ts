import { once } from 'node:events'
import * as net from 'node:net'
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import type { Test } from 'tap'
import { createTransport } from '../../src/proxy/transport.ts'
import type { Transport } from '../../src/proxy/transport.ts'
import { answerTo } from '../support/handled.ts'

const ANSWER = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

async function transportTo(t: Test, server: net.Server, ca: string | null): Promise<Transport> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as net.AddressInfo
  const origin = `${ca === null ? 'http' : 'https'}://127.0.0.1:${port}`
  const transport = createTransport({ origin, socketPath: null, connectTimeout: 10_000, ca })
  t.teardown(async () => {
    await transport.destroy()
    server.close()
  })
  return transport
}

function ask(transport: Transport, onFailed = () => {}): Promise<string> {
  const request = { method: 'POST', path: '/', headers: [], body: Buffer.from('{}') }
  return answerTo(handler => transport.send(request, handler), onFailed)
}

t.test('what has not gone out yet when its kept connections are reset goes out on another', async t => {
  const sockets: net.Socket[] = []
  let requests = 0
  const server = net.createServer(socket => {
    sockets.push(socket)
    socket.on('error', () => {}).on('data', () => {
      requests++
      socket.write(ANSWER)
    })
  })
  const transport = await transportTo(t, server, null)
  await Promise.all([ask(transport), ask(transport), ask(transport)])
  await setImmediate()
  // The resets are under way: they are read before the request is written.
  for (const socket of sockets.splice(0)) socket.resetAndDestroy()
  t.equal(await ask(transport), 'ok')
  t.equal(requests, 4)
  t.equal(sockets.length, 1, 'one new connection')
  for (const socket of sockets) socket.destroy()
})

t.test('an upstream that resets every connection is not asked for ever', async t => {
  const server = net.createServer(socket => socket.on('error', () => {}).resetAndDestroy())
  const transport = await transportTo(t, server, null)
  await t.rejects(ask(transport))
})
