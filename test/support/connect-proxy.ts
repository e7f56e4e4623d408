import { once } from 'node:events'
import * as http from 'node:http'
import * as https from 'node:https'
import * as net from 'node:net'
import type { Test } from 'tap'
import type { Certificate } from './certificate.ts'

/** What the proxy does with a CONNECT; `open` opens the tunnel. */
type OnConnect = (req: http.IncomingMessage, socket: net.Socket, open: () => void) => void

export interface ConnectProxy {
  readonly url: string
  readonly port: number
  /** The destination of each CONNECT, with the credential after a space. */
  readonly asked: string[]
}

/** A proxy that connects every name to 127.0.0.1. It is closed when the test ends. */
export async function startConnectProxy(
  t: Test, onConnect: OnConnect = (_req, _socket, open) => open(), certificate: Certificate | null = null,
): Promise<ConnectProxy> {
  const server = certificate === null ? http.createServer() : https.createServer(certificate)
  const asked: string[] = []
  const sockets = new Set<net.Socket>()
  server.on('connect', (req: http.IncomingMessage, socket: net.Socket) => {
    const { 'proxy-authorization': credential } = req.headers
    asked.push(credential === undefined ? String(req.url) : `${req.url} ${credential}`)
    track(sockets, socket)
    onConnect(req, socket, () => {
      const to = net.connect(Number(String(req.url).split(':').at(-1)), '127.0.0.1', () => {
        socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
        socket.pipe(to).pipe(socket)
      })
      to.once('error', () => socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n'))
      track(sockets, to)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as net.AddressInfo
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.closeAllConnections()
    server.close()
  })
  return { url: `${certificate === null ? 'http' : 'https'}://127.0.0.1:${port}`, port, asked }
}

function track(sockets: Set<net.Socket>, socket: net.Socket): void {
  sockets.add(socket)
  socket.on('error', () => {}).once('close', () => sockets.delete(socket))
}
