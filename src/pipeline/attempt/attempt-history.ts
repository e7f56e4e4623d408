import type { Exchange } from '../../context/exchange.ts'
import type { Gateway } from '../../context/gateway.ts'
import { NOT_DELIVERED } from '../../context/upstream-attempt.ts'
import type { UpstreamAttempt } from '../../context/upstream-attempt.ts'
import { createAbandonedUsage } from '../../pricing/interrupted-usage.ts'
import { responseHead } from '../../proxy/response-head.ts'
import { isCredentialRefused, isOperatorError } from '../../routing/failure.ts'
import type { HeldResponse } from '../respond/response-gate.ts'
import { createResponseStream } from '../respond/response-stages.ts'
import type { AttemptFailure } from './attempt-failure.ts'
import type { CandidateAttempt } from './candidate-attempt.ts'
import { reportCredentialRejected, reportCredentialUnavailable } from './forward-log.ts'
import { withErrorStatus } from './upstream-errors.ts'

/** The attempts of an exchange so far: the one that runs, and what came of those that failed. */
export class AttemptHistory {
  /** null = none runs. */
  current: CandidateAttempt | null = null
  /** The latest error of an upstream's own, which the client gets if no attempt follows. */
  lastErrorResponse: { readonly response: HeldResponse; readonly attempt: UpstreamAttempt } | null = null
  /** Milliseconds in which earlier attempts and pauses between them had the gateway wait. */
  waitedMs = 0
  readonly #gateway: Gateway
  readonly #exchange: Exchange

  constructor(gateway: Gateway, exchange: Exchange) {
    this.#gateway = gateway
    this.#exchange = exchange
  }

  /**
   * Records an attempt that failed before the client got any of its response.
   *
   * @param isRetried the target is tried again with another credential
   * @param isContinuation it was to continue the client's stream
   */
  recordFailure(current: CandidateAttempt, failure: AttemptFailure, isRetried: boolean, isContinuation: boolean): void {
    const exchange = this.#exchange
    const { state } = current
    const { status, response, reason } = failure
    current.failed(failure, isRetried)
    // A client that leaves now may have to pay for the prompt.
    state.fail(exchange.stopped !== null && current.mayBeBilled ? NOT_DELIVERED : null)
    if (failure.error?.code === 'client_gone') this.#recordHeldUsage(current, failure)
    // A request that is refused for its content says nothing about the credential, whatever the status.
    const isOurs = reason === null && status !== null
    if (isOurs && isOperatorError(status) && current.rememberRefusal(status) && !isRetried) {
      reportCredentialRejected(this.#gateway, exchange, state.target, status)
    }
    if (failure.error?.code === 'credential_unavailable') reportCredentialUnavailable(this.#gateway, state.target, failure.error)
    const isSecret = isOurs && isCredentialRefused(status)
    if (response && !isSecret && !isContinuation) {
      this.lastErrorResponse = { response: withErrorStatus(response, state), attempt: state }
    }
  }

  /**
   * Bills an attempt whose response nobody awaits any more, unless the upstream has refused it: what the upstream has
   * reported so far, or else the prompt.
   */
  billAbandoned({ state, mayBeBilled, abandonedResponse }: CandidateAttempt): void {
    if (!mayBeBilled) return
    const { accounts: { counter }, config: { billing } } = this.#gateway
    const { classified, request: { body } } = this.#exchange
    state.share = createAbandonedUsage(counter, {
      endpoint: state.endpoint ?? classified.endpoint,
      request: state.sentBody ?? body?.bytes ?? null,
      answer: abandonedResponse,
      estimatedInput: state.estimatedInput,
    }, billing.abandoned)
  }

  /** A client that leaves while a response is held pays for what was generated of it. */
  #recordHeldUsage({ state, heldBody }: CandidateAttempt, { status, headers }: AttemptFailure): void {
    if (status === null || heldBody === null || heldBody.length === 0) return
    const stream = createResponseStream(this.#gateway, this.#exchange, state, responseHead(status, headers), null, ignoreFault)
    state.deliver(stream)
    stream?.push(heldBody)
    stream?.end()
  }
}

function ignoreFault(): void {
  // No client gets the stream.
}
