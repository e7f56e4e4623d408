import * as http from 'node:http'
import type * as net from 'node:net'
import type { Duplex } from 'node:stream'
import { serverOptions } from '../../base/server-limits.ts'
import type { Slots } from '../../base/slots.ts'
import type { ClientRequest, ClientResponse } from '../../proxy/client/client.ts'
import { hasBody } from '../../proxy/client/read-body.ts'
import { pendingResponse } from './pending-response.ts'
import { hasExtraSpaces, hasHttp1Version } from './request-line.ts'

/** Maximum number of pipelined requests that wait on one connection. */
const MAX_PIPELINED = 100

export interface Http1Handlers {
  onRequest(req: ClientRequest, res: ClientResponse, awaitsContinue: boolean): void
  /** Handles a WebSocket handshake, or a CONNECT request. */
  onUpgrade(req: http.IncomingMessage, socket: Duplex, head: Buffer): void
  /**
   * Handles bytes that are not an HTTP request. Called at most once for a connection. The handler writes the response to the socket.
   * @param own node's unused response object for the malformed request; absent if node has created none
   */
  onMalformed(error: NodeJS.ErrnoException, socket: Duplex, own?: http.ServerResponse): void
}

export interface Http1State {
  /** true if each response is the last response of its connection. */
  isDraining: boolean
  /** Connections that started with HTTP/1.1. */
  readonly sockets: Slots<net.Socket>
  /** Connections that switched to another protocol. */
  readonly upgraded: WeakSet<net.Socket>
}

/**
 * Creates a server that does not listen: the listener passes connections to it.
 * @param timeouts ms for a request head, and between requests
 */
export function createHttp1Server(
  handlers: Http1Handlers,
  { headersTimeout, keepAlive }: { headersTimeout: number; keepAlive: number }, state: Http1State,
): http.Server {
  const server = http.createServer({
    // Node must not limit the whole request: the deadlines of the exchange limit uploads too.
    ...serverOptions({ headersTimeout, requestTimeout: 0, keepAlive }),
    // The gateway itself responds to a request without Host, as to any other error.
    requireHostHeader: false,
    shouldUpgradeCallback: isWebSocket,
  } as http.ServerOptions)
  server.timeout = 0
  // The size limits the head. Node would silently drop headers above a maximum number.
  server.maxHeadersCount = 0
  const waiting = new WeakMap<net.Socket, number>()
  /** Connections whose first request was checked: a client writes all its request lines in the same way. */
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
    // The handshake follows an unfinished request, or has a body, for which node passes no real socket. No client does that.
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
 * Drains connections. A response that has not started becomes the last of its connection. An idle connection is closed after `timeout` ms,
 * because the client may have sent a request already.
 * @returns the timer that closes idle connections
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
 * Starts a request when its response can be sent. A pipelined request waits for the previous response; only its head is in memory. Too many
 * waiting requests are an attack, and the connection is destroyed.
 * @param waiting number of waiting requests of each connection
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

/**
 * Tells whether the request is a WebSocket handshake. Other upgrades, and upgrades of HTTP/1.0 clients, are ignored (RFC 9110 section 7.8).
 */
function isWebSocket(req: http.IncomingMessage): boolean {
  const { method, httpVersion, headers: { upgrade } } = req
  const isOffered = upgrade?.toLowerCase() === 'websocket' && httpVersion === '1.1'
  return method === 'GET' && isOffered && !hasBody(req)
}
