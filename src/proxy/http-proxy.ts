import { IncomingMessage, ServerResponse } from 'node:http'
import type { Agent, ClientRequest } from 'node:http'
import { Socket } from 'node:net'
import type { Stream } from 'node:stream'
import { ProxyServer } from 'http-proxy-3'
import type { ProxyTarget, ServerOptions } from 'http-proxy-3'
import { GatewayError } from '../base/errors.ts'
import type { ClientResponse } from './client.ts'
import { groupHeaders, headerLines } from './raw-headers.ts'
import type { OutgoingRequest } from './transport.ts'

export type { ProxyServer }

/**
 * The one proxy of the gateway; it keeps no state between requests.
 *
 * @param options further options of http-proxy-3, for every request
 */
export function createProxy({ fetchOptions, ...options }: ServerOptions = {}): ProxyServer {
  const onAfterResponse = fetchOptions?.onAfterResponse
  const proxy = new ProxyServer({
    changeOrigin: true,
    // The client's path is sent as it was routed: http-proxy-3 would parse it and write it anew.
    toProxy: true,
    selfHandleResponse: true,
    ...options,
    fetchOptions: {
      ...fetchOptions,
      onAfterResponse: (response, req, ...others) => {
        const custom = onAfterResponse?.(response, req, ...others)
        const { onResponse } = req as UpstreamRequest
        return custom instanceof Promise ? custom.then(() => onResponse(response)) : onResponse(response)
      },
    },
  })
  // Every call brings its own callback; without a listener the library throws.
  proxy.on('error', noop)
  proxy.on('proxyReqWs', (proxyReq, req) => (req as unknown as HandshakeOwner).onHandshake(proxyReq))
  return proxy
}

/** A WebSocket's request gets the handshake that http-proxy-3 begins for it, before it is sent. */
export interface HandshakeOwner {
  onHandshake(handshake: ClientRequest): void
}

/** What http-proxy-3 reads of a target. A URL makes each of them anew whenever it is asked for it. */
export type UrlParts = Readonly<Pick<URL, 'href' | 'origin' | 'protocol' | 'host' | 'hostname' | 'port' | 'pathname' | 'search'>>

export function urlParts({ href, origin, protocol, host, hostname, port, pathname, search }: URL): UrlParts {
  return { href, origin, protocol, host, hostname, port, pathname, search }
}

/** A request that http-proxy-3 forwards. */
export interface ForwardOptions {
  /** Sanitised; its path is below the target's. */
  readonly request: OutgoingRequest
  readonly target: UrlParts
  /** The upstream's. Without one http-proxy-3 sends `Connection: close`. */
  readonly agent: Agent
  /** The client's; null = no client waits for the response. */
  readonly clientResponse: ClientResponse | null
  /**
   * Sends the request that http-proxy-3 built. The body of the response does not pass through http-proxy-3.
   *
   * @returns the head of its response; rejects when there is none
   */
  send(request: OutgoingRequest): Promise<Response>
  /** Called with the head as it comes back through http-proxy-3. */
  onResponse(response: Response): void
  /** Called when the request could not be sent, or has no response. */
  onError(error: unknown): void
}

/**
 * Has http-proxy-3 forward a request over its `fetch` option: it builds the upstream request from the request
 * and the target, and hands the head of the response back. It never gets the client's own request: what it
 * does to headers or on an error of the client's socket cannot reach that.
 */
export function forward(proxy: ProxyServer, options: ForwardOptions): void {
  const { request, target, agent, clientResponse, send, onResponse, onError } = options
  try {
    const incoming = new UpstreamRequest(request, onResponse)
    proxy.web(
      incoming,
      (clientResponse ?? new ServerResponse(incoming)) as ServerResponse,
      {
        target: target as ProxyTarget,
        agent,
        // Any body that fetch takes; typed for the path without fetch.
        buffer: (request.body ?? NO_BODY) as unknown as Stream,
        fetch: (url, init) => send(builtRequest(url as string, init as RequestInit, target, request)),
      },
      onError,
    )
  } catch (error) {
    onError(error)
  }
}

/** The sanitised request as http-proxy-3 reads it. */
class UpstreamRequest extends IncomingMessage {
  readonly onResponse: (response: Response) => void

  /** @throws GatewayError bad_header: http-proxy-3 would not report one that cannot be sent */
  constructor({ method, path, headers }: OutgoingRequest, onResponse: (response: Response) => void) {
    super(UNCONNECTED)
    this.method = method
    this.url = path
    this.httpVersionMajor = 1
    this.httpVersionMinor = 1
    this.rawHeaders = headers
    checkHeaders(headers)
    this.headers = groupHeaders(headers)
    this.onResponse = onResponse
  }
}

/** RFC 9110 sections 5.1 and 5.5; a value goes up byte for byte, as Latin-1. */
const HEADER_NAME = /^[!#$%&'*+.^_`|~\w-]+$/
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

function checkHeaders(headers: readonly string[]): void {
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] as string
    if (HEADER_NAME.test(name) && HEADER_VALUE.test(headers[i + 1] as string)) continue
    throw new GatewayError('bad_header', `the request cannot be forwarded: invalid header ${JSON.stringify(name)}`)
  }
}

/** What http-proxy-3 hands to fetch, as the transport sends it. */
function builtRequest(
  url: string, { method, headers, body }: RequestInit, { origin }: UrlParts, { headers: raw }: OutgoingRequest,
): OutgoingRequest {
  return {
    method: method as string,
    path: url.slice(origin.length),
    headers: headerLines(headers as Headers, raw),
    body: body === NO_BODY ? null : body as Buffer,
  }
}

/** A request that arrives on no connection of its own. */
const UNCONNECTED = new Socket()
/** Without a buffer http-proxy-3 would send the request itself as a stream. */
const NO_BODY = Buffer.alloc(0)

function noop(): void {}
