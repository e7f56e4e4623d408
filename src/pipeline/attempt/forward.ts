import { GatewayError, asGatewayError } from '../../base/errors.ts'
import type { ResumeMode, Target, UpstreamLimits } from '../../config/types.ts'
import { wantsEventStream } from '../../context/exchange.ts'
import type { Exchange, Plan, Stoppable } from '../../context/exchange.ts'
import type { Gateway, LiveUpstream } from '../../context/gateway.ts'
import { writeCheckpoint } from '../../context/ledger-checkpoint.ts'
import { NOT_DELIVERED } from '../../context/upstream-attempt.ts'
import type { UpstreamAttempt } from '../../context/upstream-attempt.ts'
import type { Authorization } from '../../credentials/credential.ts'
import type { Reservation } from '../../limits/types.ts'
import { createAbandonedUsage } from '../../pricing/interrupted-usage.ts'
import { isSpoken } from '../../protocols/translate.ts'
import { Deadlines } from '../../proxy/deadlines.ts'
import { headerValue } from '../../proxy/headers.ts'
import type { RawHeaders } from '../../proxy/headers.ts'
import { responseHead } from '../../proxy/response-head.ts'
import type { ResponseHead } from '../../proxy/response-head.ts'
import { isCredentialRefused, isOperatorError, isUntranslatable } from '../../routing/failure.ts'
import type { RetryStep } from '../../routing/retry-policy.ts'
import { Continuation } from '../respond/continuation.ts'
import { KeepAliveTimer } from '../respond/keep-alive-timer.ts'
import { Relay } from '../respond/relay.ts'
import type { RelayEnd, ResponseBody, ResponseSource } from '../respond/relay.ts'
import type { HeldResponse } from '../respond/response-gate.ts'
import { createResponseStream } from '../respond/response-stages.ts'
import { CandidateAttempt, failureWithoutResponse } from './candidate-attempt.ts'
import type { AttemptFailure, CandidateAttemptOptions } from './candidate-attempt.ts'
import { reportCredentialRejected, reportCredentialUnavailable, logHedge, logNotContinued, logPassedOver, logRetry } from './forward-log.ts'
import { Hedge, hedgeAfter } from './hedge.ts'
import type { AttemptEnd, SecondTarget } from './hedge.ts'
import { NO_REFUSAL_TARGETS } from './refusal-targets.ts'
import { RetryPlan } from './retry-plan.ts'
import { targetProtocols } from './translated-request.ts'
import { upstreamErrorEvent, undeliveredError, withErrorStatus } from './upstream-errors.ts'
import { reserveAtUpstream } from './upstream-limits.ts'

const NONE_REFUSED: readonly Authorization[] = []

/** The gateway has to count the tokens of the prompt: the target has no endpoint for that. */
export const COUNT_TOKENS = Symbol('count tokens')

/**
 * Sends the request to the targets of the plan, one after the other, until one responds, and relays that response to
 * the client.
 *
 * @returns why the response did not reach its end; null = it did; COUNT_TOKENS = nothing was sent to the client
 * @throws GatewayError as long as nothing was sent to the client; a later failure is sent in the client's stream
 */
export function forward(
  gateway: Gateway, exchange: Exchange, plan: Plan,
): Promise<GatewayError | null | typeof COUNT_TOKENS> {
  return new Forwarding(gateway, exchange, plan).run()
}

class Forwarding implements ResponseSource, Stoppable {
  readonly #gateway: Gateway
  readonly #exchange: Exchange
  readonly #deadlines: Deadlines
  readonly #relay: Relay
  readonly #retryPlan: RetryPlan
  readonly #resume: Exclude<ResumeMode, 'continue_or_hold'>
  readonly #translate: Plan['route']['translate']
  /** Lets other targets continue the client's stream where it breaks; null = none may. */
  readonly #continuation: Continuation | null
  /** For a client that waits for a stream that is held, or that is to be continued. */
  readonly #keepAlive: KeepAliveTimer
  #attempt: CandidateAttempt | null = null
  /** Why the upstream did not send the end of the protocol after the whole content; null = it did. */
  #endFault: GatewayError | null = null
  /** The latest error of an upstream's own. */
  #lastErrorResponse: { readonly response: HeldResponse; readonly attempt: UpstreamAttempt } | null = null
  /** Of the response that goes to the client. */
  #headers: RawHeaders = []
  /** No attempt follows, and the client gets an error. */
  #gaveUp = false
  /** Milliseconds in which earlier attempts and pauses between them had the gateway wait. */
  #waitedMs = 0
  #cancelWait: (() => void) | null = null
  /** Starts a second attempt beside a slow one; null = the request has none. */
  readonly #hedge: Hedge | null
  readonly #claim: CandidateAttemptOptions['claim']
  /** The second attempt, its own deadlines, and how much later it started, in ms. */
  #second: { readonly attempt: CandidateAttempt, readonly deadlines: Deadlines, readonly afterMs: number } | null = null
  /** Of the limits of the next attempt's upstream; null = it has none, or the attempt has it. */
  #reservation: Reservation | null = null
  /** Of the targets that are at their limit, the one that has room the soonest. */
  #full: GatewayError | null = null
  /** Credentials of the current target that it refused. */
  #refused: readonly Authorization[] = NONE_REFUSED

  constructor(gateway: Gateway, exchange: Exchange, plan: Plan) {
    const { resume, timeouts, translate } = plan.route
    this.#translate = translate
    this.#gateway = gateway
    this.#exchange = exchange
    this.#deadlines = new Deadlines(gateway.clock, timeouts, exchange.startedAt, error => this.#expired(error))
    this.#retryPlan = new RetryPlan(gateway, exchange, plan, this.#deadlines)
    this.#relay = new Relay(gateway, exchange, this.#deadlines, this)
    this.#keepAlive = new KeepAliveTimer(gateway.clock, this.#relay, exchange.classified.endpoint.format)
    const mayContinue = (resume === 'continue' || resume === 'continue_or_hold') && wantsEventStream(exchange)
    const continuation = mayContinue ? new Continuation(gateway, exchange, error => this.#onStreamFault(error)) : null
    const canContinue = continuation?.isPossible === true && this.#retryPlan.hasContinuationTarget
    this.#resume = resume === 'continue_or_hold' ? (canContinue ? 'continue' : 'hold') : resume
    this.#continuation = this.#resume === 'continue' ? continuation : null
    const afterMs = hedgeAfter(exchange, plan.route)
    this.#hedge = afterMs === null ? null : new Hedge(gateway.clock, afterMs, {
      reserve: () => this.#reserveSecond().catch(thrown => this.#stopBy(thrown)),
      start: second => this.#startSecondSafely(second),
      onFailed: ({ attempt, failure }, other) => this.#failedBeside(attempt, failure, other),
      onWon: (attempt, other) => this.#won(attempt, other),
    })
    const hedge = this.#hedge
    this.#claim = hedge && ((attempt, status) => hedge.claim(attempt, status))
    exchange.delivery = this.#relay
    exchange.underWay = this
  }

  async run(): Promise<GatewayError | null | typeof COUNT_TOKENS> {
    const exchange = this.#exchange
    if (this.#resume === 'hold' && wantsEventStream(exchange)) this.#keepAlive.start()
    try {
      let target = this.#retryPlan.current
      for (;;) {
        if (isCountedHere(this.#gateway, exchange, target)) return COUNT_TOKENS
        const full = target.upstream.limits && await this.#reserve(target.upstream.limits)
        if (full !== null) {
          const next = this.#passOver(target, full)
          if (next === null) return await this.#giveUp(failureWithoutResponse(this.#full ?? full))
          target = next.target
          this.#refused = NONE_REFUSED
          continue
        }
        const begun = this.#begin(target)
        if (begun instanceof GatewayError) {
          const skipped = this.#skip(begun)
          if (skipped === null) return await this.#giveUp(failureWithoutResponse(begun))
          target = skipped.target
          continue
        }
        const { attempt: current, failure } = await this.#run(begun)
        let step: RetryStep | null
        if (failure !== null) {
          const refused = current.otherCredential(failure)
          this.#failed(current, failure, refused !== null)
          exchange.throwIfStopped()
          if (refused !== null) {
            this.#refused = refused
            target = current.state.target
            logRetry(this.#gateway, exchange, current.state.record, { target, delayMs: 0 })
            continue
          }
          step = this.#streamError ? this.#retryPlan.nextForContinuation(failure) : this.#retryPlan.next(failure)
          if (step === null) return await this.#giveUp(failure)
        } else {
          if (this.#streamError) current.responseStarted()
          const { done } = this.#relay
          const end = await (this.#continuation?.awaitEnd(done) ?? done)
          if (end === null || end instanceof GatewayError) return this.#ended(current, end)
          step = end
        }
        logRetry(this.#gateway, exchange, current.state.record, step)
        if (step.delayMs > 0) await this.#wait(step.delayMs)
        exchange.throwIfStopped()
        target = step.target
        this.#refused = NONE_REFUSED
      }
    } catch (thrown) {
      if (this.#relay.status === 0) throw thrown
      this.#gaveUp = true
      // The client has its head already: its stream gets an error event.
      this.#relay.broken(asGatewayError(thrown))
      return await this.#relay.done
    } finally {
      this.#reservation?.release()
      this.#attempt?.abandon()
      // It refers to the request's body, and the client's connection may refer to this object for longer.
      this.#attempt = null
      if (exchange.servedBy) exchange.servedBy.held = null
      this.#keepAlive.stop()
      this.#deadlines.stop()
      this.#second?.deadlines.stop()
      exchange.underWay = null
    }
  }

  /** @returns why the upstream has no room; null = its place is reserved */
  async #reserve(limits: UpstreamLimits): Promise<GatewayError | null> {
    const reserved = await reserveAtUpstream(this.#gateway, this.#exchange, limits)
    if (reserved instanceof GatewayError) return reserved
    this.#reservation = reserved
    this.#exchange.throwIfStopped()
    return null
  }

  /** The upstream of the target is at its limit. @returns null = there is no other target */
  #passOver({ upstream }: Target, error: GatewayError): RetryStep | null {
    if (this.#full === null || Number(error.headers['retry-after']) < Number(this.#full.headers['retry-after'])) this.#full = error
    const step = this.#retryPlan.passOver(this.#streamError !== null)
    logPassedOver(this.#gateway, this.#exchange, upstream.name, step)
    return step
  }

  /** Runs an attempt, and on a route with `hedge` another one beside it. @returns the end of the last that is left */
  async #run(attempt: CandidateAttempt): Promise<AttemptEnd> {
    if (this.#hedge === null || this.#streamError) return { attempt, failure: await attempt.run() }
    const end = await this.#hedge.run(attempt)
    // From here on the deadlines of the exchange watch the response.
    this.#second?.deadlines.stop()
    return end
  }

  /** @returns null = no other target is left, or it is at its limit */
  async #reserveSecond(): Promise<SecondTarget | null> {
    const target = this.#retryPlan.besideTarget
    if (target === null) return null
    const { limits } = target.upstream
    const reservation = limits && await reserveAtUpstream(this.#gateway, this.#exchange, limits)
    return reservation instanceof GatewayError ? null : { target, reservation }
  }

  /** From a timer, whose errors nobody would catch. */
  #startSecondSafely(second: SecondTarget): CandidateAttempt | null {
    try {
      return this.#startSecond(second)
    } catch (thrown) {
      return this.#stopBy(thrown)
    }
  }

  #stopBy(thrown: unknown): null {
    this.#exchange.stop(asGatewayError(thrown))
    return null
  }

  /** @returns null = the request cannot be sent there */
  #startSecond({ target, reservation }: SecondTarget): CandidateAttempt | null {
    this.#reservation = reservation
    const first = this.#attempt
    if (first === null) return null
    this.#retryPlan.startBeside(target)
    const { timeouts } = (this.#exchange.plan as Plan).route
    const deadlines = new Deadlines(this.#gateway.clock, timeouts, this.#exchange.startedAt, error => {
      this.#expired(error, this.#second?.attempt ?? null)
    })
    const attempt = this.#begin(target, deadlines)
    this.#attempt = first
    if (attempt instanceof GatewayError) {
      this.#retryPlan.failBeside(target, first.state.target, failureWithoutResponse(attempt))
      return null
    }
    this.#second = { attempt, deadlines, afterMs: attempt.state.record.atMs - first.state.record.atMs }
    logHedge(this.#gateway, this.#exchange, first.state.record, target)
    return attempt
  }

  #failedBeside(failed: CandidateAttempt, failure: AttemptFailure, other: CandidateAttempt): void {
    this.#attempt = other
    if (failed === this.#second?.attempt) this.#second.deadlines.stop()
    else this.#deadlines.betweenAttempts()
    this.#retryPlan.failBeside(failed.state.target, other.state.target, failure)
    this.#recordFailure(failed, failure, false)
    if (this.#exchange.stopped !== null && failed.isSent) this.#billAbandoned(failed)
  }

  #won(attempt: CandidateAttempt, other: CandidateAttempt | null): void {
    this.#attempt = attempt
    this.#exchange.serve(attempt.state)
    this.#retryPlan.select(attempt.state.target)
    if (attempt === this.#second?.attempt) {
      this.#deadlines.betweenAttempts()
      // The gateway waited for the first one before.
      this.#waitedMs += this.#second.afterMs
    }
    if (other === null) return
    other.lost()
    other.state.fail(true)
    if (other.isSent) this.#billAbandoned(other)
  }

  #billAbandoned({ state }: CandidateAttempt): void {
    const { accounts: { counter }, config: { billing } } = this.#gateway
    const { classified, request: { body } } = this.#exchange
    state.share = createAbandonedUsage(counter, {
      endpoint: state.endpoint ?? classified.endpoint,
      request: state.sentBody ?? body?.bytes ?? null,
      answer: NOT_DELIVERED,
      estimatedInput: state.estimatedInput,
    }, billing.abandoned)
  }

  /** The request cannot be translated for the current target. @returns null = there is no other target */
  #skip(error: GatewayError): RetryStep | null {
    const failure = failureWithoutResponse(error)
    return this.#streamError ? this.#retryPlan.nextForContinuation(failure) : this.#retryPlan.next(failure)
  }

  /**
   * @param own deadlines of an attempt that runs beside another
   * @returns the error of a request that cannot be translated for the target, or of a second attempt that cannot start
   */
  #begin(target: Target, own: Deadlines | null = null): CandidateAttempt | GatewayError {
    const isFirst = this.#exchange.attempts.length === 0
    const whole = this.#resume === 'hold'
    // To a client that has got keep-alive events not every response can go as it is.
    const isFree = !whole && !this.#keepAlive.isRunning && !this.#relay.isWaiting
    const isLast = own === null && isFree && this.#retryPlan.isLast
    const reasons = this.#streamError ? NO_REFUSAL_TARGETS : this.#retryPlan.refusalTargets
    const claim = this.#streamError ? null : this.#claim
    const attempt = orGatewayError(() => new CandidateAttempt(this.#gateway, this.#exchange, {
      target,
      refused: own === null ? this.#refused : NONE_REFUSED,
      deadlines: own ?? this.#deadlines,
      relay: this.#relay,
      keepAlive: this.#keepAlive,
      requirements: isLast ? null : { reasons, whole, content: claim !== null },
      resume: this.#resume,
      translate: this.#translate,
      continuationEdits: this.#continuation?.edits ?? null,
      claim,
      // Without memory for its request there is no second attempt, and the first one goes on.
    }), error => own !== null || isUntranslatable(error.code))
    if (attempt instanceof GatewayError) {
      this.#reservation?.release()
      this.#reservation = null
      return attempt
    }
    attempt.state.reservation = this.#reservation
    this.#reservation = null
    this.#attempt = attempt
    this.#continuation?.begin()
    // If the process dies, the ledger has every attempt that was started.
    if (!isFirst) writeCheckpoint(this.#gateway, this.#exchange)
    return attempt
  }

  /** The response went to the client, to its end or not. */
  #ended(current: CandidateAttempt, end: RelayEnd): GatewayError | null {
    current.ended(end, { status: this.#relay.status, headers: this.#headers }, this.#endFault)
    return end
  }

  /**
   * The attempt failed before the client got any of its response.
   *
   * @param isRetried the target is tried again with another credential
   */
  #failed(current: CandidateAttempt, failure: AttemptFailure, isRetried: boolean): void {
    this.#deadlines.betweenAttempts()
    this.#waitedMs += current.waitedMs + (current === this.#second?.attempt ? this.#second.afterMs : 0)
    this.#recordFailure(current, failure, isRetried)
  }

  #recordFailure(current: CandidateAttempt, failure: AttemptFailure, isRetried: boolean): void {
    const exchange = this.#exchange
    const { state } = current
    const { status, response, reason } = failure
    current.failed(failure, isRetried)
    // The request was sent and not refused: a client that leaves now may have to pay for the prompt.
    state.fail(exchange.stopped !== null && current.isSent && (status === null || status < 400))
    if (failure.error?.code === 'client_gone') this.#recordHeldUsage(current, failure)
    // A request that is refused for its content says nothing about the credential, whatever the status.
    const isOurs = reason === null && status !== null
    if (isOurs && isOperatorError(status) && current.rememberRefusal(status) && !isRetried) {
      reportCredentialRejected(this.#gateway, exchange, state.target, status)
    }
    if (failure.error?.code === 'credential_unavailable') reportCredentialUnavailable(this.#gateway, state.target, failure.error)
    const isSecret = isOurs && isCredentialRefused(status)
    if (response && !isSecret && this.#streamError === null) this.#lastErrorResponse = { response: withErrorStatus(response, state), attempt: state }
  }

  /** A client that leaves while a response is held pays for what was generated of it. */
  #recordHeldUsage({ state, heldBody }: CandidateAttempt, { status, headers }: AttemptFailure): void {
    if (status === null || heldBody === null || heldBody.length === 0) return
    const stream = createResponseStream(this.#gateway, this.#exchange, state, responseHead(status, headers), null, ignoreFault)
    state.deliver(stream)
    stream?.push(heldBody)
    stream?.end()
  }

  /** What broke the stream that another target is to continue; null = nothing did. */
  get #streamError(): GatewayError | null {
    return this.#continuation?.streamError ?? null
  }

  recover(error: GatewayError): boolean | Buffer {
    const current = this.#attempt
    if (current === null || this.#gaveUp || error.source !== 'upstream') return false
    if (current.missingEnd !== null) {
      this.#endFault = error
      return current.missingEnd
    }
    const continuation = this.#continuation
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
    const step = this.#retryPlan.nextForContinuation(failureWithoutResponse(error))
    if (step === null) return false
    current.abort(error)
    current.interrupted(error, this.#relay.status)
    this.#deadlines.betweenAttempts()
    continuation.continueWith(error, current.state, step)
    this.#keepAlive.start()
    return true
  }

  /** The stream has an event that the client must not get. */
  #onStreamFault(error: GatewayError): void {
    // The stream may have ended meanwhile.
    if (this.#relay.isWaiting) return
    this.#attempt?.stop(error)
    this.#relay.broken(error)
  }

  /** No attempt follows: the client gets the latest error of an upstream's own, or else the gateway's. */
  async #giveUp({ error, status, reason }: AttemptFailure): Promise<GatewayError | null> {
    if (this.#streamError) throw this.#streamError
    const last = this.#lastErrorResponse
    if (last === null || this.#relay.isWaiting) throw error ?? undeliveredError(status, reason)
    const { attempt, response } = last
    this.#gaveUp = true
    this.#exchange.servedBy = attempt
    const relay = this.#relay
    const refused = relay.head(response.status, response.headers, response.httpVersion)
    if (refused) throw refused
    relay.data(response.body)
    relay.end()
    return await relay.done
  }

  openBody(head: ResponseHead): GatewayError | ResponseBody | null {
    const exchange = this.#exchange
    const attempt = exchange.servedBy as UpstreamAttempt
    const redirectError = this.#attempt?.selfRedirectError(head) ?? null
    if (redirectError !== null) return redirectError
    // The gate has read an error that was held, and a rejected credential never gets here.
    if (!this.#gaveUp && isOperatorError(head.status)) {
      reportCredentialRejected(this.#gateway, exchange, attempt.target, head.status)
    }
    this.#keepAlive.stop()
    this.#lastErrorResponse = null
    this.#headers = head.headers
    const framed = this.#gaveUp || attempt.translated ? null : this.#attempt?.framed ?? null
    const stream = createResponseStream(this.#gateway, exchange, attempt, head, this.#continuation, error => this.#onStreamFault(error), framed)
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
    if (this.#attempt !== null && exchange.overheadMs === null) {
      const waitedMs = exchange.bodyWaitMs + this.#waitedMs + this.#attempt.waitedMs
      exchange.overheadMs = Math.max(0, this.#relay.firstByteAt - exchange.startedAt - waitedMs)
      this.#attempt.relayed()
    }
    if (this.#relay.status < 400) this.#attempt?.responseStarted()
  }

  resume(): void {
    this.#attempt?.resume()
  }

  /** A deadline has passed: of an attempt, which others may follow, or of the exchange. */
  #expired(error: GatewayError, attempt = this.#attempt): void {
    if (error.source !== 'upstream') {
      this.#exchange.stop(error)
      return
    }
    const { status, isWaiting } = this.#relay
    attempt?.stop(error)
    // If only its end was missing, a held response was passed to the relay just now.
    if (status !== 0 && !isWaiting) this.#relay.stop(error)
  }

  /** The exchange is ended from outside. */
  stop(reason: GatewayError): void {
    if (reason.code === 'client_gone' && this.#relay.clientClosed()) {
      this.#attempt?.discardRest()
      return
    }
    this.#attempt?.stop(reason)
    this.#hedge?.stop(reason)
    this.#relay.stop(reason)
    this.#cancelWait?.()
  }

  /** The upstream's own error event, where there is one. */
  errorEvent(error: GatewayError): string {
    const { classified: { endpoint: { format } }, id } = this.#exchange
    const inStream = error.source === 'upstream' ? this.#continuation?.upstreamErrorEvent : null
    if (inStream) return inStream
    const own = this.#lastErrorResponse && upstreamErrorEvent(this.#lastErrorResponse, format, id)
    return own ?? format.streamError(error, id)
  }

  /** Resolves after `ms`, or at once when the exchange is stopped. */
  #wait(ms: number): Promise<void> {
    this.#waitedMs += ms
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = this.#gateway.clock.setTimeout(resolve, ms)
    this.#cancelWait = () => {
      timer.cancel()
      resolve()
    }
    return promise
  }
}

/** The request asks for a count of tokens, and the target has no endpoint for that. */
function isCountedHere({ upstreams }: Gateway, { classified: { endpoint }, request: { model } }: Exchange, target: Target): boolean {
  if (endpoint.tokenCount === null) return false
  const { provider } = upstreams.get(target.upstream.name) as LiveUpstream
  return !isSpoken(endpoint, targetProtocols(target, provider, model))
}

function ignoreFault(): void {
  // No client gets the stream.
}

/** @returns the result, or the error of the gateway that is expected */
function orGatewayError<T>(create: () => T, isExpected: (error: GatewayError) => boolean): T | GatewayError {
  try {
    return create()
  } catch (thrown) {
    if (thrown instanceof GatewayError && isExpected(thrown)) return thrown
    throw thrown
  }
}
