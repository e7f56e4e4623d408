import * as http from 'node:http'
import type * as net from 'node:net'
import type { Duplex } from 'node:stream'
import { serverOptions } from '../../base/server-limits.ts'
import type { Slots } from '../../base/slots.ts'
import type { ClientRequest, ClientResponse } from '../../proxy/client/client.ts'
import { hasBody } from '../../proxy/client/read-body.ts'
import { pendingResponse } from './pending-response.ts'
import { hasExtraSpaces, hasHttp1Version } from './request-line.ts'

/** Pipelined requests that may wait on one connection. */
const MAX_PIPELINED = 100

export interface Http1Handlers {
  onRequest(req: ClientRequest, res: ClientResponse, awaitsContinue: boolean): void
  /** A WebSocket handshake, or a CONNECT. */
  onUpgrade(req: http.IncomingMessage, socket: Duplex, head: Buffer): void
  /**
   * Bytes that are not an HTTP request, at most once for a connection. The handler writes the response to the socket.
   * @param own node's unused response object for the malformed request, if node has made one
   */
  onMalformed(error: NodeJS.ErrnoException, socket: Duplex, own?: http.ServerResponse): void
}

export interface Http1State {
  /** Each response is the last one of its connection. */
  isDraining: boolean
  /** Connections that started with HTTP/1.1. */
  readonly sockets: Slots<net.Socket>
  /** Connections that switched to another protocol. */
  readonly upgraded: WeakSet<net.Socket>
}

/** Creates a server that does not listen: the listener hands it connections. @param timeouts ms for a head, between requests */
export function createHttp1Server(
  handlers: Http1Handlers,
  { headersTimeout, keepAlive }: { headersTimeout: number; keepAlive: number }, state: Http1State,
): http.Server {
  const server = http.createServer({
    // No timeout for the whole request: the deadlines of the exchange also bound uploads.
    ...serverOptions({ headersTimeout, requestTimeout: 0, keepAlive }),
    // The gateway responds to a missing Host itself, as to any other error.
    requireHostHeader: false,
    shouldUpgradeCallback: isWebSocket,
  } as http.ServerOptions)
  server.timeout = 0
  // The head is limited by size. With a count limit, node would drop headers silently.
  server.maxHeadersCount = 0
  const waiting = new WeakMap<net.Socket, number>()
  /** Connections whose first request has arrived. A client writes all its request lines in the same way. */
  const known = new WeakSet<net.Socket>()
  const isWellFormed = (req: http.IncomingMessage) => {
    if (!hasHttp1Version(req)) return false
    if (known.has(req.socket)) return true
    known.add(req.socket)
    return !hasExtraSpaces(req)
  }
  const accept = (req: http.IncomingMessage, res: http.ServerResponse, awaitsContinue: boolean) => {
    const error = isWellFormed(req) ? null : Object.assign(new Error('malformed request line'), { code: 'REQUEST_LINE' })
    afterPreviousResponses(req, res, waiting, () => {
      if (error) return handlers.onMalformed(error, req.socket, res)
      if (state.isDraining) res.shouldKeepAlive = false
      handlers.onRequest(req, res, awaitsContinue)
    })
  }
  server.on('request', (req, res) => accept(req, res, false))
  server.on('checkContinue', (req, res) => accept(req, res, true))
  server.on('checkExpectation', (req, res) => accept(req, res, false))
  const upgrade = (req: http.IncomingMessage, socket: Duplex, head: Buffer) => {
    // Pipelined behind an unfinished request, or followed by a body (node passes no real socket then): no real client does that.
    state.upgraded.add(req.socket)
    if (pendingResponse(req.socket) || socket !== req.socket) req.socket.destroy()
    else handlers.onUpgrade(req, socket, head)
  }
  server.on('upgrade', upgrade).on('connect', upgrade)
  const broken = new WeakSet<Duplex>()
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (broken.has(socket)) return
    broken.add(socket)
    handlers.onMalformed(error, socket)
  })
  return server
}

/**
 * Drains connections: a response that has not started becomes the last one of its connection. An idle connection closes after
 * `timeout` ms, not at once: a request may already be on its way. @returns the timer that closes idle connections
 */
export function drainConnections({ sockets, upgraded }: Http1State, timeout: number): NodeJS.Timeout {
  const idle = new Map<net.Socket, number>()
  for (const socket of sockets) {
    if (upgraded.has(socket)) continue
    const pending = pendingResponse(socket)
    if (!pending) idle.set(socket, socket.bytesRead)
    else if (!pending.headersSent) pending.shouldKeepAlive = false
  }
  return setTimeout(() => {
    for (const [socket, bytes] of idle) if (socket.bytesRead === bytes) socket.destroySoon()
  }, timeout)
}

/**
 * Starts a request when its response can be sent. A pipelined request waits for the previous response, with only its head in
 * memory. Too many waiting requests (`waiting`, by connection) are an attack: the connection is destroyed.
 */
function afterPreviousResponses(
  { socket }: http.IncomingMessage, res: http.ServerResponse,
  waiting: WeakMap<net.Socket, number>, begin: () => void,
): void {
  if (res.socket) return begin()
  const count = (waiting.get(socket) ?? 0) + 1
  if (count > MAX_PIPELINED) return void socket.destroy()
  waiting.set(socket, count)
  res.once('socket', () => {
    waiting.set(socket, (waiting.get(socket) ?? 1) - 1)
    begin()
  })
}

/** Other upgrades, and those of HTTP/1.0 clients, are ignored (RFC 9110 section 7.8). */
function isWebSocket(req: http.IncomingMessage): boolean {
  const { method, httpVersion, headers: { upgrade } } = req
  const isOffered = upgrade?.toLowerCase() === 'websocket' && httpVersion === '1.1'
  return method === 'GET' && isOffered && !hasBody(req)
}
