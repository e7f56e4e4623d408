import type * as http2 from 'node:http2'
import * as net from 'node:net'
import type { Duplex } from 'node:stream'
import * as tls from 'node:tls'
import { descriptorBounds, descriptorOf, type DescriptorBounds } from '../../base/descriptors.ts'
import { HEADERS_TIMEOUT } from '../../base/server-limits.ts'
import { Slots } from '../../base/slots.ts'
import { localUrl } from '../../config/listen-address.ts'
import type { Address } from '../../config/types.ts'
import { createHttp1Server, drainConnections, type Http1Handlers, type Http1State } from './http1.ts'
import { createHttp2Server, closeWhenIdle, drainSession, limitResets } from './http2.ts'
import { peerOf } from './new-exchange.ts'
import type { ResetLimit } from './reset-limit.ts'
import { detectHttp2 } from './sniff.ts'

/** The certificate with its chain, and the key, as PEM. */
export interface Certificate { readonly cert: string | Buffer, readonly key: string | Buffer }

export interface ListenerOptions extends Http1Handlers {
  readonly listen: Address
  /** true if other processes may listen on the same address (SO_REUSEPORT); default false. */
  readonly reusePort?: boolean
  /** Certificate for TLS; null = no TLS. */
  readonly tls: Certificate | null
  readonly maxConnections: () => number
  /** The limit is shared by all listeners of the process. */
  readonly resetLimit: ResetLimit
  /** Maximum ms for a request head, and for a TLS handshake; default 30 s. */
  readonly headersTimeout?: number
  /** ms after which an idle connection is closed. */
  readonly keepAlive: number
  /** ms after which an idle connection is closed while the listener drains; default 10 s. */
  readonly drainIdle?: number
  /** Called after a TLS handshake failed. The connection is closed. */
  onHandshakeFailure(error: NodeJS.ErrnoException, socket: net.Socket): void
  /** Called if there is no room for another connection, or no descriptor. The handler writes the response to the socket. */
  onNoRoom(socket: Duplex, missing: 'connection' | 'descriptor'): void
}

export interface Listener {
  /** The URL with the actual port, such as `http://127.0.0.1:8080`. */
  readonly url: string
  /** Sets the certificate for later handshakes. Does nothing without TLS. */
  setCertificate(certificate: Certificate): void
  /**
   * Stops accepting connections, and serves the open connections to their end. An HTTP/1.1 response announces that it is the last of its
   * connection, an HTTP/2 session gets GOAWAY, and an idle connection closes after `drainIdle`. Resolves when all connections have ended.
   */
  drain(): Promise<void>
  /**
   * Refuses new connections, and closes idle connections at once. Other connections close when their data is sent, or after `timeout` ms.
   * Resolves when all are closed.
   */
  close(timeout: number): Promise<void>
}

/** ms. Many clients close idle connections earlier, and all clients must expect that a connection closes at any time. */
const DRAIN_IDLE = 10_000
/** Maximum bytes that wait in a connection until the client reads them, in addition to the system's own buffer. */
const WRITE_AHEAD_BYTES = 16 * 1024
const REJECTION_TIMEOUT_MS = 1_000

/**
 * Serves HTTP/1.1 and HTTP/2 on one port. With TLS, ALPN chooses the protocol. Without TLS, the first bytes show the protocol (HTTP/2 with
 * prior knowledge, RFC 9113 section 3.3).
 * @throws the system's error if the address cannot be used
 */
export async function listen(options: ListenerOptions): Promise<Listener> {
  const { headersTimeout = HEADERS_TIMEOUT, keepAlive, drainIdle = DRAIN_IDLE } = options
  const state: Http1State = { isDraining: false, sockets: new Slots(), upgraded: new WeakSet() }
  const h1 = createHttp1Server(options, { headersTimeout, keepAlive }, state)
  const h2 = createHttp2Server(options)
  const sockets = new Slots<net.Socket>()
  const descriptors = descriptorBounds()
  const isFull = (socket: net.Socket) => sockets.size > options.maxConnections() || descriptorOf(socket) >= descriptors.clients
  const isBlocked = (socket: net.Socket) => options.resetLimit.blocks(peerOf(socket))
  const handOff = (socket: net.Socket, isHttp2: boolean) => {
    if (!isHttp2) {
      const slot = state.sockets.add(socket)
      socket.once('close', () => state.sockets.delete(slot))
    }
    ;(isHttp2 ? h2 : h1).emit('connection', socket)
  }
  const front = options.tls
    ? tls.createServer(
        { cert: options.tls.cert, key: options.tls.key, ALPNProtocols: ['h2', 'http/1.1'], handshakeTimeout: headersTimeout, noDelay: true },
        socket => handOff(socket.on('error', ignore), socket.alpnProtocol === 'h2'),
      )
    : net.createServer({ allowHalfOpen: true, noDelay: true, highWaterMark: WRITE_AHEAD_BYTES }, socket => {
        if (isBlocked(socket)) socket.destroy()
        else if (isFull(socket)) rejectConnection(socket, options, descriptors)
        else detectHttp2(socket, headersTimeout, handOff)
      })
  front.on('connection', (socket: net.Socket) => {
    // Before the TLS handshake, no response is possible.
    if (options.tls && (isFull(socket) || isBlocked(socket))) socket.destroy()
    // A listener for `error` is required. The `close` event ends the exchanges of a broken connection.
    socket.on('error', ignore)
  })
  front.prependListener('connection', (socket: net.Socket) => {
    const slot = sockets.add(socket)
    socket.once('close', () => sockets.delete(slot))
  })
  front.on('tlsClientError', (error: Error, socket: tls.TLSSocket) => {
    options.onHandshakeFailure(error, socket)
    socket.destroy()
  })
  const sessions = new Set<http2.ServerHttp2Session>()
  h2.on('session', session => {
    sessions.add(session)
    session.once('close', () => sessions.delete(session))
    closeWhenIdle(session, headersTimeout, keepAlive)
    limitResets(session, options.resetLimit)
    if (state.isDraining) drainSession(session, drainIdle)
  })

  // Node starts its head timeout at the event `listening`. This server does not listen itself, so emit the event.
  h1.emit('listening')
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  front.once('error', reject)
  const { listen: { host, port, fd }, reusePort = false } = options
  front.listen({ ...(fd === undefined ? { host, port, reusePort } : { fd }), backlog: 4096 }, resolve)
  await promise
  front.off('error', reject).on('error', ignore)
  const url = urlOf(front, options.tls !== null)

  let closed: Promise<void> | null = null
  const stopListening = (): Promise<void> => closed ??= new Promise(resolve => front.close(() => resolve()))
  return {
    url,
    setCertificate: certificate => {
      if (front instanceof tls.Server) front.setSecureContext(certificate)
    },
    drain: () => {
      state.isDraining = true
      const closed = stopListening()
      h1.keepAliveTimeout = drainIdle
      const idleTimer = drainConnections(state, drainIdle)
      for (const session of sessions) drainSession(session, drainIdle)
      return closed.finally(() => clearTimeout(idleTimer))
    },
    close: timeout => {
      const closed = stopListening()
      // Stops the head timeout, and closes idle connections.
      h1.close()
      for (const session of sessions) session.close()
      const force = setTimeout(() => {
        for (const socket of sockets) socket.destroy()
      }, timeout)
      return closed.finally(() => clearTimeout(force))
    },
  }
}

/** The URL of the server. If it has none, the server is closed. @throws like `localUrl` */
function urlOf(front: net.Server, isSecure: boolean): string {
  try {
    return localUrl(front.address(), isSecure)
  } catch (error) {
    front.close()
    throw error
  }
}

/**
 * Sends one response to any request, and closes the connection without cutting off the response: the client's data is read for some time.
 * If almost no descriptors are left, the connection is closed at once: otherwise the system would cut off the next clients without a
 * response.
 */
function rejectConnection(socket: net.Socket, options: ListenerOptions, descriptors: DescriptorBounds): void {
  const descriptor = descriptorOf(socket)
  options.onNoRoom(socket, descriptor < descriptors.clients ? 'connection' : 'descriptor')
  if (descriptor >= descriptors.upstreams) return void socket.destroy()
  socket.resume().once('end', () => socket.destroy())
  const timer = setTimeout(() => socket.destroy(), REJECTION_TIMEOUT_MS)
  socket.once('close', () => clearTimeout(timer))
}

function ignore(): void {}
