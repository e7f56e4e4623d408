import { causeOf, type GatewayError } from '../../base/errors.ts'
import type { Target } from '../../config/types.ts'
import { clientReceivedError, errorContent } from '../exchange/error-response.ts'
import { REMEMBERED_STATUS } from '../../upstreams/attempt.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { Gateway } from '../parts/gateway.ts'
import { NOT_DELIVERED, type UpstreamAttempt } from '../exchange/upstream-attempt.ts'
import type { Authorization } from '../../upstreams/credentials/credential.ts'
import { HEDGE_LOST } from '../../ledger/row.ts'
import { createAbandonedUsage } from '../../pricing/interrupted-usage.ts'
import { errorIdentifier } from '../../protocols/endpoint/refusal-reason.ts'
import type { ResponseHead } from '../../proxy/upstream/response-head.ts'
import { isCredentialRefused, isFailure, isOperatorError, isRetryableStatus } from '../../routing/failure.ts'
import type { RetryStep } from '../../routing/retry-policy.ts'
import type { HeldResponse } from '../respond/response-gate.ts'
import { errorText, requestedRetryDelay, withErrorStatus, type AttemptFailure } from './attempt-failure.ts'

/** The ledger's text for a credential that was not sent. */
const NOT_SENT = 'not sent: the upstream refused the credential a moment ago'

/** Records how attempts end: for the ledger and the trace (`record`), the health of the target, the log and the console. */
export class AttemptRecorder {
  /** The latest error of an upstream, which the client gets if no attempt follows. */
  lastErrorResponse: { readonly response: HeldResponse; readonly attempt: UpstreamAttempt } | null = null
  /** Milliseconds that the gateway waited for earlier attempts and between the attempts. */
  waitedMs = 0
  readonly #gateway: Gateway
  readonly #exchange: Exchange

  constructor(gateway: Gateway, exchange: Exchange) {
    this.#gateway = gateway
    this.#exchange = exchange
  }

  /** @param isRetried with another credential @param isLast the client gets the error @param isContinuation it continued a stream */
  failed(
    attempt: UpstreamAttempt, failure: AttemptFailure,
    { isRetried, isLast, isContinuation }: { readonly isRetried: boolean, readonly isLast: boolean, readonly isContinuation: boolean },
  ): void {
    const { error, status, response, said, reason, retryAfterMs } = failure
    // If the upstream refused the request's content, even a 401 or 403 does not mean that the credential is bad.
    const isOurs = reason === null && status !== null
    const isClients = status !== null && attempt.concernsClient(status)
    const isSecret = isOurs && isCredentialRefused(status) && !isClients
    this.#outcome(attempt, error?.code ?? (isLast && !isRetried && isSecret ? 'upstream_rejected_key' : 'error_answer'), status)
    if (said !== null) this.#error(attempt, said)
    if (error?.code === 'credential_unavailable') attempt.record.said = credentialReason(error)
    if (error?.code === 'upstream_rejected_key' && status === null) attempt.record.said = NOT_SENT
    // Refused content, an outdated credential, a limit and the client's own account are no fault of the upstream.
    const isFault = reason !== null || isRetried || isClients || error?.code === 'upstream_rate_limited' ? false : error
      ? error.source === 'upstream'
      : status !== null && isFailure(status) && !(isSecret && attempt.isClientsChoice)
    if (isFault) attempt.health.failed(retryAfterMs)
    else attempt.health.abandoned()
    attempt.fail(this.#exchange.stopped !== null && attempt.mayBeBilled ? NOT_DELIVERED : null)
    // If the client disconnected, the held part of the response is billed, although the client got none of it.
    const held = error?.code === 'client_gone' ? attempt.readHeld() : null
    if (held !== null) attempt.deliver(held)
    if (isOurs && isOperatorError(status) && !isClients && attempt.rememberRefusal(status) && !isRetried) this.credentialRejected(attempt.target, status)
    if (error?.code === 'credential_unavailable') {
      // The log has the reason from the credential's source already.
      const reason = causeOf(error) ?? error.message
      this.#gateway.sharedState.credentialFailures.set(attempt.target.upstream.name, { reason, at: this.#gateway.clock.wall() })
    }
    if (response && !isSecret && !isContinuation) this.lastErrorResponse = { response: withErrorStatus(response, attempt), attempt }
  }

  /** The stream broke after the client got its beginning, and another attempt continues it. */
  interrupted(attempt: UpstreamAttempt, error: GatewayError, status: number): void {
    // Release concurrency now, because the next attempt may use the same upstream. The usage is settled when the exchange ends.
    attempt.reservation?.releaseConcurrency()
    this.#outcome(attempt, error.code, status)
    attempt.health.failed(null)
  }

  /** @param end why the response is incomplete; null = complete @param endFault why a stream with complete content had no proper end */
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
    else if (!isRetryableStatus(status) || attempt.concernsClient(status)) attempt.health.abandoned()
    else attempt.health.failed(requestedRetryDelay(headers, errorBody, this.#gateway.clock.wall()))
  }

  /** @param failure null = the session ended properly */
  sessionEnded(attempt: UpstreamAttempt, failure: GatewayError | null, isClientFault: boolean): void {
    this.#outcome(attempt, failure?.code ?? 'ok', 101)
    if (failure?.code !== 'upstream_cut') attempt.health.succeeded()
    else if (isClientFault) attempt.health.abandoned()
    else attempt.health.failed(null)
  }

  /** The attempt is stopped because the client gets the response of another attempt. */
  lost(attempt: UpstreamAttempt): void {
    this.#outcome(attempt, HEDGE_LOST, null)
    attempt.health.abandoned()
    attempt.fail(attempt.mayBeBilled ? attempt.abandonedResponse : null)
    this.billAbandoned(attempt)
  }

  /** Bills a stopped attempt: by the usage reported so far, otherwise by the prompt. Does not bill an attempt that the upstream refused. */
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

  credentialRejected({ upstream: { name } }: Target, status: number): void {
    this.#gateway.sharedState.credentialFailures.set(name, { reason: `rejected by the upstream (${status})`, at: this.#gateway.clock.wall() })
    this.#gateway.log.error(
      { ...this.#exchange.logIds, upstream: name, status },
      "the upstream refused the gateway's own credential: check upstreams.%s.auth", name,
    )
  }

  logRetry({ record: { upstream, outcome, status } }: UpstreamAttempt, { target, delayMs }: RetryStep): void {
    const line = { ...this.#exchange.logIds, upstream, outcome, status, next: target.upstream.name, wait_ms: delayMs }
    this.#gateway.log.warn(line, 'attempt failed')
  }

  /** @param step null = there is no other target */
  logPassedOver(upstream: string, step: RetryStep | null): void {
    const line = { ...this.#exchange.logIds, upstream, next: step?.target.upstream.name }
    this.#gateway.log.info(line, 'target skipped: its upstream is at its limit')
  }

  logHedge({ record: { upstream } }: UpstreamAttempt, { upstream: { name } }: Target): void {
    this.#gateway.log.info({ ...this.#exchange.logIds, upstream, beside: name }, 'the upstream is slow: another one is asked too')
  }

  logNotContinued(why: string): void {
    this.#gateway.log.info({ ...this.#exchange.logIds, why }, 'the stream cannot be continued')
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

/** @returns the credentials refused so far; null = another credential cannot help, or there is none */
export function otherCredential(attempt: UpstreamAttempt, { error, status, reason, retryAfterMs }: AttemptFailure): readonly Authorization[] | null {
  const refusedWith = status ?? (error?.code === 'upstream_rejected_key' ? REMEMBERED_STATUS : null)
  if (reason !== null || refusedWith === null) return null
  return attempt.alternatives({ status: refusedWith, retryAfterMs })
}

/** The ledger's text for a credential that is not available. */
export function credentialReason(error: GatewayError): string {
  return `credentials: ${causeOf(error) ?? error.message}`
}
