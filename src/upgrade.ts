import { ServerResponse } from 'node:http'
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { answerError } from './answer.ts'
import { withoutSubprotocolKey } from './auth/credentials.ts'
import { GatewayError, asGatewayError } from './errors.ts'
import type { Exchange } from './exchange.ts'
import type { Gateway, LiveUpstream } from './gateway.ts'
import { admit, identify, open, route } from './pipeline.ts'
import { queryModel, renameQuery } from './protocols/query.ts'
import { headersUp } from './proxy/headers.ts'
import { Tunnel } from './proxy/websocket.ts'
import { limitHeaders, reserve } from './reserve.ts'
import { settle } from './settle.ts'

/** What a handshake needs to cross; RFC 6455 section 4.1. */
const HANDSHAKE = ['sec-websocket-key', 'sec-websocket-version', 'sec-websocket-extensions'] as const

/** A response that is written to a connection which node has given out of its hands. */
export function responseOn(req: IncomingMessage, socket: Duplex): ServerResponse {
  const res = new ServerResponse(req)
  res.shouldKeepAlive = false
  res.assignSocket(socket as Socket)
  res.once('finish', () => (socket as Socket).destroySoon())
  return res
}

/**
 * The pipeline of a WebSocket handshake: the same phases as a request's, with a
 * tunnel in place of the relay. It never throws.
 *
 * @param exchange its `res` was made by `responseOn`
 */
export async function handleUpgrade(
  gateway: Gateway, exchange: Exchange, socket: Duplex, head: Buffer,
): Promise<void> {
  gateway.running.add(exchange)
  let failure: GatewayError | null = null
  try {
    open(gateway, exchange)
    failure = await tunnel(gateway, exchange, socket, head)
    exchange.bytesIn = (socket as Socket).bytesRead
    exchange.bytesOut = (socket as Socket).bytesWritten
    if (failure && exchange.status !== 101) throw failure
  } catch (thrown) {
    failure = asGatewayError(thrown)
    answerError(gateway, exchange, failure)
  } finally {
    await settle(gateway, exchange, failure)
    gateway.running.delete(exchange)
  }
}

async function tunnel(
  gateway: Gateway, exchange: Exchange, socket: Duplex, head: Buffer,
): Promise<GatewayError | null> {
  if (exchange.req.method !== 'GET') {
    throw new GatewayError('method_not_allowed', 'CONNECT is not allowed', { headers: { allow: 'GET, POST' } })
  }
  identify(gateway, exchange)
  exchange.model = queryModel(exchange.target.query)
  admit(exchange)
  exchange.route = route(gateway, exchange)
  const candidate = exchange.route.targets.find(target => target.upstream.websocket)
  if (!candidate) {
    throw new GatewayError('upgrade_required', 'no WebSocket is served here; use plain HTTP', {
      headers: { upgrade: 'websocket' },
    })
  }
  reserve(gateway, exchange, candidate)
  exchange.candidate = candidate
  const upstream = gateway.upstreams.get(candidate.upstream.name) as LiveUpstream
  const { target, req } = exchange
  const renamed = candidate.model !== null && candidate.model !== exchange.model ? candidate.model : null
  const running = new Tunnel({
    socket,
    head,
    path: upstream.prefix + target.path + (renamed === null ? target.query : renameQuery(target.query, renamed)),
    headers: headersUp(req.rawHeaders, {
      upstream: upstream.config,
      requestId: exchange.id,
      httpVersion: req.httpVersion,
      trustedPeer: exchange.trustedPeer,
      identity: false,
      dropContentEncoding: false,
      contentLength: null,
    }),
    handshake: handshakeHeaders(req as IncomingMessage),
    upstream: { url: upstream.url, socketPath: upstream.socketPath, ca: upstream.config.ca },
    own: { version: gateway.version, requestId: exchange.id, limits: limitHeaders(gateway, exchange) },
    clock: gateway.clock,
    timeouts: exchange.route.timeouts,
    startedAt: exchange.startedAt,
    onOpen: () => {
      exchange.status = 101
      // What is said inside is not read: it was used, and nobody knows how much.
      exchange.answer = { kind: 'none', delivered: true }
      ;(exchange.res as ServerResponse).detachSocket(socket as Socket)
    },
  })
  return running.run(gateway.proxy)
}

function handshakeHeaders(req: IncomingMessage): Record<string, string> {
  const headers: Record<string, string> = { connection: 'Upgrade', upgrade: 'websocket' }
  for (const name of HANDSHAKE) {
    const value = req.headers[name]
    if (typeof value === 'string') headers[name] = value
  }
  const offered = withoutSubprotocolKey(req.headers['sec-websocket-protocol'] ?? '')
  if (offered !== '') headers['sec-websocket-protocol'] = offered
  return headers
}
