import * as http from 'node:http'
import * as http2 from 'node:http2'
import * as net from 'node:net'
import * as tls from 'node:tls'
import type { Duplex } from 'node:stream'
import { localUrl } from '../config/address.ts'
import type { Address } from '../config/types.ts'
import { hasBody } from '../proxy/body.ts'
import type { ClientRequest, ClientResponse } from '../proxy/client.ts'
import { Slots } from '../slots.ts'
import { pendingResponse } from './pending.ts'

/** A certificate with its chain, and its private key; PEM. */
export interface Certificate {
  readonly cert: string | Buffer
  readonly key: string | Buffer
}

export interface ListenerOptions {
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
  readonly leaveIdle?: number
  onRequest(req: ClientRequest, res: ClientResponse, awaitsContinue: boolean): void
  /** A WebSocket handshake, or a CONNECT. */
  onUpgrade(req: http.IncomingMessage, socket: Duplex, head: Buffer): void
  /** Bytes that are no HTTP request: the answer is written to the socket as it is. */
  onMalformed(error: NodeJS.ErrnoException, socket: Duplex): void
  /** A connection too many: the answer is written to the socket as it is. */
  onFull(socket: Duplex): void
}

export interface Listener {
  /** Such as `http://127.0.0.1:8080`, with the real port. */
  readonly url: string
  /** Shows another certificate from the next handshake on; nothing where TLS is not spoken. */
  certify(certificate: Certificate): void
  /**
   * Takes no new connections, and serves the open ones to their end: each answer
   * over HTTP/1.1 says that it is the last of its connection, and HTTP/2 sessions
   * are told to go. Those that stay silent are closed after a while. Resolves when
   * all have ended.
   */
  leave(): Promise<void>
  /**
   * Refuses new connections, ends the idle ones at once, and the others when
   * what was written has gone out, or after `patience` milliseconds. Resolves
   * when all have ended.
   */
  close(patience: number): Promise<void>
}

/** Milliseconds: a head that takes longer is no client of ours. */
const HEADERS_TIMEOUT = 30_000
/** Milliseconds between requests; above what load balancers in front usually keep. */
const KEEP_ALIVE = 75_000
const MAX_HEADER_BYTES = 64 * 1024
/** Requests that wait on one connection behind the one that is under way. */
const MOST_PIPELINED = 100
/**
 * Milliseconds; many clients give up their idle connections before, and the others have to cope at any time.
 */
const LEAVE_IDLE = 10_000
/** Milliseconds in which a client that was turned away may read why. */
const TURNED_AWAY = 1_000

/**
 * HTTP/1.1 and HTTP/2 on one port: by ALPN with TLS, by the first bytes without
 * (HTTP/2 with prior knowledge, RFC 9113 section 3.3).
 *
 * @throws the system's error when the address cannot be listened on
 */
export async function listen(options: ListenerOptions): Promise<Listener> {
  const { headersTimeout = HEADERS_TIMEOUT, keepAlive = KEEP_ALIVE, leaveIdle = LEAVE_IDLE } = options
  const state: Http1State = { leaving: false, sockets: new Slots(), upgraded: new WeakSet() }
  const h1 = http1(options, { headersTimeout, keepAlive }, state)
  const h2 = http2Server(options)
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
        if (isFull()) turnAway(socket, options)
        else sniff(socket, headersTimeout, hand)
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
  front.on('tlsClientError', (_error: Error, socket: tls.TLSSocket) => socket.destroy())
  const sessions = new Set<http2.ServerHttp2Session>()
  h2.on('session', session => {
    sessions.add(session)
    session.once('close', () => sessions.delete(session))
    endWhenIdle(session, keepAlive)
    if (state.leaving) sendAway(session, leaveIdle)
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

  let closed: Promise<void> | null = null
  const stopListening = (): Promise<void> => closed ??= new Promise(resolve => front.close(() => resolve()))
  return {
    url: localUrl(front.address() as net.AddressInfo, options.tls !== null),
    certify: certificate => {
      if (front instanceof tls.Server) front.setSecureContext(certificate)
    },
    leave: () => {
      state.leaving = true
      const gone = stopListening()
      h1.keepAliveTimeout = leaveIdle
      const quiet = leaveConnections(state, leaveIdle)
      for (const session of sessions) sendAway(session, leaveIdle)
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

/**
 * Makes answers that have not begun the last of their connections, and closes the
 * connections on which nothing comes for a while. A request may be on its way on
 * any of them: what is closed at once may lose one.
 *
 * @returns the timer of the second part
 */
function leaveConnections({ sockets, upgraded }: Http1State, patience: number): NodeJS.Timeout {
  const silent = new Map<net.Socket, number>()
  for (const socket of sockets) {
    if (upgraded.has(socket)) continue
    const pending = pendingResponse(socket)
    if (!pending) silent.set(socket, socket.bytesRead)
    else if (!pending.headersSent) pending.shouldKeepAlive = false
  }
  return setTimeout(() => {
    for (const [socket, bytes] of silent) if (socket.bytesRead === bytes) socket.destroySoon()
  }, patience)
}

/**
 * Tells a session to go when the next request has arrived on it, which is served:
 * a GOAWAY names it as the last, and so whatever is on its way behind it as not
 * looked at, to be sent again elsewhere (RFC 9113 section 6.8). The gentler way of
 * that section, a first GOAWAY that refuses nothing, is not open: nghttp2 takes no
 * stream after any that node can send. A silent session goes after `patience`.
 */
function sendAway(session: http2.ServerHttp2Session, patience: number): void {
  const timer = setTimeout(() => session.close(), patience)
  session.once('stream', () => session.close())
  session.once('close', () => clearTimeout(timer))
}

/**
 * Node watches over the idle connections of HTTP/1.1 alone: a peer
 * that is gone without a word would stay for ever.
 */
function endWhenIdle(session: http2.ServerHttp2Session, patience: number): void {
  let open = 0
  session.on('stream', stream => {
    open++
    stream.once('close', () => open--)
  })
  session.setTimeout(patience)
  session.on('timeout', () => {
    if (open === 0) session.close()
  })
}

interface Http1State {
  leaving: boolean
  /** Connections that began with HTTP/1.1. */
  readonly sockets: Slots<net.Socket>
  /** Those of them that went over to something else. */
  readonly upgraded: WeakSet<net.Socket>
}

function http1(
  options: ListenerOptions,
  { headersTimeout, keepAlive }: { headersTimeout: number; keepAlive: number }, state: Http1State,
): http.Server {
  const server = http.createServer({
    // The exchange has its own deadlines, and an upload may take as long as they say.
    requestTimeout: 0,
    headersTimeout,
    connectionsCheckingInterval: Math.min(1_000, headersTimeout),
    keepAliveTimeout: keepAlive,
    maxHeaderSize: MAX_HEADER_BYTES,
    // A missing Host is answered like every other error, not by node.
    requireHostHeader: false,
    shouldUpgradeCallback: isWebSocket,
  } as http.ServerOptions)
  server.timeout = 0
  // The size of a head is its limit. Past a count, node would drop headers without a word.
  server.maxHeadersCount = 0
  const waiting = new WeakMap<net.Socket, number>()
  const take = (req: http.IncomingMessage, res: http.ServerResponse, awaitsContinue: boolean) => {
    inTurn(req, res, waiting, () => {
      if (state.leaving) res.shouldKeepAlive = false
      options.onRequest(req, res, awaitsContinue)
    })
  }
  server.on('request', (req, res) => take(req, res, false))
  server.on('checkContinue', (req, res) => take(req, res, true))
  server.on('checkExpectation', (req, res) => take(req, res, false))
  const upgrade = (req: http.IncomingMessage, socket: Duplex, head: Buffer) => {
    // Pipelined behind a request that is not answered yet, or in front of a body of its own (then node hands
    // out something less than a socket): nobody does that.
    state.upgraded.add(req.socket)
    if (pendingResponse(req.socket) || socket !== req.socket) req.socket.destroy()
    else options.onUpgrade(req, socket, head)
  }
  server.on('upgrade', upgrade).on('connect', upgrade)
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => options.onMalformed(error, socket))
  return server
}

function http2Server(options: ListenerOptions): http2.Http2Server {
  const server = http2.createServer({
    settings: { maxConcurrentStreams: 1_000, maxHeaderListSize: MAX_HEADER_BYTES },
    // As over HTTP/1.1, the size is the limit; node's own would be 128 headers.
    maxHeaderListPairs: MAX_HEADER_BYTES / 32,
    // An upstream may say twice what is to be said once: over HTTP/1.1
    // that passes, and here node would throw.
    strictSingleValueFields: false,
  })
  server.on('request', (req, res) => options.onRequest(req, res, false))
  server.on('checkContinue', (req, res) => options.onRequest(req, res, true))
  // What nobody listens for node answers itself: without a body, and without the gateway's headers. It knows
  // one spelling of the expectation alone.
  server.on('checkExpectation', (req, res) => {
    options.onRequest(req, res, req.headers.expect?.toLowerCase() === '100-continue')
  })
  server.on('connect', (req, res) => options.onRequest(req, res, false))
  server.on('sessionError', ignore)
  return server
}

/**
 * Begins with a request when its answer can be sent. One that a client pipelines
 * behind another waits here: it costs no more than its head until its turn comes,
 * and is gone with its connection. Too many of them are an attack: node reads on
 * for as long as the first is not answered.
 *
 * @param waiting how many there are on each connection
 */
function inTurn(
  { socket }: http.IncomingMessage, res: http.ServerResponse,
  waiting: WeakMap<net.Socket, number>, begin: () => void,
): void {
  if (res.socket) {
    begin()
    return
  }
  const count = (waiting.get(socket) ?? 0) + 1
  if (count > MOST_PIPELINED) {
    socket.destroy()
    return
  }
  waiting.set(socket, count)
  res.once('socket', () => {
    waiting.set(socket, (waiting.get(socket) ?? 1) - 1)
    begin()
  })
}

/** One answer, whatever was asked, and an end that does not cut it off. */
function turnAway(socket: net.Socket, options: ListenerOptions): void {
  options.onFull(socket)
  socket.resume().once('end', () => socket.destroy())
  const timer = setTimeout(() => socket.destroy(), TURNED_AWAY)
  socket.once('close', () => clearTimeout(timer))
}

/** Only WebSockets are upgraded; any other offer to upgrade is ignored (RFC 9110 section 7.8). */
function isWebSocket(req: http.IncomingMessage): boolean {
  return req.method === 'GET' && req.headers.upgrade?.toLowerCase() === 'websocket' && !hasBody(req)
}

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')

/** Looks at the first bytes of a plain connection: HTTP/2's preface, or anything else. */
function sniff(
  socket: net.Socket, patience: number, hand: (socket: net.Socket, isHttp2: boolean) => void,
): void {
  let seen: Buffer = Buffer.alloc(0)
  const timer = setTimeout(() => socket.destroy(), patience)
  socket.once('close', () => clearTimeout(timer))
  const onEnd = () => socket.destroy()
  const onData = (chunk: Buffer) => {
    seen = seen.length === 0 ? chunk : Buffer.concat([seen, chunk])
    const length = Math.min(seen.length, PREFACE.length)
    const alike = seen.compare(PREFACE, 0, length, 0, length) === 0
    if (alike && length < PREFACE.length) return
    clearTimeout(timer)
    socket.off('data', onData).off('end', onEnd).pause()
    socket.unshift(seen)
    // An HTTP/2 session does not listen for the end of its connection: this ends the other half with it.
    if (alike) socket.allowHalfOpen = false
    hand(socket, alike)
    // It takes what was put back by itself, and loses it where the flow is on.
    if (!alike) socket.resume()
  }
  socket.on('data', onData).on('end', onEnd)
}

function ignore(): void {}
