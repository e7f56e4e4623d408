import { GatewayError, overloaded } from '../../base/errors.ts'
import type { Target } from '../../config/types.ts'
import { AttemptAuthorization, REMEMBERED_STATUS } from '../../context/authorize.ts'
import { clientReceivedError, errorContent } from '../../context/error-response.ts'
import { wantsEventStream } from '../../context/exchange.ts'
import type { Exchange, Plan } from '../../context/exchange.ts'
import type { Gateway } from '../../context/gateway.ts'
import type { LiveUpstream } from '../../context/live-upstreams.ts'
import { NOT_DELIVERED } from '../../context/upstream-attempt.ts'
import type { UpstreamAttempt } from '../../context/upstream-attempt.ts'
import type { Authorization } from '../../credentials/credential.ts'
import { HEDGE_LOST } from '../../ledger/row.ts'
import type { MeteredResponse } from '../../pricing/settle-usage.ts'
import { errorIdentifier } from '../../protocols/shared/refusal-reason.ts'
import type { Edit } from '../../protocols/shared/splice.ts'
import { Attempt } from '../../proxy/attempt.ts'
import type { ResponseSink } from '../../proxy/attempt.ts'
import type { Deadlines } from '../../proxy/deadlines.ts'
import type { RawHeaders } from '../../proxy/raw-headers.ts'
import type { ResponseHead } from '../../proxy/response-head.ts'
import { isCredentialRefused, isFailure, isRetryableStatus } from '../../routing/failure.ts'
import type { HealthReporter } from '../../routing/health-reporter.ts'
import type { FramedStream } from '../respond/classification.ts'
import type { KeepAliveTimer } from '../respond/keep-alive-timer.ts'
import type { Relay, RelayEnd } from '../respond/relay.ts'
import type { ResponseRequirements } from '../respond/response-classifier.ts'
import { ResponseGate } from '../respond/response-gate.ts'
import { releaseHeldMemory, reserveHeldMemory } from '../respond/response-memory.ts'
import { decisionOf, failureWithoutResponse } from './attempt-failure.ts'
import type { AttemptFailure } from './attempt-failure.ts'
import { beginAttempt, credentialUse } from './begin-attempt.ts'
import { capsuleAccess } from './capsule-access.ts'
import { errorText } from './error-text.ts'
import { NOT_SENT, credentialReason } from './forward-log.ts'
import { outgoingRequest } from './outgoing-request.ts'
import { providerRequest } from './provider-request.ts'
import { NO_REFUSAL_TARGETS } from './refusal-targets.ts'
import { requestedRetryDelay } from './upstream-errors.ts'

/** Of a response that only a request refused for its content, or a rejected credential, keeps from the client. */
const ERROR_REQUIREMENTS: ResponseRequirements = { reasons: NO_REFUSAL_TARGETS, whole: false, content: false }

export interface CandidateAttemptOptions {
  readonly target: Target
  /** Credentials of the target that it refused for this request. */
  readonly refused: readonly Authorization[]
  readonly deadlines: Deadlines
  readonly relay: Relay
  readonly keepAlive: KeepAliveTimer
  /** What a response has to be before any of it goes to the client; null = no attempt follows, and it goes as it comes. */
  readonly requirements: ResponseRequirements | null
  /** What happens when a stream breaks. */
  readonly resume: Plan['route']['resume']
  /** What happens to a request whose target does not speak its protocol. */
  readonly translate: Plan['route']['translate']
  /** The attempt runs beside another: a good response of its own has begun. @returns false where the other is to respond */
  readonly claim: ((attempt: CandidateAttempt, status: number) => boolean) | null
  /** Edits of the request's body that ask for the rest of a response; null = all of it is requested. */
  readonly continuationEdits: ((body: Buffer) => Edit[]) | null
}

/** One attempt at one target over HTTP: its request, its outcome for the ledger, and for the target's health. */
export class CandidateAttempt {
  readonly state: UpstreamAttempt
  /** Path and query at the upstream. */
  readonly path: string
  readonly #attempt: Attempt
  readonly #options: CandidateAttemptOptions
  readonly #health: HealthReporter
  readonly #gateway: Gateway
  readonly #exchange: Exchange
  readonly #startedAt: number
  readonly #authorization: AttemptAuthorization
  /** Of the request that was translated, and of its capsules, as they count against `server.body_memory`. */
  #translatedBytes = 0
  /** Holds the response; null = it goes to the client as it comes, or no head came yet. */
  #gate: ResponseGate | null = null

  /** @throws GatewayError where the request cannot be made: then there is no attempt */
  constructor(gateway: Gateway, exchange: Exchange, options: CandidateAttemptOptions) {
    const { target, deadlines, continuationEdits } = options
    this.#options = options
    this.#gateway = gateway
    this.#exchange = exchange
    this.#startedAt = gateway.clock.monotonic()
    const upstream = gateway.upstreams.get(target.upstream.name) as LiveUpstream
    const trace = exchange.trace?.startAttempt() ?? []
    const { request: native, sent } = outgoingRequest(
      gateway, exchange, upstream, target, options.translate, continuationEdits, trace,
      capsuleAccess(gateway, exchange, bytes => this.#reserveMemory(bytes)),
    )
    const { request, readResponse } = providerRequest(upstream, native, {
      endpoint: sent.translated?.endpoint ?? exchange.classified.endpoint,
      model: target.model ?? exchange.request.model,
      stream: sent.translated?.request.stream ?? exchange.request.stream,
    })
    if (sent.translated !== null) this.#reserveMemory((request.body as Buffer).length)
    this.path = upstream.prefix + request.path
    const { state, health } = beginAttempt(gateway, exchange, target, sent, this.#startedAt)
    this.state = state
    this.#health = health
    this.#authorization = new AttemptAuthorization(upstream, credentialUse(exchange, target), options.refused)
    this.#attempt = new Attempt({
      upstream,
      request,
      authorize: this.#authorization.authorize,
      secrets: this.#authorization.secrets,
      client: exchange,
      deadlines,
      readTurns: gateway.sharedState.readTurns,
      ...readResponse && { readResponse },
      decompresses: sent.translated !== null || (options.resume !== 'off' && wantsEventStream(exchange)),
      sinkFor: (status, headers) => this.#sinkFor(status, headers),
    })
  }

  /** @returns null when the response goes to the client; otherwise the client got none of it */
  run(): Promise<AttemptFailure | null> {
    return this.#attempt.run(this.#gateway.proxy).then(error => {
      if (error !== null) return failureWithoutResponse(error)
      return this.#gate === null ? null : decisionOf(this.#gate)
    })
  }

  /** Milliseconds from the request to the latest bytes of the response, or to its failure. */
  get waitedMs(): number {
    return this.#attempt.waitedMs
  }

  /** The client has the first byte. */
  relayed(): void {
    this.#attempt.relayed()
  }

  /** The upstream may have started to work on the request, and has not refused it: the prompt may be billed. */
  get mayBeBilled(): boolean {
    return this.#attempt.sent && (this.#gate?.status ?? 0) < 400
  }

  /** What it is settled by if nobody awaits its response any more. */
  get abandonedResponse(): MeteredResponse {
    return this.#gate?.abandoned ?? NOT_DELIVERED
  }

  /** What a held response lacked that went to the client although it broke; null = none did. */
  get missingEnd(): Buffer | null {
    return this.#gate?.missingEnd ?? null
  }

  /** The stream that was held and goes to the client; null = it was not split into events yet. */
  get framed(): FramedStream | null {
    return this.#gate?.framed ?? null
  }

  /** What came of a response that was held and did not go to the client. */
  get heldBody(): Buffer | null {
    return this.#gate?.heldBody ?? null
  }

  /** Closes the upstream's side. */
  abort(reason: GatewayError): void {
    this.#attempt.abort(reason)
  }

  /** Ends it from outside, with the response that is held. */
  stop(reason: GatewayError): void {
    this.#attempt.abort(reason)
    this.#gate?.stop(reason)
  }

  /** The client has all of the response: the upstream has a short time to end it. */
  discardRest(): void {
    this.#attempt.discardRest(this.#gateway.clock)
  }

  /** Lets the upstream send more. */
  resume(): void {
    this.#attempt.resume()
  }

  /** A response has begun that is no error. */
  responseStarted(): void {
    this.#health.responseStarted(this.#elapsedMs)
  }

  /**
   * @returns the credentials that were refused so far, for another attempt at the target with another credential;
   *   null = the failure is not the credential's, or there is no other
   */
  otherCredential({ error, status, headers, said, reason }: AttemptFailure): readonly Authorization[] | null {
    const refusedWith = status ?? (error?.code === 'upstream_rejected_key' ? REMEMBERED_STATUS : null)
    if (reason !== null || refusedWith === null) return null
    const retryAfterMs = requestedRetryDelay(headers, said, this.#gateway.clock.wall())
    return this.#authorization.alternatives({ status: refusedWith, retryAfterMs })
  }

  /** The upstream refused the credential: after a 401 it is not sent again for a while. @returns false = this was known */
  rememberRefusal(status: number): boolean {
    return this.#authorization.rememberRefusal(status)
  }

  /**
   * It failed before the client got any of its response.
   *
   * @param isRetried the target is tried again with another credential
   */
  failed({ error, status, headers, said, reason }: AttemptFailure, isRetried: boolean): void {
    // A client that left may have to pay for the prompt.
    if (this.#exchange.stopped === null) this.#releaseTranslated()
    const isRejected = this.#isLast && !isRetried && reason === null && status !== null && isCredentialRefused(status)
    this.#recordOutcome(error?.code ?? (isRejected ? 'upstream_rejected_key' : 'error_answer'), status)
    this.#recordError(said)
    if (error?.code === 'credential_unavailable') this.state.record.said = credentialReason(error)
    if (error?.code === 'upstream_rejected_key') this.state.record.said = NOT_SENT
    // A request that is refused for its content is no fault of the upstream, nor is an old credential, or a limit.
    const isFault = isRetried || error?.code === 'upstream_rate_limited' ? false : error
      ? error.source === 'upstream'
      : reason === null && status !== null && isFailure(status)
        && !(isCredentialRefused(status) && this.#authorization.isClientsChoice)
    if (isFault) this.#health.failed(requestedRetryDelay(headers, said, this.#gateway.clock.wall()))
    else this.#health.abandoned()
  }

  /** The client got the beginning of its response, and another attempt continues it. */
  interrupted(error: GatewayError, status: number): void {
    // The next attempt may be at the same upstream. What this one used is settled when the exchange ends.
    this.state.reservation?.releaseConcurrency()
    this.#recordOutcome(error.code, status)
    this.#health.failed(null)
  }

  /**
   * The client got its response, to its end or not.
   *
   * @param head of the response
   * @param endFault what the upstream left out at the end, although the client got all of it
   */
  ended(end: RelayEnd, head: Pick<ResponseHead, 'status' | 'headers'>, endFault: GatewayError | null): void {
    const { status, headers } = head
    const errorBody = this.state.response?.errorBody ?? null
    const error = end ?? endFault
    const isError = clientReceivedError(this.#exchange)
    this.#recordOutcome(error?.code ?? (isError ? 'error_answer' : 'ok'), status)
    this.#recordError(errorBody ?? (isError ? errorContent(this.#exchange) : null))
    if (error?.source === 'upstream') this.#health.failed(null)
    else if (error !== null) this.#health.abandoned()
    else if (!isError) this.#health.succeeded()
    else if (status < 400) this.#health.failed(null)
    else if (!isRetryableStatus(status)) this.#health.abandoned()
    else this.#health.failed(requestedRetryDelay(headers, errorBody, this.#gateway.clock.wall()))
  }

  /** The response of another attempt goes to the client. */
  lost(): void {
    this.#recordOutcome(HEDGE_LOST, null)
    this.#health.abandoned()
    this.stop(new GatewayError('internal', 'another target responded first'))
  }

  /** The exchange is over; after an outcome of its own this does nothing. */
  abandon(): void {
    this.#health.abandoned()
  }

  /** No other attempt can follow: its error goes to the client. */
  get #isLast(): boolean {
    return this.#options.requirements === null
  }

  /** @throws GatewayError overloaded */
  #reserveMemory(bytes: number): void {
    if (!reserveHeldMemory(this.#gateway, this.#exchange, bytes)) {
      throw overloaded('the bodies of running requests and the translated request use all of server.body_memory')
    }
    this.#translatedBytes += bytes
  }

  #releaseTranslated(): void {
    this.state.releaseBody()
    releaseHeldMemory(this.#gateway, this.#exchange, this.#translatedBytes)
    this.#translatedBytes = 0
  }

  #sinkFor(status: number, headers: RawHeaders): ResponseSink {
    this.#authorization.responded(status, headers)
    const { relay, requirements } = this.#options
    // A 401 or 403 may refuse the request for its content, also where no other attempt can follow. A response that
    // is translated has to be one that can be.
    const isRead = isCredentialRefused(status) || this.#authorization.isRefusal(status) || this.state.translated !== null
    const required = requirements ?? (isRead ? ERROR_REQUIREMENTS : null)
    if (required === null) return relay
    const { claim } = this.#options
    // Of several attempts, the head is read as a response to this one.
    if (claim !== null) this.#exchange.servedBy = this.state
    this.#gate = new ResponseGate(this.#gateway, this.#exchange, {
      ...this.#options, requirements: required, attempt: this.#attempt, claim: at => claim?.(this, at) ?? true,
    })
    this.state.held = this.#gate
    return this.#gate
  }

  #recordOutcome(outcome: string, status: number | null): void {
    const { record } = this.state
    record.ms = this.#elapsedMs
    record.outcome = outcome
    if (status !== null) record.status = status
  }

  #recordError(errorBody: Buffer | null): void {
    if (errorBody === null) return
    const { record } = this.state
    const identifier = errorIdentifier(errorBody)
    if (identifier) record.said = identifier
    const text = errorText(errorBody, this.#authorization.secrets())
    if (text) record.errorText = text
  }

  get #elapsedMs(): number {
    return this.#gateway.clock.monotonic() - this.#startedAt
  }
}
