import type { Clock } from '../../base/clock.ts'
import { GatewayError, asGatewayError } from '../../base/errors.ts'
import type { Route, Target } from '../../config/types.ts'
import { wantsEventStream } from '../../context/exchange.ts'
import type { Exchange, Plan, Stoppable } from '../../context/exchange.ts'
import { gatewayHeadersFor } from '../../context/gateway-headers.ts'
import type { Gateway } from '../../context/gateway.ts'
import { writeCheckpoint } from '../../context/ledger-checkpoint.ts'
import { quote } from '../../context/quote.ts'
import type { ClientResponse } from '../../proxy/client.ts'
import { Deadlines } from '../../proxy/deadlines.ts'
import { headerValue } from '../../proxy/headers.ts'
import type { GatewayHeaders, RawHeaders } from '../../proxy/headers.ts'
import { responseHead } from '../../proxy/response-head.ts'
import type { ResponseHead } from '../../proxy/response-head.ts'
import { isCredentialRefused, isOperatorError } from '../../routing/failure.ts'
import type { RetryStep } from '../../routing/retry-policy.ts'
import { Continuation } from '../respond/continuation.ts'
import { KeepAliveTimer } from '../respond/keep-alive-timer.ts'
import { Relay } from '../respond/relay.ts'
import type { RelayEnd, RelayHost, ResponseBody } from '../respond/relay.ts'
import type { HeldResponse } from '../respond/response-gate.ts'
import { createResponseStream } from '../respond/response-stages.ts'
import { CandidateAttempt } from './candidate-attempt.ts'
import type { AttemptFailure } from './candidate-attempt.ts'
import { reportCredentialRejected, logNotContinued, logRetry } from './forward-log.ts'
import { NO_REFUSAL_TARGETS } from './refusal-targets.ts'
import { RetryPlan } from './retry-plan.ts'
import { upstreamErrorEvent, undeliveredError } from './upstream-errors.ts'

/**
 * Sends the exchange to its candidates, one after the other, until one answers,
 * and relays that answer to the client.
 *
 * @throws GatewayError while nothing was sent to the client; what breaks later
 *   is told to the client in mid-stream, and returned
 */
export function forward(
  gateway: Gateway, exchange: Exchange, plan: Plan,
): Promise<GatewayError | null> {
  return new Forwarding(gateway, exchange, plan).run()
}

class Forwarding implements RelayHost, Stoppable {
  readonly res: ClientResponse
  readonly clock: Clock
  readonly deadlines: Deadlines
  readonly onSent: ((bytes: Buffer) => void) | undefined
  readonly #gateway: Gateway
  readonly #exchange: Exchange
  readonly #relay: Relay
  readonly #retryPlan: RetryPlan
  readonly #resume: Route['resume']
  /** Has other candidates go on with the client's stream where it breaks; null = nobody is to. */
  readonly #continuation: Continuation | null
  #attempt: CandidateAttempt | null = null
  /** What kept the upstream from the protocol's end, after all had been said; null = nothing did. */
  #endFault: GatewayError | null = null
  /** The latest answer that an upstream gave of its own, though it was an error. */
  #lastErrorResponse: { readonly answer: HeldResponse; readonly candidate: Target } | null = null
  /** Of the answer that goes to the client. */
  #headers: RawHeaders = []
  /** Nothing has helped, and what was kept goes to the client. */
  #gaveUp = false
  /** To a client that waits for a stream which is kept back, or is to go on; null = none does. */
  #keepAlive: KeepAliveTimer | null = null
  #cancelWait: (() => void) | null = null

  constructor(gateway: Gateway, exchange: Exchange, plan: Plan) {
    const { resume, timeouts } = plan.route
    this.#resume = resume
    this.#gateway = gateway
    this.#exchange = exchange
    this.res = exchange.res
    this.clock = gateway.clock
    this.onSent = recordingOf(exchange)
    const expired = (error: GatewayError): void => this.#expired(error)
    this.deadlines = new Deadlines(gateway.clock, timeouts, exchange.startedAt, expired)
    this.#retryPlan = new RetryPlan(gateway, exchange, plan, this.deadlines)
    this.#relay = new Relay(this)
    const continues = resume === 'continue' && wantsEventStream(exchange)
    this.#continuation = continues ? new Continuation(gateway, exchange, error => this.#onStreamFault(error)) : null
    exchange.relay = this.#relay
    exchange.underWay = this
  }

  async run(): Promise<GatewayError | null> {
    const exchange = this.#exchange
    if (this.#resume === 'hold' && wantsEventStream(exchange)) this.#startKeepAlive()
    try {
      let candidate = this.#retryPlan.current
      for (;;) {
        const current = this.#begin(candidate)
        const error = await current.attempt.run(this.#gateway.proxy)
        const failure = error ? failureWithoutResponse(error) : await current.failure
        let step: RetryStep | null
        if (failure !== null) {
          this.#failed(current, failure)
          exchange.throwIfStopped()
          step = this.#streamError ? this.#retryPlan.nextForContinuation(failure) : this.#retryPlan.next(failure)
          if (step === null) return await this.#giveUp(failure)
        } else {
          if (this.#streamError) current.answered()
          const { done } = this.#relay
          const end = await (this.#continuation?.awaitEnd(done) ?? done)
          if (end === null || end instanceof GatewayError) return this.#ended(current, end)
          step = end
        }
        logRetry(this.#gateway, exchange, current.record, step)
        if (step.delayMs > 0) await this.#wait(step.delayMs)
        exchange.throwIfStopped()
        candidate = step.target
      }
    } catch (thrown) {
      if (this.#relay.status === 0) throw thrown
      this.#gaveUp = true
      // The client has its head already: it is told in the stream.
      this.#relay.broken(asGatewayError(thrown))
      exchange.status = this.#relay.status
      return await this.#relay.done
    } finally {
      this.#attempt?.abandon()
      // It has the request's body, and the client's connection may refer to all this for longer.
      this.#attempt = null
      exchange.heldResponse = null
      this.#keepAlive?.stop()
      this.deadlines.stop()
      exchange.underWay = null
      exchange.bytesOut = this.#relay.bytes
      exchange.firstByteAt = this.#relay.firstByteAt
    }
  }

  #begin(candidate: Target): CandidateAttempt {
    const exchange = this.#exchange
    const isFirst = exchange.attempts.length === 0
    exchange.candidate = candidate
    if (!isFirst) exchange.quoted = quote(this.#gateway, exchange, candidate)
    const whole = this.#resume === 'hold'
    const begun = () => this.#relay.isWaiting
    // To a client that was shown signs of life not every answer can go as it is.
    const isFree = !whole && this.#keepAlive === null && !begun()
    const isLast = isFree && this.#retryPlan.isLast
    const reasons = this.#streamError ? NO_REFUSAL_TARGETS : this.#retryPlan.refusalTargets
    const current = new CandidateAttempt(this.#gateway, exchange, {
      candidate,
      deadlines: this.deadlines,
      sink: this.#relay,
      requirements: isLast ? null : { reasons, whole, begun },
      onAlive: () => this.#startKeepAlive(),
      resume: this.#resume,
      edits: this.#continuation?.edits ?? null,
    })
    this.#attempt = current
    exchange.heldResponse = () => current.heldResponse
    this.#continuation?.begin()
    // Should the process die, the ledger tells of every attempt that was begun.
    if (!isFirst) writeCheckpoint(this.#gateway, exchange)
    return current
  }

  /** The answer went to the client, to its end or not. */
  #ended(current: CandidateAttempt, end: RelayEnd): GatewayError | null {
    const { status } = this.#relay
    this.#exchange.status = status
    current.ended(end, { status, headers: this.#headers }, this.#endFault)
    return end
  }

  /** The client has seen nothing of it. */
  #failed(current: CandidateAttempt, failure: AttemptFailure): void {
    const exchange = this.#exchange
    const { candidate, attempt } = current
    const { status, response: answer, reason } = failure
    this.deadlines.betweenAttempts()
    current.failed(failure)
    exchange.heldResponse = null
    // It went up and no refusal came back: who left it waiting may have to pay for the prompt.
    const isTaken = attempt.sent && (status === null || status < 400)
    exchange.response = exchange.stopped && isTaken ? { kind: 'none', delivered: false } : null
    if (failure.error?.code === 'client_gone') this.#recordHeldUsage(current, failure)
    // What is wrong with the request is not what is wrong with the credential, whatever the status.
    const isOurs = reason === null && status !== null
    if (isOurs && isOperatorError(status)) reportCredentialRejected(this.#gateway, exchange, candidate, status)
    const isSecret = isOurs && isCredentialRefused(status)
    if (answer && !isSecret && this.#streamError === null) this.#lastErrorResponse = { answer, candidate }
  }

  /** Who leaves while an answer is kept back has let it be generated, and pays for what came of it. */
  #recordHeldUsage({ heldBody: kept }: CandidateAttempt, { status, headers }: AttemptFailure): void {
    if (status === null || kept === null || kept.length === 0) return
    const stream = createResponseStream(this.#gateway, this.#exchange, responseHead(status, headers), null)
    stream?.push(kept)
    stream?.end()
  }

  /** What broke the stream that another candidate is to go on with; null = nothing did. */
  get #streamError(): GatewayError | null {
    return this.#continuation?.streamError ?? null
  }

  /**
   * The client's stream broke.
   * @returns whether somebody goes on with it, or the end if that is all it lacks
   */
  recover(error: GatewayError): boolean | Buffer {
    const current = this.#attempt
    if (current === null || this.#gaveUp || error.source !== 'upstream') return false
    if (current.missingEnd !== null) {
      this.#endFault = error
      return current.missingEnd
    }
    const rescue = this.#continuation
    if (rescue === null) return false
    const standing = rescue.recovery()
    if (standing.can === 'finish') {
      this.#endFault = error
      this.#exchange.completedByGateway = true
      return standing.rest
    }
    if (standing.can === 'nothing') {
      logNotContinued(this.#gateway, this.#exchange, standing.reason)
      return false
    }
    const step = this.#retryPlan.nextForContinuation(failureWithoutResponse(error))
    if (step === null) return false
    current.attempt.abort(error)
    current.interrupted(error, this.#relay.status)
    this.deadlines.betweenAttempts()
    rescue.continueWith(error, current.record, step)
    this.#startKeepAlive()
    return true
  }

  /** The stream had an event that the client is not to see, or cannot. */
  #onStreamFault(error: GatewayError): void {
    // It may have ended the stream as well by now.
    if (this.#relay.isWaiting) return
    this.#attempt?.stop(error)
    this.#relay.broken(error)
  }

  /** Nothing has helped: the client gets what an upstream said, or else what is known of the failure. */
  async #giveUp({ error, status, reason }: AttemptFailure): Promise<GatewayError | null> {
    if (this.#streamError) throw this.#streamError
    const kept = this.#lastErrorResponse
    if (kept === null || this.#relay.isWaiting) throw error ?? undeliveredError(status, reason)
    const { candidate, answer } = kept
    this.#gaveUp = true
    this.#exchange.candidate = candidate
    this.#exchange.quoted = quote(this.#gateway, this.#exchange, candidate)
    const relay = this.#relay
    const refused = relay.head(answer.status, answer.headers, answer.httpVersion)
    if (refused) throw refused
    relay.data(answer.body)
    relay.end()
    const end = await relay.done
    this.#exchange.status = relay.status
    return end
  }

  gatewayHeaders(): GatewayHeaders {
    return gatewayHeadersFor(this.#gateway, this.#exchange, (this.#exchange.candidate as Target).upstream)
  }

  inspect(head: ResponseHead): GatewayError | ResponseBody | null {
    const exchange = this.#exchange
    const candidate = exchange.candidate as Target
    const back = this.#attempt?.selfRedirectError(head) ?? null
    if (back !== null) return back
    // What was kept has been looked into, and a refused credential never gets here.
    if (!this.#gaveUp && isOperatorError(head.status)) reportCredentialRejected(this.#gateway, exchange, candidate, head.status)
    this.#keepAlive?.stop()
    this.#keepAlive = null
    this.#lastErrorResponse = null
    this.#headers = head.headers
    if (exchange.recording) {
      exchange.recording.contentType = headerValue(head.headers, 'content-type')
      exchange.recording.encoding = headerValue(head.headers, 'content-encoding')
    }
    exchange.status = head.status
    return createResponseStream(this.#gateway, exchange, head, this.#continuation)
  }

  onFirstByte(): void {
    if (this.#relay.status < 400) this.#attempt?.answered()
  }

  resume(): void {
    this.#attempt?.attempt.resume()
  }

  /** A deadline has passed: of an attempt, which others may follow, or of the exchange. */
  #expired(error: GatewayError): void {
    if (error.source !== 'upstream') {
      this.#exchange.stop(error)
      return
    }
    const { status, isWaiting: waits } = this.#relay
    this.#attempt?.stop(error)
    // What was kept back and lacks no more than its end has gone there only now.
    if (status !== 0 && !waits) this.#relay.stop(error)
  }

  /** The exchange is ended from outside. */
  stop(reason: GatewayError): void {
    this.#attempt?.stop(reason)
    this.#relay.stop(reason)
    this.#cancelWait?.()
  }

  #startKeepAlive(): void {
    if (this.#keepAlive) return
    this.#keepAlive = new KeepAliveTimer()
    this.#keepAlive.start(this.#gateway.clock, this.#relay, this.#exchange.classified.endpoint.format)
  }

  /** How the client is told of an error under way: in the upstream's own words, where there are any. */
  errorEvent(error: GatewayError): string {
    const { classified: { endpoint: { format } }, id } = this.#exchange
    const told = error.source === 'upstream' ? this.#continuation?.upstreamErrorEvent : null
    if (told) return told
    const own = this.#lastErrorResponse && upstreamErrorEvent(this.#lastErrorResponse.answer, format)
    return own ?? format.streamError(error, id)
  }

  /** Resolves when the time is up, or at once when the exchange is stopped. */
  #wait(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = this.#gateway.clock.setTimeout(resolve, ms)
    this.#cancelWait = () => {
      timer.cancel()
      resolve()
    }
    return promise
  }
}

function recordingOf({ recording }: Exchange): ((bytes: Buffer) => void) | undefined {
  return recording ? bytes => recording.push(bytes) : undefined
}

function failureWithoutResponse(error: GatewayError): AttemptFailure {
  return { error, status: null, headers: [], response: null, said: null, reason: null }
}
