import { once } from 'node:events'
import * as http from 'node:http'
import * as net from 'node:net'
import type { Test } from 'tap'

export interface TestUpstream {
  readonly url: string
  readonly port: number
}

/** An upstream whose responses the test writes; it is closed when the test ends. */
export async function startUpstream(
  t: Test, listener: http.RequestListener,
): Promise<TestUpstream & { server: http.Server }> {
  const server = http.createServer({ requestTimeout: 0 }, listener)
  const { port } = await listening(server)
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${port}`, port, server }
}

/** An upstream on plain sockets, for responses that an HTTP server does not send. */
export async function startRawUpstream(
  t: Test, onSocket: (socket: net.Socket) => void,
): Promise<TestUpstream> {
  const sockets = new Set<net.Socket>()
  const server = net.createServer(socket => {
    sockets.add(socket)
    socket.on('error', () => {}).once('close', () => sockets.delete(socket))
    onSocket(socket)
  })
  const { port } = await listening(server)
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { url: `http://127.0.0.1:${port}`, port }
}

/** The whole body of a request, or of a response. */
export async function bodyOf(req: http.IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of req) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

/** Sends bytes on a plain connection. Resolves with all received text after the connection closes. */
export async function rawRequest(url: string, bytes: string): Promise<string> {
  const { hostname, port } = new URL(url)
  const socket = net.connect(Number(port), hostname)
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', () => {})
  socket.write(bytes, 'latin1')
  await once(socket, 'close')
  return Buffer.concat(chunks).toString('latin1')
}

async function listening(server: net.Server): Promise<net.AddressInfo> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return server.address() as net.AddressInfo
}
