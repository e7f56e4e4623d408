import { ServerResponse } from 'node:http'
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { withoutSubprotocolKey } from '../auth/credentials.ts'
import { GatewayError, asGatewayError, upgradeRequired } from '../base/errors.ts'
import type { Target } from '../config/types.ts'
import type { AttemptRecord, Exchange } from '../context/exchange.ts'
import { gatewayHeadersFor } from '../context/gateway-headers.ts'
import type { Gateway, LiveUpstream } from '../context/gateway.ts'
import { namesModelInMessage } from '../protocols/endpoint.ts'
import { modelName } from '../protocols/shared/inspect.ts'
import { queryModel, renameQuery } from '../protocols/shared/query.ts'
import { errorIdentifier } from '../protocols/shared/refusal.ts'
import { renamePath } from '../protocols/shared/rename.ts'
import { upstreamPath } from '../proxy/address.ts'
import { upstreamHeaders } from '../proxy/headers.ts'
import { isOperatorError } from '../proxy/retry.ts'
import { Tunnel } from '../proxy/websocket.ts'
import type { HandshakeRefusal } from '../proxy/websocket.ts'
import { candidateId } from '../routing/candidate.ts'
import { reportCredentialRejected } from './attempt/forward-log.ts'
import { candidates } from './attempt/refusal-targets.ts'
import { classifyHandshakeRefusal } from './attempt/refused-handshake.ts'
import { sendError, sendHandshakeRefusal } from './gateway-response.ts'
import { admit, identify, open, route } from './pipeline.ts'
import { quote, reserve } from './reserve.ts'
import { MeteredSession } from './respond/session.ts'
import { checkpointRow } from './settle/ledger-row.ts'
import { settle } from './settle/settle.ts'

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

/**
 * The pipeline of a WebSocket handshake: the same phases as a request's, with a
 * tunnel in place of the relay. It never throws.
 *
 * @param exchange its `res` was made by `responseOn`
 */
export async function handleUpgrade(
  gateway: Gateway, exchange: Exchange, socket: Duplex, head: Buffer,
): Promise<void> {
  const ticket = gateway.activeExchanges.begin(exchange)
  let failure: GatewayError | null = null
  try {
    open(gateway, exchange)
    const before = (socket as Socket).bytesRead - head.length
    failure = await runTunnel(gateway, exchange, socket, head)
    if (exchange.status === 101) exchange.bytesIn = (socket as Socket).bytesRead - before
    if (failure && exchange.status !== 101) throw failure
  } catch (thrown) {
    failure = asGatewayError(thrown)
    sendError(gateway, exchange, failure)
    // Half of its connection may still be open, and nothing will come of it.
    if (failure.code === 'client_gone') socket.destroy()
  } finally {
    await settle(gateway, exchange, failure)
    gateway.sharedState.bodyMemory.releaseForResponse(exchange.responseBytesHeld)
    gateway.activeExchanges.end(ticket)
  }
}

async function runTunnel(
  gateway: Gateway, exchange: Exchange, socket: Duplex, head: Buffer,
): Promise<GatewayError | null> {
  if (exchange.req.method !== 'GET') {
    throw new GatewayError(
      'method_not_allowed', 'CONNECT is not allowed', { headers: { allow: 'GET, POST' } },
    )
  }
  identify(gateway, exchange)
  const { path, query } = exchange.target
  const { pathModel } = exchange.classified
  const named = () => pathModel === null ? queryModel(query) : modelName(pathModel)
  exchange.model = namesModelInMessage(path) ? null : named()
  if (needsHttpForModel(gateway, exchange)) throw upgradeRequired()
  admit(exchange)
  const chosen = route(gateway, exchange)
  exchange.route = chosen
  const targets = chosen.targets.filter(target => target.upstream.websocket)
  if (targets.length === 0) throw upgradeRequired()
  const order = candidates(gateway, exchange, { ...chosen, targets }).slice(0, chosen.retries + 1)
  exchange.candidate = order[0] as Target
  const reserving = reserve(gateway, exchange, order)
  if (reserving) await reserving
  exchange.ledgerEntry = gateway.accounts.ledger?.open(() => checkpointRow(exchange)) ?? null
  let failure: GatewayError | null = null
  let denied: DeniedHandshake | null = null
  for (const candidate of order) {
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
 * Codex asks for a WebSocket first, and names its models in what it says there, whatever
 * the query names. Where routes or the key go by the model that is nothing for a tunnel,
 * and no refusal either: the same request over plain HTTP names one. Only 426 has Codex
 * go on with that at once.
 */
function needsHttpForModel({ routes }: Gateway, { classified, model, identity, target }: Exchange): boolean {
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
  const renamed = candidate.model !== null && candidate.model !== exchange.model ? candidate.model : null
  const path = renamed === null ? target.path : renamePath(classified, target.path, renamed)
  const query = renamed === null ? target.query : renameQuery(target.query, renamed)
  const beganAt = gateway.clock.monotonic()
  const record: AttemptRecord = {
    upstream: upstream.config.name,
    model: candidate.model ?? exchange.model,
    outcome: 'ok',
    ms: 0,
    atMs: beganAt - exchange.startedAt,
  }
  exchange.attempts.push(record)
  const trial = gateway.health.begin(candidateId(candidate, exchange.model))
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
    timeouts: exchange.route?.timeouts ?? gateway.config.timeouts,
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
      if (exchange.ledgerEntry) gateway.accounts.ledger?.updateDraft(exchange.ledgerEntry)
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
