import * as http from 'node:http'
import type * as net from 'node:net'

/** Maximum size of a request head, in bytes. */
export const MAX_HEADER_BYTES = 64 * 1024
/** Milliseconds: no real client takes longer for a request head. */
export const HEADERS_TIMEOUT = 30_000
/** Milliseconds between requests to a server that is behind no load balancer. */
const KEEP_ALIVE = 75_000
/** Milliseconds for head and body, where a body is not expected. */
const REQUEST_TIMEOUT = 30_000
/** Milliseconds between two checks for late requests. */
const CHECK_INTERVAL = 1_000

/** In milliseconds. */
export interface ServerTimeouts {
  readonly headersTimeout?: number
  /** For head and body; 0 = the server has its own deadlines for bodies. */
  readonly requestTimeout?: number
  /** Maximum idle time between requests. */
  readonly keepAlive?: number
}

/** The limits of every HTTP/1.1 server of the gateway. */
export function serverOptions(
  { headersTimeout = HEADERS_TIMEOUT, requestTimeout = REQUEST_TIMEOUT, keepAlive = KEEP_ALIVE }: ServerTimeouts = {},
): http.ServerOptions {
  return {
    headersTimeout,
    requestTimeout,
    keepAliveTimeout: keepAlive,
    // With node's default of 30 s, a late head would hold its connection that much longer.
    connectionsCheckingInterval: Math.min(CHECK_INTERVAL, headersTimeout),
    maxHeaderSize: MAX_HEADER_BYTES,
  }
}

/** A server beside the API, for a few clients. A connection above the limit closes the one whose last request is the oldest. */
export function createSideServer(handler: http.RequestListener, maxConnections: number, timeouts: ServerTimeouts = {}): http.Server {
  const server = http.createServer(serverOptions(timeouts), handler)
  // This timeout also ends responses that are not read.
  server.timeout = timeouts.keepAlive ?? KEEP_ALIVE
  /** Open connections in the order of their last request. */
  const open = new Set<net.Socket>()
  server.on('connection', socket => {
    const [oldest] = open
    if (oldest !== undefined && open.size >= maxConnections) {
      open.delete(oldest)
      oldest.destroy()
    }
    open.add(socket)
    socket.once('close', () => open.delete(socket))
  })
  server.on('request', ({ socket }) => {
    if (open.delete(socket)) open.add(socket)
  })
  return server
}
