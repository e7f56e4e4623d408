import type * as http2 from 'node:http2'
import * as net from 'node:net'
import type { Duplex } from 'node:stream'
import * as tls from 'node:tls'
import { Slots } from '../base/slots.ts'
import { localUrl } from '../config/address.ts'
import type { Address } from '../config/types.ts'
import { createHttp1Server, drainConnections } from './http1.ts'
import type { Http1Handlers, Http1State } from './http1.ts'
import { createHttp2Server, closeWhenIdle, drainSession } from './http2.ts'
import { detectHttp2 } from './sniff.ts'

/** A certificate with its chain, and its private key; PEM. */
export interface Certificate {
  readonly cert: string | Buffer
  readonly key: string | Buffer
}

export interface ListenerOptions extends Http1Handlers {
  readonly listen: Address
  /** Other processes may listen there too; not unless told. */
  readonly reusePort?: boolean
  /** null = plain TCP. */
  readonly tls: Certificate | null
  /** Connections that are open at once. */
  readonly maxConnections: () => number
  /** Milliseconds that a head may take to arrive, a TLS handshake too; 30 s unless told. */
  readonly headersTimeout?: number
  /** Milliseconds that a connection is kept on which no request is under way; 75 s unless told. */
  readonly keepAlive?: number
  /** Milliseconds that a silent connection is left to itself after `leave`; 10 s unless told. */
  readonly drainIdle?: number
  /** A client did not come to speak TLS; its connection is closed. */
  onHandshakeFailure(error: NodeJS.ErrnoException, socket: net.Socket): void
  /** A connection too many: the answer is written to the socket as it is. */
  onTooManyConnections(socket: Duplex): void
}

export interface Listener {
  /** Such as `http://127.0.0.1:8080`, with the real port. */
  readonly url: string
  /** Shows another certificate from the next handshake on; nothing where TLS is not spoken. */
  setCertificate(certificate: Certificate): void
  /**
   * Takes no new connections, and serves the open ones to their end: each answer
   * over HTTP/1.1 says that it is the last of its connection, and HTTP/2 sessions
   * are told to go. Those that stay silent are closed after a while. Resolves when
   * all have ended.
   */
  drain(): Promise<void>
  /**
   * Refuses new connections, ends the idle ones at once, and the others when
   * what was written has gone out, or after `patience` milliseconds. Resolves
   * when all have ended.
   */
  close(timeout: number): Promise<void>
}

/** Milliseconds: a head that takes longer is no client of ours. */
const HEADERS_TIMEOUT = 30_000
/** Milliseconds between requests; above what load balancers in front usually keep. */
const KEEP_ALIVE = 75_000
/**
 * Milliseconds; many clients give up their idle connections before, and the others have to cope at any time.
 */
const DRAIN_IDLE = 10_000
/** Milliseconds in which a client that was turned away may read why. */
const REJECTION_TIMEOUT = 1_000

/**
 * HTTP/1.1 and HTTP/2 on one port: by ALPN with TLS, by the first bytes without
 * (HTTP/2 with prior knowledge, RFC 9113 section 3.3).
 *
 * @throws the system's error when the address cannot be listened on
 */
export async function listen(options: ListenerOptions): Promise<Listener> {
  const { headersTimeout = HEADERS_TIMEOUT, keepAlive = KEEP_ALIVE, drainIdle: leaveIdle = DRAIN_IDLE } = options
  const state: Http1State = { isDraining: false, sockets: new Slots(), upgraded: new WeakSet() }
  const h1 = createHttp1Server(options, { headersTimeout, keepAlive }, state)
  const h2 = createHttp2Server(options)
  const sockets = new Slots<net.Socket>()
  const isFull = () => sockets.size > options.maxConnections()
  const hand = (socket: net.Socket, isHttp2: boolean) => {
    if (!isHttp2) {
      const slot = state.sockets.add(socket)
      socket.once('close', () => state.sockets.delete(slot))
    }
    ;(isHttp2 ? h2 : h1).emit('connection', socket)
  }
  const front = options.tls
    ? tls.createServer(
        {
          cert: options.tls.cert,
          key: options.tls.key,
          ALPNProtocols: ['h2', 'http/1.1'],
          handshakeTimeout: headersTimeout,
          noDelay: true,
        },
        socket => hand(socket.on('error', ignore), socket.alpnProtocol === 'h2'),
      )
    : net.createServer({ allowHalfOpen: true, noDelay: true }, socket => {
        if (isFull()) rejectConnection(socket, options)
        else detectHttp2(socket, headersTimeout, hand)
      })
  front.on('connection', (socket: net.Socket) => {
    // Before a handshake there is no telling it anything.
    if (options.tls && isFull()) socket.destroy()
    // A connection that breaks ends its exchanges by their `close`; here it must only not go unheard.
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
    closeWhenIdle(session, keepAlive)
    if (state.isDraining) drainSession(session, leaveIdle)
  })

  // Node watches over slow heads from this event on; this server is
  // handed its connections by the one in front.
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
      const gone = stopListening()
      h1.keepAliveTimeout = leaveIdle
      const quiet = drainConnections(state, leaveIdle)
      for (const session of sessions) drainSession(session, leaveIdle)
      return gone.finally(() => clearTimeout(quiet))
    },
    close: patience => {
      const gone = stopListening()
      // It stops to watch over slow heads, and ends its idle connections.
      h1.close()
      for (const session of sessions) session.close()
      const force = setTimeout(() => {
        for (const socket of sockets) socket.destroy()
      }, patience)
      return gone.finally(() => clearTimeout(force))
    },
  }
}

/** @throws where it cannot have one, as a listener does: it is closed then */
function urlOf(front: net.Server, isSecure: boolean): string {
  try {
    return localUrl(front.address(), isSecure)
  } catch (error) {
    front.close()
    throw error
  }
}

/** One answer, whatever was asked, and an end that does not cut it off. */
function rejectConnection(socket: net.Socket, options: ListenerOptions): void {
  options.onTooManyConnections(socket)
  socket.resume().once('end', () => socket.destroy())
  const timer = setTimeout(() => socket.destroy(), REJECTION_TIMEOUT)
  socket.once('close', () => clearTimeout(timer))
}

function ignore(): void {}
