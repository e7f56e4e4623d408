import { AsyncLocalStorage } from 'node:async_hooks'
import type { Agent } from 'node:http'
import type { Dispatcher } from 'undici'
import { ConnectionAge } from './connection-age.ts'
import { createConnector, secureContextFor, type Connector, type ConnectorOptions } from './connector.ts'
import { DiallingAgent } from './dialling-agent.ts'
import type { HeaderRules, HeaderSource } from './headers.ts'
import { fixHttp2Streams } from '../../patches/http2-streams.ts'
import { Pool } from './pool.ts'
import { acceptUnsolicitedContinue } from '../../patches/unsolicited-continue.ts'

/** A request, which the passes of the proxy (http-proxy.ts) complete. */
export interface OutgoingRequest {
  readonly method: string
  /** Path and query: relative to the upstream's url before the pass `address`, complete after it. */
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
  /** The callbacks do not run in the caller's async context: all exchanges share connections. */
  readonly send: (request: Omit<OutgoingRequest, 'source'>, handler: ResponseHandler) => void
  /** A connection is breaking now. A body that "ends" meanwhile was cut: undici takes a reset for the end of a body without length. */
  readonly breaking: boolean
  /** A connection was made at this moment: a request that starts now is its first. */
  readonly fresh: boolean
  /** For node's own client: HTTP/1.1 connections outside the pool. */
  readonly agent: Agent
  /** Finishes running requests, then closes the connections. */
  close(): Promise<void>
  destroy(): Promise<void>
}

/** Made when the configuration is loaded. */
export interface UpstreamAddress {
  readonly url: URL
  /** Host and port as in the url. */
  readonly host: string
  /** The path of the url without a final slash. */
  readonly prefix: string
  readonly headerRules: HeaderRules
  readonly transport: Transport
}

/** The connect timeout is the longest of the routes that use the upstream. */
export interface TransportOptions extends Pick<ConnectorOptions, 'socketPath' | 'connectTimeout'> {
  readonly origin: string
  /** A PEM file with additional trusted roots. */
  readonly ca: string | null
  /** ms after which a connection takes no more requests; absent = no limit. */
  readonly connectionAge?: number
}

/**
 * A pool of kept-alive connections. undici's timeouts are off: each deadline of the exchange has its own error, and a paused reader is no
 * dead peer. `headersTimeout` stays for an HTTP/2 peer that allows no streams: its connection closes, with all requests that wait for it.
 * @throws the system's error for a CA file that cannot be read
 */
export function createTransport(options: TransportOptions): Transport {
  fixHttp2Streams()
  const state = { breaking: false, fresh: false }
  const dialling = { ...options, trust: options.ca === null ? null : secureContextFor(options.ca) }
  const pool = new Pool(options.origin, trackConnections(createConnector({ ...dialling, http2: true }), state), {
    pipelining: 1,
    headersTimeout: options.connectTimeout,
    bodyTimeout: 0,
    keepAliveTimeout: 60_000,
    maxHeaderSize: 64 * 1024,
    // An environment variable could enable undici's other HTTP parser.
    useMilo: false,
  }, new ConnectionAge(options.connectionAge ?? Infinity))
  return Object.assign(state, {
    send: ({ method, path, headers, body }: Omit<OutgoingRequest, 'source'>, handler: ResponseHandler) =>
      pool.dispatch({ method: method as Dispatcher.HttpMethod, path, headers, body, headersTimeout: 0 }, handler),
    agent: new DiallingAgent(new URL(options.origin).protocol, createConnector({ ...dialling, http2: false })),
    close: () => pool.close(),
    destroy: () => pool.destroy(new Error('the gateway is closing')),
  })
}

const BROKEN_CONNECTION_CODES = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE', 'ECONNABORTED'])

export function isBrokenConnection(error: Error & { code?: string }): boolean {
  return BROKEN_CONNECTION_CODES.has(error.code ?? '')
}

/** The events that are being emitted at this moment. */
interface ConnectionState {
  breaking: boolean
  fresh: boolean
}

function trackConnections(connect: Connector, state: ConnectionState): Connector {
  // Events of shared connections must not run in the async context of the exchange that opened them.
  const outside = AsyncLocalStorage.snapshot()
  return (target, callback) => {
    outside(connect, target, (...args) => {
      const socket = args[1]
      socket?.prependListener('error', () => {
        state.breaking = true
      })
      // After a GOAWAY node ends its half, and would wait forever for a peer that keeps the other half open.
      socket?.once('finish', () => socket.destroy())
      state.fresh = true
      callback(...args)
      state.fresh = false
      if (socket) acceptUnsolicitedContinue(socket)
      // undici's listeners are attached already: they run between the two `error` listeners of this function.
      socket?.on('error', () => {
        state.breaking = false
      })
    })
  }
}
