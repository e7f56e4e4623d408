import { AsyncLocalStorage } from 'node:async_hooks'
import type { Agent } from 'node:http'
import type { Dispatcher } from 'undici'
import { ConnectionAge } from './connection-age.ts'
import { createConnector, secureContextFor } from './connector.ts'
import type { Connector, ConnectorOptions } from './connector.ts'
import { DiallingAgent } from './dialling-agent.ts'
import type { HeaderRules, HeaderSource } from './headers.ts'
import { fixHttp2Streams } from '../patches/http2-streams.ts'
import { Pool } from './pool.ts'
import { acceptUnsolicitedContinue } from '../patches/unsolicited-continue.ts'

/** A request to an upstream, as the passes of the proxy complete it. */
export interface OutgoingRequest {
  readonly method: string
  /** Path and query: below that of the upstream's url before the pass `address`, the whole of it after. */
  path: string
  /** Flat names and values, as they are sent. */
  readonly headers: string[]
  body: Buffer | null
  /** What the headers are made of. */
  readonly source: HeaderSource
}

/** What happens to a request that was sent; the callbacks are undici's. */
export type ResponseHandler = Dispatcher.DispatchHandler
export type Controller = Dispatcher.DispatchController

/** The pooled connections to one upstream. */
export interface Transport {
  /** The callbacks come from connections that are for all exchanges: not in the asynchronous context of the caller. */
  send(request: Omit<OutgoingRequest, 'source'>, handler: ResponseHandler): void
  /**
   * A connection is breaking at this moment. A response that "ends" meanwhile was
   * cut: where only the end of the connection marks the end of a body, undici
   * takes a reset for one.
   */
  readonly breaking: boolean
  /** A connection was made at this moment: the request that starts now is its first. */
  readonly fresh: boolean
  /** Makes connections for node's own client, to speak HTTP/1.1 on; not of the pool. */
  readonly agent: Agent
  /** Finishes what runs, then closes the connections. */
  close(): Promise<void>
  /** Ends everything now. */
  destroy(): Promise<void>
}

/** An upstream as requests reach it; made once, when the configuration is loaded. */
export interface UpstreamAddress {
  /** Origin and path prefix. */
  readonly url: URL
  /** Host and port as in the url. */
  readonly host: string
  /** The path of the url without a final slash: what goes in front of a path. */
  readonly prefix: string
  readonly headerRules: HeaderRules
  readonly transport: Transport
}

/** The connect timeout is the longest of the routes that use it. */
export interface TransportOptions extends Pick<ConnectorOptions, 'socketPath' | 'connectTimeout'> {
  readonly origin: string
  /** A PEM file whose roots are trusted besides the usual ones. */
  readonly ca: string | null
  /** ms after which a connection takes no more requests; default: it takes them as long as it is open. */
  readonly connectionAge?: number
}

/**
 * A pool of kept-alive connections: as many as there are requests in progress
 * over HTTP/1.1, one shared where the upstream offers HTTP/2 by ALPN.
 *
 * undici's own timeouts are off: the exchange's deadlines are the only ones, so
 * that each has its own error and a paused reader is not taken for a dead peer.
 * What is left is that for an HTTP/2 peer that allows no streams: it is left then,
 * with all that waits for it to.
 * @throws the system's error for a CA file that cannot be read
 */
export function createTransport(options: TransportOptions): Transport {
  fixHttp2Streams()
  const state: ConnectionState = { breaking: false, fresh: false }
  const dialling = { ...options, trust: options.ca === null ? null : secureContextFor(options.ca) }
  const pool = new Pool(options.origin, trackConnections(createConnector({ ...dialling, http2: true }), state), {
    pipelining: 1,
    headersTimeout: options.connectTimeout,
    bodyTimeout: 0,
    keepAliveTimeout: 60_000,
    maxHeaderSize: 64 * 1024,
    // Its other parser, which the environment could choose otherwise.
    useMilo: false,
  }, new ConnectionAge(options.connectionAge ?? Infinity))
  return {
    send: ({ method, path, headers, body }, handler) =>
      pool.dispatch({ method: method as Dispatcher.HttpMethod, path, headers, body, headersTimeout: 0 }, handler),
    get breaking() {
      return state.breaking
    },
    get fresh() {
      return state.fresh
    },
    agent: new DiallingAgent(new URL(options.origin).protocol, createConnector({ ...dialling, http2: false })),
    close: () => pool.close(),
    destroy: () => pool.destroy(new Error('the gateway is closing')),
  }
}

const BROKEN_CONNECTION_CODES = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE', 'ECONNABORTED'])

/** Did the connection break below the request? */
export function isBrokenConnection(error: Error & { code?: string }): boolean {
  return BROKEN_CONNECTION_CODES.has(error.code ?? '')
}

/** What happens to some connection at this moment. */
interface ConnectionState {
  breaking: boolean
  fresh: boolean
}

/** Tells of what happens to its connections. */
function trackConnections(connect: Connector, state: ConnectionState): Connector {
  // Connections are for all exchanges: what happens on one is not in the course of that which opened it.
  const outside = AsyncLocalStorage.snapshot()
  return (target, callback) => {
    outside(connect, target, (...args) => {
      const socket = args[1]
      socket?.prependListener('error', () => {
        state.breaking = true
      })
      // After a GOAWAY node ends its half, and would wait for ever for a peer that keeps the other open.
      socket?.once('finish', () => socket.destroy())
      state.fresh = true
      callback(...args)
      state.fresh = false
      if (socket) acceptUnsolicitedContinue(socket)
      // undici has its listeners by now: it hears of an error between these two.
      socket?.on('error', () => {
        state.breaking = false
      })
    })
  }
}
