import { ServerResponse } from 'node:http'
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { withoutSubprotocolKey } from '../auth/credentials.ts'
import type { GatewayError } from '../base/errors.ts'
import type { Target } from '../config/types.ts'
import type { AttemptRecord, Exchange, Plan } from '../context/exchange.ts'
import { gatewayHeadersFor } from '../context/gateway-headers.ts'
import type { Gateway, LiveUpstream } from '../context/gateway.ts'
import { writeCheckpoint } from '../context/ledger-checkpoint.ts'
import { quote } from '../context/quote.ts'
import { renameQuery } from '../protocols/shared/query.ts'
import { errorIdentifier } from '../protocols/shared/refusal.ts'
import { renamePath } from '../protocols/shared/rename.ts'
import { upstreamPath } from '../proxy/address.ts'
import { upstreamHeaders } from '../proxy/headers.ts'
import { Tunnel } from '../proxy/websocket.ts'
import type { HandshakeRefusal } from '../proxy/websocket.ts'
import { candidateId } from '../routing/candidate.ts'
import { isOperatorError } from '../routing/failure.ts'
import { reportCredentialRejected } from './attempt/forward-log.ts'
import { classifyHandshakeRefusal } from './attempt/refused-handshake.ts'
import { sendHandshakeRefusal } from './gateway-response.ts'
import { MeteredSession } from './respond/session.ts'

const NOTHING = Buffer.alloc(0)
/** What a handshake needs to cross; RFC 6455 section 4.1. */
const HANDSHAKE_HEADERS = ['sec-websocket-key', 'sec-websocket-version', 'sec-websocket-extensions'] as const

/** A response that is written to a connection which node has given out of its hands. */
export function responseOn(req: IncomingMessage, socket: Duplex): ServerResponse {
  const res = new ServerResponse(req)
  res.shouldKeepAlive = false
  res.assignSocket(socket as Socket)
  res.once('finish', () => (socket as Socket).destroySoon())
  return res
}

/** The connection of a WebSocket handshake. */
export interface Upgrade {
  readonly socket: Socket
  /** What the client sent behind its request. */
  readonly head: Buffer
}

/**
 * Sends the handshake to the candidates, one after the other, until one accepts it, and tunnels what follows.
 *
 * @returns why it ended; null = in order
 * @throws GatewayError where it was stopped
 */
export async function forwardUpgrade(
  gateway: Gateway, exchange: Exchange, plan: Plan, { socket, head }: Upgrade,
): Promise<GatewayError | null> {
  let failure: GatewayError | null = null
  let denied: DeniedHandshake | null = null
  for (const candidate of plan.order) {
    exchange.throwIfStopped()
    // http-proxy-3 puts the head back onto the connection, where it stays for the attempts that follow.
    const opened = await openTunnel(gateway, exchange, candidate, socket, failure ? NOTHING : head)
    failure = opened.failure
    denied = opened.denied ?? denied
    if (exchange.status === 101 || failure?.source !== 'upstream') return failure
  }
  if (denied === null) return failure
  exchange.throwIfStopped()
  exchange.candidate = denied.candidate
  exchange.quoted = quote(gateway, exchange, denied.candidate)
  sendHandshakeRefusal(gateway, exchange, denied.candidate.upstream, denied.response)
  return null
}

/** An upstream's answer that refuses what the handshake asks for. */
interface DeniedHandshake {
  readonly candidate: Target
  readonly response: HandshakeRefusal & { readonly body: Buffer }
}

/**
 * Codex asks for a WebSocket first, and names its models in the messages, whatever the query names. Where routes or
 * the key depend on the model, the gateway has to see it: the same request over plain HTTP names one. Only after
 * 426 does Codex send that at once.
 */
export function needsHttpForModel(
  { routes }: Gateway, { classified, request: { model }, identity, target }: Exchange,
): boolean {
  const { path } = target
  if (classified.endpoint.session?.required !== false || !routes.servesPath(path)) return false
  return identity.restricted || (model === null && routes.match(path, null) === null)
}

/** One attempt: as long as the handshake is not answered, another can follow. */
async function openTunnel(
  gateway: Gateway, exchange: Exchange, candidate: Target, socket: Duplex, head: Buffer,
): Promise<{ readonly failure: GatewayError | null, readonly denied: DeniedHandshake | null }> {
  exchange.candidate = candidate
  if (exchange.attempts.length > 0) exchange.quoted = quote(gateway, exchange, candidate)
  const upstream = gateway.upstreams.get(candidate.upstream.name) as LiveUpstream
  const { classified, target, req } = exchange
  const renamed = candidate.model !== null && candidate.model !== exchange.request.model ? candidate.model : null
  const path = renamed === null ? target.path : renamePath(classified, target.path, renamed)
  const query = renamed === null ? target.query : renameQuery(target.query, renamed)
  const beganAt = gateway.clock.monotonic()
  const record: AttemptRecord = {
    upstream: upstream.config.name,
    model: candidate.model ?? exchange.request.model,
    outcome: 'ok',
    ms: 0,
    atMs: beganAt - exchange.startedAt,
  }
  exchange.attempts.push(record)
  const trial = gateway.health.begin(candidateId(candidate, exchange.request.model))
  const running = new Tunnel({
    socket,
    head,
    path: upstreamPath(upstream.config, path) + query,
    headers: upstreamHeaders(req.rawHeaders, {
      upstream: upstream.config,
      requestId: exchange.id,
      httpVersion: req.httpVersion,
      trustedPeer: exchange.trustedPeer,
      uncompressed: false,
      dropContentEncoding: false,
      contentLength: null,
    }),
    handshake: handshakeHeaders(req as IncomingMessage),
    upstream: { url: upstream.url, agent: upstream.transport.agent },
    gatewayHeaders: gatewayHeadersFor(gateway, exchange, upstream.config),
    clock: gateway.clock,
    timeouts: exchange.plan?.route.timeouts ?? gateway.config.timeouts,
    startedAt: exchange.startedAt,
    onOpen: extensions => {
      exchange.status = 101
      record.status = 101
      trial.responseStarted(gateway.clock.monotonic() - beganAt)
      const { session } = exchange.classified.endpoint
      if (session !== null) {
        exchange.session = new MeteredSession(gateway, exchange, session, extensions)
      } else {
        // What is said inside is not read: it was used, and nobody knows how much.
        exchange.response = { kind: 'none', delivered: true }
      }
      writeCheckpoint(gateway, exchange)
      ;(exchange.res as ServerResponse).detachSocket(socket as Socket)
    },
    onUpstreamData: chunk => {
      exchange.bytesOut += chunk.length
      exchange.session?.receiveFromUpstream(chunk)
    },
    onClientData: chunk => exchange.session?.receiveFromClient(chunk),
  })
  exchange.underWay = { stop: reason => running.abort(reason) }
  const ended = await running.run(gateway.proxy)
  exchange.underWay = null
  const { refusal: refusedWith } = running
  const refused = refusedWith && classifyHandshakeRefusal(refusedWith, gateway.clock.wall())
  const failure = ended ?? refused?.error ?? await exchange.session?.connectionClosed(running.endedBy) ?? null
  record.ms = gateway.clock.monotonic() - beganAt
  record.outcome = refused?.isRequestRefused ? 'error_answer' : failure?.code ?? 'ok'
  if (refusedWith) {
    const { status } = refusedWith
    record.status = status
    const word = refused?.body && errorIdentifier(refused.body)
    if (word) record.said = word
    if (isOperatorError(status) && !refused?.isRequestRefused) reportCredentialRejected(gateway, exchange, candidate, status)
  }
  if (failure?.code === 'upstream_cut' && exchange.session?.isClientFault) trial.abandoned()
  else if (failure?.code === 'upstream_cut') trial.failed(null)
  else if (exchange.status === 101) trial.succeeded()
  else if (failure?.source === 'upstream' && !refused?.isRequestRefused) trial.failed(refused?.retryAfterMs ?? null)
  else trial.abandoned()
  const body = refused?.isRequestRefused && refusedWith?.body
  return { failure, denied: body ? { candidate, response: { ...refusedWith, body } } : null }
}

function handshakeHeaders(req: IncomingMessage): Record<string, string> {
  const headers: Record<string, string> = { connection: 'Upgrade', upgrade: 'websocket' }
  for (const name of HANDSHAKE_HEADERS) {
    const value = req.headers[name]
    if (typeof value === 'string') headers[name] = value
  }
  const offered = withoutSubprotocolKey(req.headers['sec-websocket-protocol'] ?? '')
  if (offered !== '') headers['sec-websocket-protocol'] = offered
  return headers
}
