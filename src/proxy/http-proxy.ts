import { EventEmitter } from 'node:events'
import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http'
import { ProxyServer } from 'http-proxy-3'
import type { OutgoingRequest } from './transport.ts'

export type { ProxyServer }

/** The one proxy of the gateway; it keeps no state between requests. */
export function createProxy(): ProxyServer {
  const proxy = new ProxyServer({ xfwd: false })
  // Every call brings its own callback; without a listener the library throws.
  proxy.on('error', noop)
  proxy.on('proxyReqWs', (proxyReq, req) => (req as unknown as HandshakeOwner).onHandshake(proxyReq))
  return proxy
}

/** A WebSocket's request is told of the handshake that http-proxy-3 begins for it, before it is sent. */
export interface HandshakeOwner {
  onHandshake(handshake: ClientRequest): void
}

/** A request that http-proxy-3 is to forward. */
export interface ForwardOptions {
  readonly request: OutgoingRequest
  readonly upstreamUrl: URL
  /** Sends it; the answer is no concern of http-proxy-3's. */
  send(): void
}

/**
 * Has http-proxy-3 forward a request, with its documented `fetch` option. It is given one that was sanitised
 * before, and never the client's own objects: what it does to headers, to the path or on an error of the
 * client's socket cannot reach past them.
 *
 * @param onError told of what kept the request from being sent
 */
export function forward(
  proxy: ProxyServer, { request, upstreamUrl, send }: ForwardOptions, onError: (error: unknown) => void,
): void {
  try {
    proxy.web(
      new SanitisedRequest(request) as unknown as IncomingMessage,
      PLACEHOLDER_RESPONSE as unknown as ServerResponse,
      {
        target: upstreamUrl,
        fetch: () => {
          send()
          return Promise.resolve(NO_RESPONSE)
        },
        selfHandleResponse: true,
        // What path it would send is not looked at: nothing of it needs to be parsed.
        prependPath: false,
        toProxy: true,
      },
      onError,
    )
  } catch (error) {
    onError(error)
  }
}

/**
 * What http-proxy-3 sees of a request: already sanitised, its headers empty,
 * because those that go upstream are set whole on the connection. One listener
 * is added for each attempt: it must not be the client's request that it is
 * added to.
 */
class SanitisedRequest extends EventEmitter {
  readonly method: string
  readonly url: string
  readonly headers = {}
  readonly httpVersionMajor = 1

  constructor(request: OutgoingRequest) {
    super()
    this.method = request.method
    this.url = request.path
  }
}

/** With `selfHandleResponse` only these are looked at. */
const PLACEHOLDER_RESPONSE = Object.freeze({ headersSent: true, writableEnded: true })
/** What it takes for fetch's answer: for Headers, node would load its own undici, 50 ms of the start and 3 MB. */
const NO_RESPONSE = Object.freeze({
  status: 200, statusText: '', headers: new Map(), body: null,
}) as unknown as Response

function noop(): void {}
