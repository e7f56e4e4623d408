import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { withoutSubprotocolKey } from '../../auth/presented-keys.ts'
import { GatewayError, asGatewayError } from '../../base/errors.ts'
import type { Target } from '../../config/types.ts'
import { AttemptAuthorization, REMEMBERED_STATUS } from '../../context/authorize.ts'
import type { ClientDelivery, Exchange, Plan } from '../../context/exchange.ts'
import { gatewayHeadersFor } from '../../context/gateway-headers.ts'
import type { Gateway } from '../../context/gateway.ts'
import type { LiveUpstream } from '../../context/live-upstreams.ts'
import { writeCheckpoint } from '../../context/ledger-checkpoint.ts'
import { DELIVERED } from '../../context/upstream-attempt.ts'
import type { ResponseContent, UpstreamAttempt } from '../../context/upstream-attempt.ts'
import type { Authorization } from '../../credentials/credential.ts'
import type { Reservation } from '../../limits/types.ts'
import { renameQuery } from '../../protocols/shared/query.ts'
import { errorIdentifier } from '../../protocols/shared/refusal-reason.ts'
import { renamePath } from '../../protocols/shared/rename.ts'
import { upstreamPath } from '../../proxy/upstream-address.ts'
import { decompressedHeaders } from '../../proxy/decompressor.ts'
import { upstreamHeaders } from '../../proxy/headers.ts'
import { responseHead } from '../../proxy/response-head.ts'
import { maskBody, maskHeaders } from '../../proxy/secret-mask.ts'
import type { OutgoingRequest } from '../../proxy/transport.ts'
import { Tunnel } from '../../proxy/websocket.ts'
import type { HandshakeRefusal } from '../../proxy/websocket.ts'
import { isOperatorError } from '../../routing/failure.ts'
import { MeteredSession } from '../respond/metered-session.ts'
import { beginAttempt, credentialUse } from './begin-attempt.ts'
import { MessageGuard } from './message-guard.ts'
import { errorText } from './error-text.ts'
import { NOT_SENT, credentialReason, logPassedOver, reportCredentialRejected, reportCredentialUnavailable } from './forward-log.ts'
import { classifyHandshakeRefusal } from './refused-handshake.ts'
import { reserveAtUpstream } from './reserve-at-upstream.ts'
import { headerSource } from './translated-request.ts'

const NOTHING = Buffer.alloc(0)
const UNREAD_MESSAGES: ResponseContent = { metered: DELIVERED, encoding: null, errorBody: null }
const EXTENSIONS = 'sec-websocket-extensions'
/** Headers of a handshake that are forwarded; RFC 6455 section 4.1. */
const HANDSHAKE_HEADERS = ['sec-websocket-key', 'sec-websocket-version', EXTENSIONS] as const

/** The connection of a WebSocket handshake. */
export interface Upgrade {
  readonly socket: Socket
  /** What the client sent behind its request. */
  readonly head: Buffer
}

/**
 * Sends the handshake to the targets, one after the other, until one accepts it, and tunnels what follows.
 *
 * @param checkMessage throws where the upstream may not get a message of the client; null = any passes
 * @throws GatewayError where it was stopped
 */
export async function forwardUpgrade(
  gateway: Gateway, exchange: Exchange, plan: Plan, { socket, head }: Upgrade, checkMessage: ((message: Buffer) => void) | null,
): Promise<TunnelEnd> {
  let failure: GatewayError | null = null
  let denied: DeniedHandshake | null = null
  let unsent = head
  for (const target of plan.order) {
    let refused: readonly Authorization[] | null = []
    while (refused !== null) {
      const { limits, name } = target.upstream
      const reservation = limits && await reserveAtUpstream(gateway, exchange, limits)
      if (reservation instanceof GatewayError) {
        logPassedOver(gateway, exchange, name, null)
        failure = reservation
        break
      }
      if (exchange.stopped !== null) reservation?.release()
      exchange.throwIfStopped()
      // http-proxy-3 puts the head back onto the connection, where it stays for the attempts that follow.
      const opened: AttemptEnd = await openTunnel(gateway, exchange, plan, { target, refused, reservation, checkMessage }, socket, unsent)
      unsent = NOTHING
      failure = opened.failure
      denied = opened.denied ?? denied
      refused = opened.refused
      if (exchange.status === 101 || failure?.source !== 'upstream') return { failure, denied: null }
      // The next attempt may be at the same upstream, and its WebSocket may be open for hours.
      reservation?.release()
    }
  }
  if (denied === null) return { failure, denied }
  exchange.throwIfStopped()
  exchange.servedBy = denied.attempt
  return { failure: null, denied }
}

/** An upstream's response that refuses the handshake for its content. */
export interface DeniedHandshake {
  readonly attempt: UpstreamAttempt
  readonly response: HandshakeRefusal & { readonly body: Buffer }
}

/** How an attempt at a WebSocket ended, or all of them. */
interface TunnelEnd {
  /** null = in order. */
  readonly failure: GatewayError | null
  /** The refusal that the client gets if no other upstream accepts the handshake; null = there is none. */
  readonly denied: DeniedHandshake | null
}

interface AttemptEnd extends TunnelEnd {
  /** The credentials that the target refused, for an attempt with another one; null = there is no other. */
  readonly refused: readonly Authorization[] | null
}

/** What came through a tunnel to the client. */
class TunnelDelivery implements ClientDelivery {
  readonly status = 101
  readonly delivered = false
  readonly firstByteAt = 0
  bytes = 0
}

/** One attempt: another can follow as long as no upstream has accepted the handshake. */
async function openTunnel(
  gateway: Gateway, exchange: Exchange, { route }: Plan,
  { target, refused: earlier, reservation, checkMessage }: {
    readonly target: Target, readonly refused: readonly Authorization[], readonly reservation: Reservation | null
    readonly checkMessage: ((message: Buffer) => void) | null
  },
  socket: Duplex, head: Buffer,
): Promise<AttemptEnd> {
  const { clock } = gateway
  const startedAt = clock.monotonic()
  const upstream = gateway.upstreams.get(target.upstream.name) as LiveUpstream
  const request = outgoingHandshake(exchange, upstream, target, exchange.trace?.startAttempt() ?? [])
  const estimatedInput = exchange.reserved?.estimatedInput ?? null
  const { state, health } = beginAttempt(
    gateway, exchange, target, { sentBody: null, estimatedInput, hidesUsage: false, dropped: [], translated: null }, startedAt,
  )
  const { record } = state
  state.reservation = reservation
  const authorization = new AttemptAuthorization(upstream, credentialUse(exchange, target), earlier)
  try {
    const authorizing = authorization.authorize(request)
    if (authorizing !== null) await authorizing
    // While a credential was fetched, nothing could be ended.
    exchange.throwIfStopped()
  } catch (thrown) {
    const failure = asGatewayError(thrown)
    record.ms = clock.monotonic() - startedAt
    record.outcome = failure.code
    const isRemembered = failure.code === 'upstream_rejected_key'
    if (isRemembered) record.said = NOT_SENT
    if (failure.code === 'credential_unavailable') {
      record.said = credentialReason(failure)
      reportCredentialUnavailable(gateway, target, failure)
    }
    if (exchange.stopped !== null || failure.code === 'upstream_rate_limited') health.abandoned()
    else health.failed(null)
    const refused = isRemembered ? authorization.alternatives({ status: REMEMBERED_STATUS, retryAfterMs: null }) : null
    return { failure, denied: null, refused }
  }
  const delivery = new TunnelDelivery()
  const guard = checkMessage && new MessageGuard(gateway, exchange, checkMessage, error => tunnel.refuse(error))
  const tunnel = new Tunnel({
    socket,
    head,
    path: request.path,
    headers: guard === null ? request.headers : withoutExtensions(request.headers),
    handshake: handshakeHeaders(exchange.req as IncomingMessage, exchange.presentedKeys, guard !== null),
    upstream: { url: upstream.url, agent: upstream.transport.agent },
    gatewayHeaders: gatewayHeadersFor(gateway, exchange, upstream.config),
    clock,
    timeouts: route.timeouts,
    startedAt: exchange.startedAt,
    onOpen: extensions => {
      exchange.delivery = delivery
      record.status = 101
      health.responseStarted(clock.monotonic() - startedAt)
      const { session } = exchange.classified.endpoint
      // Messages that are not read were used, and it is unknown how much.
      if (session === null) state.deliver(UNREAD_MESSAGES)
      else state.session = new MeteredSession(gateway, exchange, state, session, extensions)
      writeCheckpoint(gateway, exchange)
      ;(exchange.res as ServerResponse).detachSocket(socket as Socket)
    },
    onUpstreamData: chunk => {
      delivery.bytes += chunk.length
      state.session?.receiveFromUpstream(chunk)
    },
    onClientData: chunk => {
      guard?.push(chunk)
      state.session?.receiveFromClient(chunk)
    },
  })
  exchange.underWay = { stop: reason => tunnel.abort(reason) }
  const endError = await tunnel.run(gateway.proxy)
  exchange.underWay = null
  const refusal = tunnel.refusal && withoutSecrets(tunnel.refusal, authorization.secrets())
  const refused = refusal && classifyHandshakeRefusal(refusal, clock.wall())
  const failure = endError ?? refused?.error ?? await state.session?.connectionClosed(tunnel.endedBy) ?? null
  record.ms = clock.monotonic() - startedAt
  record.outcome = refused?.isRequestRefused ? 'error_answer' : failure?.code ?? 'ok'
  const isCredential = refusal !== null && !refused?.isRequestRefused
  const other = isCredential
    ? authorization.alternatives({ status: refusal.status, retryAfterMs: refused?.retryAfterMs ?? null })
    : null
  if (refusal) {
    const { status } = refusal
    record.status = status
    if (refused?.body) {
      const identifier = errorIdentifier(refused.body)
      if (identifier) record.said = identifier
      const text = errorText(refused.body, authorization.secrets())
      if (text) record.errorText = text
    }
    const isOurs = isOperatorError(status) && !refused?.isRequestRefused
    if (isOurs && authorization.rememberRefusal(status) && other === null) reportCredentialRejected(gateway, exchange, target, status)
  }
  if (failure?.code === 'upstream_cut' && state.session?.isClientFault) health.abandoned()
  else if (failure?.code === 'upstream_cut') health.failed(null)
  else if (exchange.status === 101) health.succeeded()
  else if (failure?.source === 'upstream' && other === null && !refused?.isRequestRefused) health.failed(refused?.retryAfterMs ?? null)
  else health.abandoned()
  const body = refused?.isRequestRefused && refusal?.body
  return { failure, denied: body ? { attempt: state, response: { ...refusal, body } } : null, refused: other }
}

/** The refusal as the client may get it. */
function withoutSecrets(refusal: HandshakeRefusal, secrets: readonly string[]): HandshakeRefusal {
  const { status, headers, body } = refusal
  if (secrets.length === 0) return refusal
  const masked = body && maskBody(body, responseHead(status, headers).coding, secrets)
  const lines = maskHeaders(headers, secrets)
  return masked === null ? { ...refusal, headers: lines } : { ...refusal, headers: decompressedHeaders(lines), body: masked }
}

/** The path, the query and the headers of the handshake as they are sent to the target. */
function outgoingHandshake(
  exchange: Exchange, upstream: LiveUpstream, target: Target, trace: readonly string[],
): OutgoingRequest {
  const { req, target: { path, query }, classified, request } = exchange
  const model = target.model !== request.model ? target.model : null
  const source = headerSource(exchange, { raw: req.rawHeaders, trace })
  return {
    method: 'GET',
    path: upstreamPath(upstream.config, model === null ? path : renamePath(classified, path, model))
      + (model === null ? query : renameQuery(query, model)),
    headers: upstreamHeaders(upstream.headerRules, source, null),
    body: null,
    source,
  }
}

/** @param headers flat */
function withoutExtensions(headers: readonly string[]): string[] {
  return headers.filter((_, i) => (headers[i - i % 2] as string).toLowerCase() !== EXTENSIONS)
}

/** @param isPlain messages are not to be compressed: they are read before they are forwarded */
function handshakeHeaders(req: IncomingMessage, presentedKeys: readonly string[], isPlain: boolean): Record<string, string> {
  const headers: Record<string, string> = { connection: 'Upgrade', upgrade: 'websocket' }
  for (const name of HANDSHAKE_HEADERS) {
    const value = req.headers[name]
    if (typeof value === 'string' && !(isPlain && name === EXTENSIONS)) headers[name] = value
  }
  const offered = withoutSubprotocolKey(req.headers['sec-websocket-protocol'] ?? '', presentedKeys)
  if (offered !== '') headers['sec-websocket-protocol'] = offered
  return headers
}
