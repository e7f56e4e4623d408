import * as http from 'node:http'
import type * as net from 'node:net'

/** Maximum size of a request head, in bytes. */
export const MAX_HEADER_BYTES = 64 * 1024
/** Maximum ms for a request head. No client takes longer. */
export const HEADERS_TIMEOUT = 30_000
/** Maximum idle ms between requests, for servers that are behind no load balancer. */
const KEEP_ALIVE = 75_000
/** Maximum ms for head and body, for servers that expect no body. */
const REQUEST_TIMEOUT = 30_000
/** ms between two checks for requests that take too long. */
const CHECK_INTERVAL = 1_000

/** Timeouts in ms. */
export interface ServerTimeouts {
  readonly headersTimeout?: number
  /** Maximum time for head and body; 0 = no limit, because the server has its own deadlines for bodies. */
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
    // Node's default is 30 s: a connection with a late head would stay open for up to 30 s longer.
    connectionsCheckingInterval: Math.min(CHECK_INTERVAL, headersTimeout),
    maxHeaderSize: MAX_HEADER_BYTES,
  }
}

/**
 * Creates a server for a few clients, in addition to the API. Above the maximum, a new connection closes the connection whose last request
 * is the oldest.
 */
export function createSideServer(handler: http.RequestListener, maxConnections: number, timeouts: ServerTimeouts = {}): http.Server {
  const server = http.createServer(serverOptions(timeouts), handler)
  // This timeout also ends responses that the client does not read.
  server.timeout = timeouts.keepAlive ?? KEEP_ALIVE
  /** Open connections, ordered by the time of their last request. */
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
