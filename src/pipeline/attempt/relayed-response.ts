import type { GatewayError } from '../../base/errors.ts'
import type { ResumeMode } from '../../config/types.ts'
import { wantsEventStream } from '../../context/exchange.ts'
import type { Exchange } from '../../context/exchange.ts'
import type { Gateway } from '../../context/gateway.ts'
import type { UpstreamAttempt } from '../../context/upstream-attempt.ts'
import type { Deadlines } from '../../proxy/deadlines.ts'
import { headerValue } from '../../proxy/raw-headers.ts'
import type { RawHeaders } from '../../proxy/raw-headers.ts'
import type { ResponseHead } from '../../proxy/response-head.ts'
import { isOperatorError } from '../../routing/failure.ts'
import { Continuation } from '../respond/continuation.ts'
import { KeepAliveTimer } from '../respond/keep-alive-timer.ts'
import { Relay } from '../respond/relay.ts'
import type { RelayEnd } from '../respond/relay.ts'
import type { ResponseBody, ResponseSource } from '../respond/response-source.ts'
import { createResponseStream } from '../respond/response-stages.ts'
import { failureWithoutResponse } from './attempt-failure.ts'
import type { AttemptHistory } from './attempt-history.ts'
import type { CandidateAttempt } from './candidate-attempt.ts'
import { logNotContinued, reportCredentialRejected } from './forward-log.ts'
import type { RetryPlan } from './retry-plan.ts'
import { selfRedirectError } from './self-redirect.ts'
import { upstreamErrorEvent } from './upstream-errors.ts'

export interface RelayedResponseOptions {
  readonly history: AttemptHistory
  readonly retryPlan: RetryPlan
  readonly deadlines: Deadlines
  /** As the route has it. */
  readonly resume: ResumeMode
}

/** The response that the client gets: of one attempt, or of several where another target continues a broken stream. */
export class RelayedResponse implements ResponseSource {
  readonly relay: Relay
  readonly resumeMode: Exclude<ResumeMode, 'continue_or_hold'>
  /** Lets other targets continue the client's stream where it breaks; null = none may. */
  readonly continuation: Continuation | null
  /** For a client that waits for a stream that is held, or that is to be continued. */
  readonly keepAlive: KeepAliveTimer
  readonly #gateway: Gateway
  readonly #exchange: Exchange
  readonly #options: RelayedResponseOptions
  /** No attempt follows, and the client gets an error. */
  #gaveUp = false
  /** Why the upstream did not send the end of the protocol after the whole content; null = it did. */
  #endFault: GatewayError | null = null
  #headers: RawHeaders = []

  constructor(gateway: Gateway, exchange: Exchange, options: RelayedResponseOptions) {
    const { resume, retryPlan, deadlines } = options
    this.#gateway = gateway
    this.#exchange = exchange
    this.#options = options
    this.relay = new Relay(gateway, exchange, deadlines, this)
    this.keepAlive = new KeepAliveTimer(gateway.clock, this.relay, exchange.classified.endpoint.format)
    const mayContinue = (resume === 'continue' || resume === 'continue_or_hold') && wantsEventStream(exchange)
    const continuation = mayContinue ? new Continuation(gateway, exchange, error => this.#onStreamFault(error)) : null
    const canContinue = continuation?.isPossible === true && retryPlan.hasContinuationTarget
    this.resumeMode = resume === 'continue_or_hold' ? (canContinue ? 'continue' : 'hold') : resume
    this.continuation = this.resumeMode === 'continue' ? continuation : null
  }

  /** What broke the stream that another target is to continue; null = nothing did. */
  get streamError(): GatewayError | null {
    return this.continuation?.streamError ?? null
  }

  /** The response of that attempt went to the client, to its end or not. */
  ended(current: CandidateAttempt, end: RelayEnd): GatewayError | null {
    current.ended(end, { status: this.relay.status, headers: this.#headers }, this.#endFault)
    return end
  }

  /** The client has its head already: its stream gets an error event. */
  async break(error: GatewayError): Promise<GatewayError | null> {
    this.#gaveUp = true
    this.relay.broken(error)
    return await this.relay.done
  }

  /** No attempt follows: the client gets the latest error of an upstream's own. @returns null = there is none that it could get */
  sendLastError(): Promise<GatewayError | null> | null {
    const last = this.#options.history.lastErrorResponse
    const { relay } = this
    if (last === null || relay.isWaiting) return null
    const { attempt, response } = last
    this.#gaveUp = true
    this.#exchange.servedBy = attempt
    const refused = relay.head(response.status, response.headers, response.httpVersion)
    if (refused) throw refused
    relay.data(response.body)
    relay.end()
    return relay.done
  }

  openBody(head: ResponseHead): GatewayError | ResponseBody | null {
    const exchange = this.#exchange
    const { history } = this.#options
    const attempt = exchange.servedBy as UpstreamAttempt
    const { current } = history
    const redirectError = current && selfRedirectError(head, current.state.target.upstream, current.path)
    if (redirectError !== null) return redirectError
    // The gate has read an error that was held, and a rejected credential never gets here.
    if (!this.#gaveUp && isOperatorError(head.status)) {
      reportCredentialRejected(this.#gateway, exchange, attempt.target, head.status)
    }
    this.keepAlive.stop()
    history.lastErrorResponse = null
    this.#headers = head.headers
    const framed = this.#gaveUp || attempt.translated ? null : history.current?.framed ?? null
    const onFault = (error: GatewayError) => this.#onStreamFault(error)
    const stream = createResponseStream(this.#gateway, exchange, attempt, head, this.continuation, onFault, framed)
    attempt.deliver(stream)
    if (exchange.recording) {
      const sent = stream?.translateHeaders?.(head.headers) ?? head.headers
      exchange.recording.contentType = headerValue(sent, 'content-type')
      exchange.recording.encoding = headerValue(sent, 'content-encoding')
    }
    return stream
  }

  onFirstByte(): void {
    const exchange = this.#exchange
    const { current, waitedMs } = this.#options.history
    if (current !== null && exchange.overheadMs === null) {
      const allMs = exchange.bodyWaitMs + waitedMs + current.waitedMs
      exchange.overheadMs = Math.max(0, this.relay.firstByteAt - exchange.startedAt - allMs)
      current.relayed()
    }
    if (this.relay.status < 400) current?.responseStarted()
  }

  resume(): void {
    this.#options.history.current?.resume()
  }

  recover(error: GatewayError): boolean | Buffer {
    const { history: { current }, retryPlan, deadlines } = this.#options
    if (current === null || this.#gaveUp || error.source !== 'upstream') return false
    if (current.missingEnd !== null) {
      this.#endFault = error
      return current.missingEnd
    }
    const { continuation } = this
    if (continuation === null) return false
    const recovery = continuation.recovery()
    if (recovery.can === 'finish') {
      this.#endFault = error
      current.state.completedByGateway = true
      return recovery.rest
    }
    if (recovery.can === 'nothing') {
      logNotContinued(this.#gateway, this.#exchange, recovery.reason)
      return false
    }
    const step = retryPlan.nextForContinuation(failureWithoutResponse(error))
    if (step === null) return false
    current.abort(error)
    current.interrupted(error, this.relay.status)
    deadlines.betweenAttempts()
    continuation.continueWith(error, current.state, step)
    this.keepAlive.start()
    return true
  }

  /** The upstream's own error event, where there is one. */
  errorEvent(error: GatewayError): string {
    const { classified: { endpoint: { format } }, id } = this.#exchange
    const inStream = error.source === 'upstream' ? this.continuation?.upstreamErrorEvent : null
    if (inStream) return inStream
    const { lastErrorResponse } = this.#options.history
    return (lastErrorResponse && upstreamErrorEvent(lastErrorResponse, format, id)) ?? format.streamError(error, id)
  }

  /** The stream has an event that the client must not get. */
  #onStreamFault(error: GatewayError): void {
    // The stream may have ended meanwhile.
    if (this.relay.isWaiting) return
    this.#options.history.current?.stop(error)
    this.relay.broken(error)
  }
}
