import { causeOf } from '../../base/errors.ts'
import type { GatewayError } from '../../base/errors.ts'
import type { Target } from '../../config/types.ts'
import { clientReceivedError, errorContent } from '../exchange/error-response.ts'
import { REMEMBERED_STATUS } from '../../upstreams/attempt.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { Gateway } from '../parts/gateway.ts'
import { NOT_DELIVERED } from '../exchange/upstream-attempt.ts'
import type { UpstreamAttempt } from '../exchange/upstream-attempt.ts'
import type { Authorization } from '../../upstreams/credentials/credential.ts'
import { HEDGE_LOST } from '../../ledger/row.ts'
import { createAbandonedUsage } from '../../pricing/interrupted-usage.ts'
import { errorIdentifier } from '../../protocols/endpoint/refusal-reason.ts'
import type { ResponseHead } from '../../proxy/upstream/response-head.ts'
import { isCredentialRefused, isFailure, isOperatorError, isRetryableStatus } from '../../routing/failure.ts'
import type { RetryStep } from '../../routing/retry-policy.ts'
import type { HeldResponse } from '../respond/response-gate.ts'
import { errorText, requestedRetryDelay, withErrorStatus } from './attempt-failure.ts'
import type { AttemptFailure } from './attempt-failure.ts'

/** Why a credential was not sent, as the ledger stores it. */
const NOT_SENT = 'not sent: the upstream refused the credential a moment ago'

/**
 * Records how the attempts of an exchange end, over HTTP or a WebSocket: for the ledger and the trace (`record`), the
 * health of the target, the log and the console.
 */
export class AttemptRecorder {
  /** The latest error of an upstream, which the client gets if no attempt follows. */
  lastErrorResponse: { readonly response: HeldResponse; readonly attempt: UpstreamAttempt } | null = null
  /** Milliseconds that the gateway waited for earlier attempts and between them. */
  waitedMs = 0
  readonly #gateway: Gateway
  readonly #exchange: Exchange

  constructor(gateway: Gateway, exchange: Exchange) {
    this.#gateway = gateway
    this.#exchange = exchange
  }

  /**
   * The attempt failed before the client got any of its response.
   *
   * @param isRetried the target is tried again with another credential
   * @param isLast no other attempt can follow: its error goes to the client
   * @param isContinuation the attempt was to continue the client's stream
   */
  failed(
    attempt: UpstreamAttempt, failure: AttemptFailure,
    { isRetried, isLast, isContinuation }: { readonly isRetried: boolean, readonly isLast: boolean, readonly isContinuation: boolean },
  ): void {
    const { error, status, response, said, reason, retryAfterMs } = failure
    // A request that is refused for its content says nothing about the credential, whatever the status.
    const isOurs = reason === null && status !== null
    const isSecret = isOurs && isCredentialRefused(status)
    this.#outcome(attempt, error?.code ?? (isLast && !isRetried && isSecret ? 'upstream_rejected_key' : 'error_answer'), status)
    if (said !== null) this.#error(attempt, said)
    if (error?.code === 'credential_unavailable') attempt.record.said = credentialReason(error)
    if (error?.code === 'upstream_rejected_key' && status === null) attempt.record.said = NOT_SENT
    // The upstream is not at fault if it refused the content, an outdated credential, or a request over a limit.
    const isFault = reason !== null || isRetried || error?.code === 'upstream_rate_limited' ? false : error
      ? error.source === 'upstream'
      : status !== null && isFailure(status) && !(isSecret && attempt.isClientsChoice)
    if (isFault) attempt.health.failed(retryAfterMs)
    else attempt.health.abandoned()
    // A client that disconnects now may be billed for the prompt.
    attempt.fail(this.#exchange.stopped !== null && attempt.mayBeBilled ? NOT_DELIVERED : null)
    // A client that disconnects while a response is held is billed for the part that was generated.
    const held = error?.code === 'client_gone' ? attempt.readHeld() : null
    if (held !== null) attempt.deliver(held)
    if (isOurs && isOperatorError(status) && attempt.rememberRefusal(status) && !isRetried) this.credentialRejected(attempt.target, status)
    if (error?.code === 'credential_unavailable') this.#credentialFailed(attempt.target, causeOf(error) ?? error.message)
    if (response && !isSecret && !isContinuation) this.lastErrorResponse = { response: withErrorStatus(response, attempt), attempt }
  }

  /** The client got the beginning of its response, and another attempt continues it. */
  interrupted(attempt: UpstreamAttempt, error: GatewayError, status: number): void {
    // The next attempt may use the same upstream. The usage of this one is settled when the exchange ends.
    attempt.reservation?.releaseConcurrency()
    this.#outcome(attempt, error.code, status)
    attempt.health.failed(null)
  }

  /**
   * The client got the response, complete or not.
   *
   * @param end why it is incomplete; null = it is complete
   * @param endFault what the upstream left out at the end, although the client got the whole content
   */
  ended(attempt: UpstreamAttempt, end: GatewayError | null, { status, headers }: Pick<ResponseHead, 'status' | 'headers'>, endFault: GatewayError | null): void {
    const errorBody = attempt.response?.errorBody ?? null
    const error = end ?? endFault
    const isError = attempt.receivedError = clientReceivedError(this.#exchange)
    this.#outcome(attempt, error?.code ?? (isError ? 'error_answer' : 'ok'), status)
    const said = errorBody ?? (isError ? errorContent(this.#exchange) : null)
    if (said !== null) this.#error(attempt, said)
    if (error?.source === 'upstream') attempt.health.failed(null)
    else if (error !== null) attempt.health.abandoned()
    else if (!isError) attempt.health.succeeded()
    else if (status < 400) attempt.health.failed(null)
    else if (!isRetryableStatus(status)) attempt.health.abandoned()
    else attempt.health.failed(requestedRetryDelay(headers, errorBody, this.#gateway.clock.wall()))
  }

  /** An open WebSocket has ended. @param failure the reason; null = properly */
  sessionEnded(attempt: UpstreamAttempt, failure: GatewayError | null, isClientFault: boolean): void {
    this.#outcome(attempt, failure?.code ?? 'ok', 101)
    if (failure?.code !== 'upstream_cut') attempt.health.succeeded()
    else if (isClientFault) attempt.health.abandoned()
    else attempt.health.failed(null)
  }

  /** The client gets the response of another attempt. */
  lost(attempt: UpstreamAttempt): void {
    this.#outcome(attempt, HEDGE_LOST, null)
    attempt.health.abandoned()
    attempt.fail(attempt.mayBeBilled ? attempt.abandonedResponse : null)
    this.billAbandoned(attempt)
  }

  /**
   * Bills an attempt whose response nobody waits for any more: by the usage that the upstream has reported so far, or
   * else by the prompt. If the upstream has refused it, it is not billed.
   */
  billAbandoned(attempt: UpstreamAttempt): void {
    if (!attempt.mayBeBilled) return
    const { accounts: { counter }, config: { billing } } = this.#gateway
    const { classified, request: { body } } = this.#exchange
    attempt.share = createAbandonedUsage(counter, {
      endpoint: attempt.endpoint ?? classified.endpoint,
      request: attempt.sentBody ?? body?.bytes ?? null,
      response: attempt.abandonedResponse,
      estimatedInput: attempt.estimatedInput,
    }, billing.abandoned)
  }

  /** The upstream refused the operator's credential. */
  credentialRejected({ upstream: { name } }: Target, status: number): void {
    this.#gateway.sharedState.credentialFailures.set(name, { reason: `rejected by the upstream (${status})`, at: this.#gateway.clock.wall() })
    this.#gateway.log.error(
      { ...this.#exchange.logIds, upstream: name, status },
      "the upstream refused the gateway's own credential: check upstreams.%s.auth", name,
    )
  }

  /** An attempt failed, and another follows. */
  logRetry({ record: { upstream, outcome, status } }: UpstreamAttempt, { target, delayMs }: RetryStep): void {
    const line = { ...this.#exchange.logIds, upstream, outcome, status, next: target.upstream.name, wait_ms: delayMs }
    this.#gateway.log.warn(line, 'attempt failed')
  }

  /** A target is skipped because its upstream is at its limit. @param step null = there is no other target */
  logPassedOver(upstream: string, step: RetryStep | null): void {
    const line = { ...this.#exchange.logIds, upstream, next: step?.target.upstream.name }
    this.#gateway.log.info(line, 'target skipped: its upstream is at its limit')
  }

  /** A target has not responded yet: a second attempt starts at another target. */
  logHedge({ record: { upstream } }: UpstreamAttempt, { upstream: { name } }: Target): void {
    this.#gateway.log.info({ ...this.#exchange.logIds, upstream, beside: name }, 'the upstream is slow: another one is asked too')
  }

  /** No other target can continue a stream that broke. @param why the reason */
  logNotContinued(why: string): void {
    this.#gateway.log.info({ ...this.#exchange.logIds, why }, 'the stream cannot be continued')
  }

  /** Stores the reason for the status. The credential itself logs it. */
  #credentialFailed({ upstream: { name } }: Target, reason: string): void {
    this.#gateway.sharedState.credentialFailures.set(name, { reason, at: this.#gateway.clock.wall() })
  }

  #outcome(attempt: UpstreamAttempt, outcome: string, status: number | null): void {
    const { record } = attempt
    record.ms = attempt.elapsedMs
    record.outcome = outcome
    if (status !== null) record.status = status
  }

  #error(attempt: UpstreamAttempt, body: Buffer): void {
    const identifier = errorIdentifier(body)
    if (identifier) attempt.record.said = identifier
    const text = errorText(body, attempt.secrets)
    if (text) attempt.record.errorText = text
  }
}

/**
 * @returns the credentials refused so far, for another attempt at the target with another credential; null = the
 *   failure is not caused by the credential, or there is no other credential
 */
export function otherCredential(attempt: UpstreamAttempt, { error, status, reason, retryAfterMs }: AttemptFailure): readonly Authorization[] | null {
  const refusedWith = status ?? (error?.code === 'upstream_rejected_key' ? REMEMBERED_STATUS : null)
  if (reason !== null || refusedWith === null) return null
  return attempt.alternatives({ status: refusedWith, retryAfterMs })
}

/** Why the credential of an attempt was not available, as the ledger stores it. */
export function credentialReason(error: GatewayError): string {
  return `credentials: ${causeOf(error) ?? error.message}`
}
