import type { ClientRequest as NodeRequest } from 'node:http'
import { ProxyServer } from 'http-proxy-3'
import type { ServerOptions } from 'http-proxy-3'
import type { ClientRequest, ClientResponse } from '../client/client.ts'
import { upstreamHeaders } from './headers.ts'
import type { UpstreamAddress } from './transport.ts'
import type { UpstreamCall } from './upstream-call.ts'

export type { ProxyServer }

/** The options that each pass gets. Passes change the `request` of the call. */
export interface PassOptions {
  readonly target: UpstreamAddress
  readonly call: UpstreamCall
}

/**
 * One step of a request on its way upstream.
 *
 * @param req the client's request
 * @param res the client's response; null = no client waits for it
 * @returns true = ends the chain
 */
export type Pass = (req: ClientRequest, res: ClientResponse | null, options: PassOptions) => boolean | void

/**
 * The only proxy of the gateway: http-proxy-3 with additional passes. It keeps no state between requests. A request
 * upstream runs through these passes, in this order:
 *
 *   deleteLength, timeout, XHeaders   the library's; what they change is the client's request
 *   address                           the target's path in front of the request's, its Host in
 *   headers                           hop-by-hop headers and presented keys out, the upstream's rules in
 *   credential                        the operator's credential in
 *   transport                         sends it over undici, and ends the chain: the library's `stream` is not reached
 *
 * A WebSocket runs through the library's own `ws` passes.
 *
 * `before('web', 'transport', pass)` adds a pass.
 *
 * @param options further options of http-proxy-3, for every request
 */
export function createProxy(options: ServerOptions = {}): ProxyServer {
  const proxy = new ProxyServer({
    changeOrigin: true,
    // Send the client's path as it was routed: http-proxy-3 would parse it and write it again.
    toProxy: true,
    ...options,
  })
  for (const pass of [address, headers, credential, transport]) proxy.before('web', 'stream', pass as never)
  // Each handshake has its own error callback. This listener exists because the library throws without one.
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

/** Gets the handshake of a WebSocket from http-proxy-3 before it is sent. */
export interface HandshakeOwner {
  onHandshake(handshake: NodeRequest): void
}

function noop(): void {}
