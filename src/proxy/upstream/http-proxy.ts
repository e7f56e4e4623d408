import type { ClientRequest as NodeRequest } from 'node:http'
import { ProxyServer, type ServerOptions } from 'http-proxy-3'
import type { ClientRequest, ClientResponse } from '../client/client.ts'
import { upstreamHeaders } from './headers.ts'
import type { UpstreamAddress } from './transport.ts'
import type { UpstreamCall } from './upstream-call.ts'

export type { ProxyServer }

/** Passes change `call.request`. */
interface PassOptions {
  readonly target: UpstreamAddress
  readonly call: UpstreamCall
}

/** A step of a request upstream. @param res null = no client waits for the response @returns true = ends the chain */
export type Pass = (req: ClientRequest, res: ClientResponse | null, options: PassOptions) => boolean | void

/**
 * The only proxy of the gateway: http-proxy-3 with own passes. It keeps no state between requests. The passes of a request, in this order:
 *
 *   deleteLength, timeout, XHeaders   the library's; they change only the client's request
 *   address      the target's path in front of the request's, and its Host
 *   headers      without hop-by-hop headers and presented keys, with the upstream's rules
 *   credential   the operator's credential
 *   transport    sends it over undici and ends the chain, so that the library's `stream` is not reached
 *
 * `before('web', 'transport', pass)` adds a pass. A WebSocket runs through the library's own `ws` passes.
 */
export function createProxy(options: ServerOptions = {}): ProxyServer {
  const proxy = new ProxyServer({
    changeOrigin: true,
    // http-proxy-3 would parse the client's path and write it again.
    toProxy: true,
    ...options,
  })
  for (const pass of [address, headers, credential, transport]) proxy.before('web', 'stream', pass as never)
  // The library throws without a listener; each handshake has its own error callback.
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

/** Gets a WebSocket's handshake before it is sent. */
export interface HandshakeOwner { onHandshake(handshake: NodeRequest): void }

function noop(): void {}
