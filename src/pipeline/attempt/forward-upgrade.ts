import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { withoutSubprotocolKey } from '../../auth/presented-keys.ts'
import { GatewayError, asGatewayError, credentialRejected, upgradeRequired } from '../../base/errors.ts'
import type { Target } from '../../config/types.ts'
import type { Exchange, Plan, Stoppable } from '../exchange/exchange.ts'
import { gatewayHeadersFor } from '../respond/gateway-headers.ts'
import type { Gateway } from '../parts/gateway.ts'
import { writeCheckpoint } from '../parts/ledger-checkpoint.ts'
import type { LiveUpstream } from '../../upstreams/live-upstreams.ts'
import { DELIVERED, UpstreamAttempt, type ResponseContent, type UpstreamAttemptOptions } from '../exchange/upstream-attempt.ts'
import type { Authorization } from '../../upstreams/credentials/credential.ts'
import type { Reservation } from '../../limits/types.ts'
import { decompressedOrRaw } from '../../protocols/http/decompress.ts'
import { renameQuery } from '../../protocols/request/query.ts'
import { denialReason } from '../../protocols/endpoint/refusal-reason.ts'
import { renamePath } from '../../protocols/request/rename.ts'
import { decompressedHeaders } from '../../proxy/upstream/decompressor.ts'
import { upstreamHeaders } from '../../proxy/upstream/headers.ts'
import { headerValue } from '../../proxy/http/raw-headers.ts'
import { responseHead } from '../../proxy/upstream/response-head.ts'
import { maskBody, maskHeaders } from '../../proxy/upstream/secret-mask.ts'
import type { OutgoingRequest } from '../../proxy/upstream/transport.ts'
import { upstreamPath } from '../../proxy/upstream/upstream-address.ts'
import { Tunnel, type HandshakeRefusal } from '../../proxy/upstream/websocket.ts'
import { isCredentialRefused, isUnsuited } from '../../routing/failure.ts'
import type { RetryStep } from '../../routing/retry-policy.ts'
import { MeteredSession } from '../respond/metered-session.ts'
import type { SessionRules } from '../respond/session-reservations.ts'
import type { HeldResponse } from '../respond/response-gate.ts'
import { failureWithoutResponse, requestedRetryDelay, undeliveredError, type AttemptFailure } from './attempt-failure.ts'
import { AttemptLoop, attemptOptions, missingOwnCredential, type AttemptCarrier, type AttemptOutcome, type TargetPlan } from './attempt-loop.ts'
import { MessageGuard } from './message-guard.ts'
import { headerSource } from './outgoing-request.ts'
import { AttemptRecorder } from './recorder.ts'

const NOTHING = Buffer.alloc(0)
const UNREAD_MESSAGES: ResponseContent = { metered: DELIVERED, encoding: null, errorBody: null }
const EXTENSIONS = 'sec-websocket-extensions'
/** Handshake headers that the gateway forwards. Source: RFC 6455 section 4.1. */
const HANDSHAKE_HEADERS = ['sec-websocket-key', 'sec-websocket-version', EXTENSIONS] as const

export interface Upgrade {
  readonly socket: Socket
  /** Bytes that the client sent after its request. */
  readonly head: Buffer
}

/** The upstream refused the handshake because of the request's content. */
export interface DeniedHandshake {
  readonly attempt: UpstreamAttempt
  readonly response: HeldResponse
}

/** How a WebSocket ended: `failure` null = properly; `denied` = it was never open. */
export type TunnelEnd = { readonly failure: GatewayError | null } | { readonly denied: DeniedHandshake }

/** Tries the targets until one accepts the handshake or refuses the request's content. @throws GatewayError if no target does */
export function forwardUpgrade(
  gateway: Gateway, exchange: Exchange, plan: Plan, upgrade: Upgrade, rules: SessionRules,
): Promise<TunnelEnd> {
  return new Upgrading(gateway, exchange, plan, upgrade, rules).run()
}

class Upgrading implements Stoppable, AttemptCarrier<WebSocketAttempt, TunnelEnd> {
  readonly isContinuation = false
  readonly #gateway: Gateway
  readonly #exchange: Exchange
  readonly #plan: Plan
  readonly #recorder: AttemptRecorder
  readonly #socket: Socket
  readonly #rules: SessionRules
  /** Bytes after the client's request that are not forwarded yet. */
  #unsent: Buffer
  #current: WebSocketAttempt | null = null

  constructor(gateway: Gateway, exchange: Exchange, plan: Plan, { socket, head }: Upgrade, rules: SessionRules) {
    this.#gateway = gateway
    this.#exchange = exchange
    this.#plan = plan
    this.#recorder = new AttemptRecorder(gateway, exchange)
    this.#socket = socket
    this.#rules = rules
    this.#unsent = head
  }

  async run(): Promise<TunnelEnd> {
    const { order } = this.#plan
    this.#exchange.stopBy(this)
    try {
      return await new AttemptLoop<WebSocketAttempt, TunnelEnd>(this.#gateway, this.#exchange, new HandshakePlan(order), this.#recorder).run(this)
    } finally {
      this.#exchange.stopBy(null)
    }
  }

  endBefore(): null {
    return null
  }

  /** Handshakes do not wait, because most clients give up on them early. */
  waitForTarget(): Promise<null> {
    return Promise.resolve(null)
  }

  begin(target: Target, refused: readonly Authorization[], reservation: Reservation | null): WebSocketAttempt | GatewayError {
    const gateway = this.#gateway
    const exchange = this.#exchange
    const missing = missingOwnCredential(exchange, target)
    if (missing !== null) return missing
    const startedAt = gateway.clock.monotonic()
    const live = gateway.targets.at(target, exchange.classified.endpoint, exchange.request.model)
    const request = outgoingHandshake(exchange, live.upstream, target, exchange.trace?.startAttempt() ?? [])
    const sent = { sentBody: null, hidesUsage: false, dropped: [], translated: null }
    const part = attemptOptions(gateway, exchange, { target, live, refused, reservation, sent, startedAt })
    return this.#current = new WebSocketAttempt(gateway, exchange, part, request)
  }

  async carry(attempt: WebSocketAttempt): Promise<AttemptOutcome<WebSocketAttempt, TunnelEnd>> {
    const head = this.#unsent
    // http-proxy-3 puts `head` back onto the connection: later attempts read those bytes from there.
    this.#unsent = NOTHING
    const failure = await attempt.run(this.#plan, this.#socket, head, this.#rules)
    if (failure?.status && attempt.refusesClient(failure.status)) return this.#refusedClient(attempt, failure)
    if (failure !== null) return { kind: 'failed', attempt, failure, isLast: false }
    this.#recorder.sessionEnded(attempt, attempt.endError, attempt.session?.isClientFault ?? false)
    return { kind: 'ended', end: { failure: attempt.endError } }
  }

  async giveUp({ error, status, reason }: AttemptFailure): Promise<TunnelEnd> {
    const denied = this.#recorder.lastErrorResponse
    if (denied === null || (error !== null && error.source !== 'upstream')) throw error ?? undeliveredError(status, reason)
    this.#exchange.serve(denied.attempt)
    return { denied }
  }

  /** The client gets the refusal of its own credential as it is. */
  #refusedClient(attempt: WebSocketAttempt, failure: AttemptFailure): AttemptOutcome<WebSocketAttempt, TunnelEnd> {
    const { response } = failure
    this.#recorder.failed(attempt, failure, { isRetried: false, isLast: true, isContinuation: false })
    this.#exchange.throwIfStopped()
    if (response === null) throw undeliveredError(failure.status)
    this.#exchange.serve(attempt)
    return { kind: 'ended', end: { denied: { attempt, response } } }
  }

  /** While a credential is being fetched, there is nothing to end. */
  stop(reason: GatewayError): void {
    this.#current?.stop(reason)
  }
}

/** The targets of a WebSocket: each is tried once, in order. */
class HandshakePlan implements TargetPlan {
  readonly #order: readonly Target[]
  #at = 0

  /** @param order at least one */
  constructor(order: readonly Target[]) {
    this.#order = order
  }

  get current(): Target {
    return this.#order[0] as Target
  }

  next({ error }: AttemptFailure): RetryStep | null {
    return error === null || error.source === 'upstream' || isUnsuited(error.code) ? this.passOver() : null
  }

  passOver(): RetryStep | null {
    const target = this.#order[++this.#at]
    return target === undefined ? null : { target, delayMs: 0 }
  }
}

/** An attempt over a WebSocket. It ends with a failure only if the upstream does not accept the handshake. */
class WebSocketAttempt extends UpstreamAttempt {
  readonly mayBeBilled = false
  /** Why an open WebSocket ended; null = properly. */
  endError: GatewayError | null = null
  readonly #gateway: Gateway
  readonly #exchange: Exchange
  readonly #request: OutgoingRequest
  /** null = the request has no credential yet. */
  #tunnel: Tunnel | null = null

  constructor(gateway: Gateway, exchange: Exchange, part: UpstreamAttemptOptions, request: OutgoingRequest) {
    super(part)
    this.#gateway = gateway
    this.#exchange = exchange
    this.#request = request
    exchange.begin(this)
  }

  stop(reason: GatewayError): void {
    this.#tunnel?.abort(reason)
  }

  /** @param head bytes that the client sent after its handshake @returns null = the WebSocket was open and has ended */
  async run({ route }: Plan, socket: Socket, head: Buffer, rules: SessionRules): Promise<AttemptFailure | null> {
    const { clock } = this.#gateway
    try {
      const authorizing = this.authorize(this.#request)
      if (authorizing !== null) await authorizing
      this.#exchange.throwIfStopped()
    } catch (thrown) {
      return failureWithoutResponse(asGatewayError(thrown), clock.wall())
    }
    const tunnel = this.#tunnel = this.#createTunnel(route, socket, head, rules)
    const stopTimer = endWithIdentity(this.#gateway, this.#exchange, tunnel)
    const error = await tunnel.run(this.#gateway.proxy).finally(stopTimer)
    if (this.#exchange.delivery.status === 101) {
      this.endError = error ?? await this.session?.connectionClosed(tunnel.endedBy) ?? null
      return null
    }
    if (tunnel.refusal === null) return failureWithoutResponse(error ?? handshakeError(0, null), clock.wall())
    return refusedHandshake(withoutSecrets(tunnel.refusal, this.secrets), clock.wall(), this.refusesClient(tunnel.refusal.status))
  }

  #createTunnel({ timeouts }: Plan['route'], socket: Socket, head: Buffer, rules: SessionRules): Tunnel {
    const gateway = this.#gateway
    const exchange = this.#exchange
    const delivery = { status: 101, delivered: false, firstByteAt: 0, bytes: 0 }
    const guard = rules.check && new MessageGuard(exchange, rules.check, error => tunnel.refuse(error))
    const tunnel = new Tunnel({
      socket,
      head,
      path: this.#request.path,
      headers: guard === null ? this.#request.headers : withoutExtensions(this.#request.headers),
      handshake: handshakeHeaders(exchange.req as IncomingMessage, exchange.presentedSecrets, guard !== null),
      upstream: { url: this.upstream.url, agent: this.upstream.transport.agent },
      gatewayHeaders: gatewayHeadersFor(gateway, exchange, this.upstream.config),
      clock: gateway.clock,
      timeouts,
      startedAt: exchange.startedAt,
      onOpen: extensions => {
        exchange.deliverBy(delivery)
        this.record.status = 101
        this.health.responseStarted(this.elapsedMs)
        const { session } = exchange.classified.endpoint
        // The gateway does not read the messages of this endpoint, so their usage is unknown; they are billed.
        if (session === null) this.deliver(UNREAD_MESSAGES)
        else this.session = new MeteredSession(gateway, exchange, this, session, extensions, rules.reservations)
        writeCheckpoint(gateway, exchange)
        ;(exchange.res as ServerResponse).detachSocket(socket)
      },
      onUpstreamData: chunk => {
        delivery.bytes += chunk.length
        this.session?.receiveFromUpstream(chunk)
      },
      holdsClientData: guard !== null,
      onClientData: chunk => {
        const deciding = guard?.push(chunk) ?? null
        this.session?.receiveFromClient(chunk)
        return deciding
      },
    })
    return tunnel
  }
}

/** ms. A timer cannot be longer than 2^31 - 1 ms: later ends are not waited for. */
const MAX_TIMER = 24 * 86_400_000

/** Ends the session with the caller's token or the key. @returns stops the timer */
function endWithIdentity({ clock }: Gateway, exchange: Exchange, tunnel: Tunnel): () => void {
  const { expiresAt, claims } = exchange.identity
  const left = expiresAt === undefined ? Infinity : expiresAt - clock.wall()
  if (left > MAX_TIMER) return () => {}
  const timer = clock.setTimeout(() => {
    const error = claims === undefined ? new GatewayError('key_expired', 'the API key has expired')
      : new GatewayError('token_expired', 'the token of this session has expired; open a new session with a new token')
    if (exchange.delivery.status === 101) tunnel.refuse(error)
    else tunnel.abort(error)
  }, Math.max(0, left))
  return () => timer.cancel()
}

/** @param nowMs ms since 1970 @param isClients the client's own credential was refused */
function refusedHandshake({ status, headers, body }: HandshakeRefusal, nowMs: number, isClients: boolean): AttemptFailure {
  const head = responseHead(status, headers)
  const said = body && decompressedOrRaw(body, head.coding)
  // A 401 or 403 with a denial reason refuses the request's content, not the credential: the client gets the response unchanged.
  const reason = said && isCredentialRefused(status) ? denialReason(said) : null
  return {
    error: reason === null && !isClients ? handshakeError(status, headerValue(headers, 'retry-after')) : null,
    status,
    response: (reason === null && !isClients) || body === null ? null : { head, body },
    said,
    reason,
    retryAfterMs: requestedRetryDelay(headers, said, nowMs),
  }
}

function handshakeError(status: number, retryAfter: string | null): GatewayError {
  if (isCredentialRefused(status)) return credentialRejected(status)
  if (status !== 429 && status < 500) return upgradeRequired('the upstream does not support WebSockets here; use plain HTTP')
  return new GatewayError(
    'upstream_invalid', `the upstream responded with the status ${status} to the WebSocket handshake`,
    retryAfter === null ? {} : { headers: { 'retry-after': retryAfter } },
  )
}

function withoutSecrets(refusal: HandshakeRefusal, secrets: readonly string[]): HandshakeRefusal {
  const { status, headers, body } = refusal
  if (secrets.length === 0) return refusal
  const masked = body && maskBody(body, responseHead(status, headers).coding, secrets)
  const lines = maskHeaders(headers, secrets)
  return masked === null ? { ...refusal, headers: lines } : { ...refusal, headers: decompressedHeaders(lines), body: masked }
}

function outgoingHandshake(exchange: Exchange, upstream: LiveUpstream, target: Target, trace: readonly string[]): OutgoingRequest {
  const { req, target: { path, query }, classified, request } = exchange
  const model = target.model !== request.model ? target.model : null
  const source = headerSource(exchange, { raw: exchange.edits?.onRequest(req.rawHeaders) ?? req.rawHeaders, trace })
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

/** @param isPlain allow no compression, because the gateway reads messages before it forwards them */
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
