import * as http from 'node:http'
import type * as net from 'node:net'
import type { Duplex } from 'node:stream'
import type { Slots } from '../base/slots.ts'
import { hasBody } from '../proxy/body.ts'
import type { ClientRequest, ClientResponse } from '../proxy/client.ts'
import { pendingResponse } from './pending-response.ts'

/** Bytes that the head of a request may have. */
export const MAX_HEADER_BYTES = 64 * 1024
/** Requests that wait on one connection behind the one that is under way. */
const MAX_PIPELINED = 100

/** What comes in over HTTP/1.1. */
export interface Http1Handlers {
  onRequest(req: ClientRequest, res: ClientResponse, awaitsContinue: boolean): void
  /** A WebSocket handshake, or a CONNECT. */
  onUpgrade(req: http.IncomingMessage, socket: Duplex, head: Buffer): void
  /** Bytes that are no HTTP request: the answer is written to the socket as it is. */
  onMalformed(error: NodeJS.ErrnoException, socket: Duplex): void
}

/** The connections of the server below. */
export interface Http1State {
  /** Each answer is to be the last of its connection. */
  isDraining: boolean
  /** Connections that began with HTTP/1.1. */
  readonly sockets: Slots<net.Socket>
  /** Those of them that went over to something else. */
  readonly upgraded: WeakSet<net.Socket>
}

/**
 * A server that listens nowhere: it is handed its connections.
 *
 * @param timeouts milliseconds, for a head and between requests
 */
export function createHttp1Server(
  handlers: Http1Handlers,
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
    afterPreviousResponses(req, res, waiting, () => {
      if (state.isDraining) res.shouldKeepAlive = false
      handlers.onRequest(req, res, awaitsContinue)
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
    else handlers.onUpgrade(req, socket, head)
  }
  server.on('upgrade', upgrade).on('connect', upgrade)
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => handlers.onMalformed(error, socket))
  return server
}

/**
 * Makes answers that have not begun the last of their connections, and closes the
 * connections on which nothing comes for a while. A request may be on its way on
 * any of them: what is closed at once may lose one.
 *
 * @returns the timer of the second part
 */
export function drainConnections({ sockets, upgraded }: Http1State, timeout: number): NodeJS.Timeout {
  const silent = new Map<net.Socket, number>()
  for (const socket of sockets) {
    if (upgraded.has(socket)) continue
    const pending = pendingResponse(socket)
    if (!pending) silent.set(socket, socket.bytesRead)
    else if (!pending.headersSent) pending.shouldKeepAlive = false
  }
  return setTimeout(() => {
    for (const [socket, bytes] of silent) if (socket.bytesRead === bytes) socket.destroySoon()
  }, timeout)
}

/**
 * Begins with a request when its answer can be sent. One that a client pipelines
 * behind another waits here: it costs no more than its head until its turn comes,
 * and is gone with its connection. Too many of them are an attack: node reads on
 * for as long as the first is not answered.
 *
 * @param waiting how many there are on each connection
 */
function afterPreviousResponses(
  { socket }: http.IncomingMessage, res: http.ServerResponse,
  waiting: WeakMap<net.Socket, number>, begin: () => void,
): void {
  if (res.socket) {
    begin()
    return
  }
  const count = (waiting.get(socket) ?? 0) + 1
  if (count > MAX_PIPELINED) {
    socket.destroy()
    return
  }
  waiting.set(socket, count)
  res.once('socket', () => {
    waiting.set(socket, (waiting.get(socket) ?? 1) - 1)
    begin()
  })
}

/**
 * Only WebSockets are upgraded; any other offer to upgrade is ignored, and every one of an HTTP/1.0
 * client (RFC 9110 section 7.8).
 */
function isWebSocket(req: http.IncomingMessage): boolean {
  const { method, httpVersion, headers: { upgrade } } = req
  const isOffered = upgrade?.toLowerCase() === 'websocket' && httpVersion !== '1.0'
  return method === 'GET' && isOffered && !hasBody(req)
}
