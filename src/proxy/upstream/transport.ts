import { AsyncLocalStorage } from 'node:async_hooks'
import type { Agent } from 'node:http'
import type { Dispatcher } from 'undici'
import { ConnectionAge } from './connection-age.ts'
import { secureContextFor, type Connector, type ConnectorOptions, type KeyPair } from './connector.ts'
import { DiallingAgent } from './dialling-agent.ts'
import type { HeaderRules, HeaderSource } from './headers.ts'
import type { ProxyServer } from '../../base/outgoing-proxy.ts'
import { fixHttp2Streams } from '../../patches/http2-streams.ts'
import { Pool } from './pool.ts'
import { createRoute } from './tunnel.ts'
import { acceptUnsolicitedContinue } from '../../patches/unsolicited-continue.ts'

/** A request to an upstream. The passes of the proxy (http-proxy.ts) complete it. */
export interface OutgoingRequest {
  readonly method: string
  /** Path and query. The pass `address` makes them complete; before that they are relative to the upstream's url. */
  path: string
  /** Flat, as sent. */
  readonly headers: string[]
  body: Buffer | null
  readonly source: HeaderSource
}

export type ResponseHandler = Dispatcher.DispatchHandler
export type Controller = Dispatcher.DispatchController

/** The pooled connections to one upstream. */
export interface Transport {
  /** The handler does not run in the caller's async context, because all exchanges share the connections. */
  readonly send: (request: Omit<OutgoingRequest, 'source'>, handler: ResponseHandler) => void
  /** true while a connection emits its error. A body without length that ends then is incomplete: undici takes a reset for its end. */
  readonly breaking: boolean
  /** true while a new connection is reported: a request that starts then is the first on that connection. */
  readonly fresh: boolean
  /** HTTP/1.1 connections outside the pool, for node's own client. */
  readonly agent: Agent
  /** Finishes running requests, then closes the connections. */
  close(): Promise<void>
  destroy(): Promise<void>
}

/** Where and how to send requests to an upstream. Built when the configuration is loaded. */
export interface UpstreamAddress {
  readonly url: URL
  /** Host and port as in the url. */
  readonly host: string
  /** The path of the url without a final slash. */
  readonly prefix: string
  readonly headerRules: HeaderRules
  readonly transport: Transport
}

/** `connectTimeout` is the longest connect timeout of the routes that use the upstream. */
export interface TransportOptions extends Pick<ConnectorOptions, 'socketPath' | 'connectTimeout'> {
  readonly origin: string
  /** A PEM file with additional trusted roots. */
  readonly ca: string | null
  /** Absent = no certificate of the gateway's own, and the host's name. */
  readonly tls?: { readonly pair: KeyPair | null, readonly serverName: string | null } | null
  /** Absent = direct. */
  readonly proxy?: ProxyServer | null
  /** Milliseconds after which a connection takes no more requests; absent = no limit. */
  readonly connectionAge?: number
}

/**
 * A pool of kept-alive connections. undici's timeouts are off, because each deadline of the exchange has its own error, and because undici
 * takes a paused reader for a dead peer. Only `headersTimeout` stays: it closes the connection of an HTTP/2 peer that allows no streams.
 * @throws the system's error for a file that cannot be read
 */
export function createTransport(options: TransportOptions): Transport {
  fixHttp2Streams()
  const state = { breaking: false, fresh: false }
  const { proxy = null, tls = null, ca } = options
  const pair = tls?.pair ?? null
  const trust = ca === null && pair === null ? null : secureContextFor(ca, pair)
  const dialling = { ...options, trust, serverName: tls?.serverName ?? null }
  const pool = new Pool(options.origin, trackConnections(createRoute(proxy, { ...dialling, http2: true }), state), {
    pipelining: 1,
    headersTimeout: options.connectTimeout,
    bodyTimeout: 0,
    keepAliveTimeout: 60_000,
    maxHeaderSize: 64 * 1024,
    // Set this, because an environment variable can enable undici's other HTTP parser.
    useMilo: false,
  }, new ConnectionAge(options.connectionAge ?? Infinity))
  return Object.assign(state, {
    send: ({ method, path, headers, body }: Omit<OutgoingRequest, 'source'>, handler: ResponseHandler) =>
      pool.dispatch({ method: method as Dispatcher.HttpMethod, path, headers, body, headersTimeout: 0 }, handler),
    agent: new DiallingAgent(new URL(options.origin).protocol, createRoute(proxy, { ...dialling, http2: false })),
    close: () => pool.close(),
    destroy: () => pool.destroy(new Error('the gateway is closing')),
  })
}

const BROKEN_CONNECTION_CODES = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE', 'ECONNABORTED'])

export function isBrokenConnection(error: Error & { code?: string }): boolean {
  return BROKEN_CONNECTION_CODES.has(error.code ?? '')
}

/** The connection events that are being emitted now. */
interface ConnectionState {
  breaking: boolean
  fresh: boolean
}

function trackConnections(connect: Connector, state: ConnectionState): Connector {
  // The events of a connection, which many exchanges share, must not run in the async context of the exchange that opened it.
  const outside = AsyncLocalStorage.snapshot()
  return (target, callback) => {
    outside(connect, target, (...args) => {
      const socket = args[1]
      socket?.prependListener('error', () => {
        state.breaking = true
      })
      // After a GOAWAY, node ends its half of the connection, and would wait forever for a peer that keeps the other half open.
      socket?.once('finish', () => socket.destroy())
      state.fresh = true
      callback(...args)
      state.fresh = false
      if (socket) acceptUnsolicitedContinue(socket)
      // undici has attached its listeners already, so they run between the two `error` listeners of this function.
      socket?.on('error', () => {
        state.breaking = false
      })
    })
  }
}
