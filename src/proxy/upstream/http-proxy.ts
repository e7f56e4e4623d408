import type { ClientRequest as NodeRequest } from 'node:http'
import { ProxyServer, type ServerOptions } from 'http-proxy-3'
import type { ClientRequest, ClientResponse } from '../client/client.ts'
import { upstreamHeaders } from './headers.ts'
import type { UpstreamAddress } from './transport.ts'
import type { UpstreamCall } from './upstream-call.ts'

export type { ProxyServer }

/** The options of a pass, which changes `call.request`. */
interface PassOptions {
  readonly target: UpstreamAddress
  readonly call: UpstreamCall
}

/** One step in sending a request. @param res null = no client waits for the response @returns true = run no further pass */
export type Pass = (req: ClientRequest, res: ClientResponse | null, options: PassOptions) => boolean | void

/**
 * The gateway's only proxy: http-proxy-3 with the gateway's passes. It keeps no state between requests. The passes of a request, in order:
 *
 *   deleteLength, timeout, XHeaders   passes of the library, which change only the client's request
 *   address      puts the upstream's path before the request's path, and sets Host
 *   headers      sets the headers by the upstream's `HeaderRules`, without hop-by-hop headers and presented keys
 *   credential   adds the operator's credential
 *   transport    sends the request by undici and ends the chain, so that the library's pass `stream` does not run
 *
 * `before('web', 'transport', pass)` adds a pass. A WebSocket runs through the library's `ws` passes.
 */
export function createProxy(options: ServerOptions = {}): ProxyServer {
  const proxy = new ProxyServer({
    changeOrigin: true,
    // Without this option, http-proxy-3 parses the client's path and changes it.
    toProxy: true,
    ...options,
  })
  for (const pass of [address, headers, credential, transport]) proxy.before('web', 'stream', pass as never)
  // The library throws an error if no listener is attached. Each handshake handles its error in its own callback.
  proxy.on('error', noop)
  proxy.on('proxyReqWs', (proxyReq, req) => (req as unknown as HandshakeOwner).onHandshake(proxyReq))
  return proxy
}

function address(...[, , { target, call: { request } }]: Parameters<Pass>): void {
  request.path = target.prefix + request.path
  request.headers.push('host', target.host)
}

function headers(...[, , { target, call: { request } }]: Parameters<Pass>): void {
  request.headers.push(...upstreamHeaders(target.headerRules, request.source, request.body === null ? null : request.body.length))
}

function credential(...[, , { call }]: Parameters<Pass>): void {
  call.authorize()
}

function transport(...[, , { call }]: Parameters<Pass>): true {
  call.send()
  return true
}

/** `onHandshake` is called with the request of a WebSocket's handshake before the request is sent. */
export interface HandshakeOwner { onHandshake(handshake: NodeRequest): void }

function noop(): void {}
