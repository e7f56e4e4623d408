import { GatewayError, asGatewayError } from '../../base/errors.ts'
import type { ResumeMode } from '../../config/types.ts'
import { wantsEventStream, type Exchange } from '../exchange/exchange.ts'
import type { Gateway } from '../parts/gateway.ts'
import type { UpstreamAttempt } from '../exchange/upstream-attempt.ts'
import type { Deadlines } from '../../proxy/http/deadlines.ts'
import { headerValue } from '../../proxy/http/raw-headers.ts'
import type { ResponseHead } from '../../proxy/upstream/response-head.ts'
import { sameAddress } from '../../proxy/upstream/upstream-address.ts'
import { isOperatorError } from '../../routing/failure.ts'
import { Continuation } from '../respond/continuation.ts'
import { KeepAliveTimer } from '../respond/keep-alive-timer.ts'
import { Relay } from '../respond/relay.ts'
import type { OpenResponse, RelayEnd, RelaySource } from '../respond/response-stream.ts'
import { createResponseStream, type HeldContent, type ReadBody } from '../respond/response-stages.ts'
import { upstreamErrorEvent } from './attempt-failure.ts'
import type { AttemptRecorder } from './recorder.ts'
import type { RetryPlan } from './retry-plan.ts'

/** Redirects after which the client repeats the request at another address. After a 303, the client makes a different request. */
const REDIRECT_STATUSES = new Set([301, 302, 307, 308])

export interface RelayedAttempt extends UpstreamAttempt {
  /** Path and query at the upstream. */
  readonly path: string
  readonly heldContent: HeldContent
  /** The end that the gateway added to a held response that broke; null = none. */
  readonly missingEnd: Buffer | null
  /** Milliseconds from sending the request to the last bytes of the response, or to the failure of the attempt. */
  readonly waitedMs: number
}

export interface ClientStreamOptions {
  readonly recorder: AttemptRecorder
  readonly deadlines: Deadlines
  readonly plan: RetryPlan
  readonly resume: ResumeMode
}

/** The client's response. It comes from several attempts if another target continues a broken stream. */
export class ClientStream {
  readonly relay: Relay
  readonly resumeMode: Exclude<ResumeMode, 'continue_or_hold'>
  /** null = no target may continue the client's stream. */
  readonly continuation: Continuation | null
  /** null = not started. */
  keepAliveTimer: KeepAliveTimer | null = null
  readonly #gateway: Gateway
  readonly #exchange: Exchange
  readonly #recorder: AttemptRecorder
  /** Why the upstream's stream did not end properly although its content is complete; null = the stream ended properly. */
  #endFault: GatewayError | null = null
  #headers: ResponseHead['headers'] = []
  #attempt: RelayedAttempt | null = null

  constructor(gateway: Gateway, exchange: Exchange, { recorder, deadlines, plan, resume }: ClientStreamOptions) {
    this.#gateway = gateway
    this.#exchange = exchange
    this.#recorder = recorder
    this.relay = new Relay(gateway, exchange, deadlines)
    const mayContinue = (resume === 'continue' || resume === 'continue_or_hold') && wantsEventStream(exchange)
    const continuation = mayContinue ? new Continuation(gateway, exchange, error => this.#onStreamFault(error)) : null
    const canContinue = continuation?.isPossible === true && plan.hasContinuationTarget
    this.resumeMode = resume === 'continue_or_hold' ? (canContinue ? 'continue' : 'hold') : resume
    this.continuation = this.resumeMode === 'continue' ? continuation : null
  }

  /** Sends keep-alive events until the client gets a response. */
  readonly keepAlive = (): void => {
    this.keepAliveTimer ??= new KeepAliveTimer(this.#gateway.clock, this.relay, this.#exchange.classified.endpoint.format)
    this.keepAliveTimer.start()
  }

  /** The error that broke the client's stream, which another target is to continue; null = not broken. */
  get streamError(): GatewayError | null {
    return this.continuation?.streamError ?? null
  }

  /** @returns why the response cannot go to the client; null = the head of the response was sent */
  open(attempt: RelayedAttempt, head: ResponseHead, source: RelaySource): GatewayError | null {
    const isRedirect = REDIRECT_STATUSES.has(head.status)
    const refusal = this.relay.accepts(head) ?? (isRedirect ? selfRedirectError(head, attempt) : null)
    if (refusal !== null) return refusal
    const body = this.#stages(attempt, head)
    if (body instanceof GatewayError) return body
    // A response gate handles the errors that it holds, and lets no rejected credential of the operator pass.
    if (head.status >= 400 && isOperatorError(head.status) && !attempt.refusesClient(head.status)) this.#recorder.credentialRejected(attempt.target, head.status)
    this.#attempt = attempt
    this.#open(attempt, head, { body, source, mayContinue: attempt.missingEnd !== null || this.continuation !== null })
    return null
  }

  begun(attempt: RelayedAttempt): void {
    const exchange = this.#exchange
    if (!this.relay.begin()) return
    const waitedMs = exchange.bodyWaitMs + this.#recorder.waitedMs + attempt.waitedMs
    exchange.setOverhead(Math.max(0, this.relay.firstByteAt - exchange.startedAt - waitedMs))
    if (this.relay.status < 400) attempt.health.responseStarted(attempt.elapsedMs)
  }

  /** @returns null, and sends nothing, if no upstream sent an error or the client's stream has begun */
  sendLastError(): Promise<RelayEnd> | null {
    const last = this.#recorder.lastErrorResponse
    if (last === null || this.relay.isWaiting) return null
    const { attempt, response: { head, body } } = last
    this.#exchange.serve(attempt)
    const stages = createResponseStream(this.#gateway, this.#exchange, attempt, head, null, noop)
    this.#open(attempt, head, { body: stages, source: NO_SOURCE, mayContinue: false })
    this.relay.data(body)
    this.relay.end()
    return this.relay.outcome as Promise<RelayEnd>
  }

  /** @returns the missing end of a broken stream; `continue` = another target can continue the stream; null = neither is possible */
  recovery(attempt: RelayedAttempt, error: GatewayError): Buffer | 'continue' | null {
    if (attempt.missingEnd !== null) {
      this.#endFault = error
      return attempt.missingEnd
    }
    const recovery = this.continuation?.recovery() ?? null
    if (recovery?.can === 'finish') {
      this.#endFault = error
      attempt.completedByGateway = true
      return recovery.rest
    }
    if (recovery?.can === 'nothing') this.#recorder.logNotContinued(recovery.reason)
    if (recovery === null || recovery.can === 'nothing') return null
    attempt.sentNoText = this.continuation?.needsPrefill === false
    return 'continue'
  }

  /** Ends a stream that has begun with an error event: the upstream's event if there is one, otherwise an event for `error`. */
  fail(error: GatewayError): void {
    const { classified: { endpoint: { format } }, id } = this.#exchange
    const inStream = error.source === 'upstream' ? this.continuation?.upstreamErrorEvent ?? null : null
    const last = this.#recorder.lastErrorResponse
    this.relay.fail(error, inStream ?? (last && upstreamErrorEvent(last, format, id)))
  }

  ended(attempt: RelayedAttempt, end: RelayEnd): RelayEnd {
    this.#recorder.ended(attempt, end, { status: this.relay.status, headers: this.#headers }, this.#endFault)
    return end
  }

  /** @returns null = the response passes unread; an error = the response cannot be translated */
  #stages(attempt: RelayedAttempt, head: ResponseHead): ReadBody | GatewayError | null {
    try {
      const onFault = (error: GatewayError) => this.#onStreamFault(error)
      return createResponseStream(this.#gateway, this.#exchange, attempt, head, this.continuation, onFault, attempt.heldContent)
    } catch (thrown) {
      return asGatewayError(thrown)
    }
  }

  #open(attempt: Pick<RelayedAttempt, 'deliver'>, head: ResponseHead, response: OpenResponse & { readonly body: ReadBody | null }): void {
    const { recording } = this.#exchange
    this.keepAliveTimer?.stop()
    this.#recorder.lastErrorResponse = null
    this.#headers = head.headers
    attempt.deliver(response.body)
    if (recording) {
      const sent = response.body?.translateHeaders?.(head.headers) ?? head.headers
      recording.contentType = headerValue(sent, 'content-type')
      recording.encoding = headerValue(sent, 'content-encoding')
    }
    this.relay.open(head, response)
  }

  #onStreamFault(error: GatewayError): void {
    // The stream may have broken already, so that the relay waits for another attempt.
    if (this.relay.isWaiting) return
    this.#attempt?.stop(error)
    this.relay.broken(error)
  }
}

/** An error for a redirect to the address of the request, which the client would follow endlessly. @returns null = no such redirect */
function selfRedirectError({ status, headers }: ResponseHead, { target: { upstream }, path }: RelayedAttempt): GatewayError | null {
  const location = headerValue(headers, 'location') ?? ''
  const same = sameAddress(location, upstream, path)
  if (same === null) return null
  const cause = new Error(`${status} to ${same}`)
  return new GatewayError('upstream_invalid', 'the upstream redirects the request to itself', { cause })
}

const NO_SOURCE: RelaySource = { resume: noop }

function noop(): void {}
