import { GatewayError, asGatewayError } from '../../base/errors.ts'
import type { Target, UpstreamLimits } from '../../config/types.ts'
import { wantsEventStream } from '../../context/exchange.ts'
import type { Exchange, Plan, Stoppable } from '../../context/exchange.ts'
import type { Gateway } from '../../context/gateway.ts'
import { writeCheckpoint } from '../../context/ledger-checkpoint.ts'
import type { LiveUpstream } from '../../context/live-upstreams.ts'
import type { Authorization } from '../../credentials/credential.ts'
import type { Reservation } from '../../limits/types.ts'
import { isSpoken } from '../../protocols/translate.ts'
import { Deadlines } from '../../proxy/deadlines.ts'
import { isUntranslatable } from '../../routing/failure.ts'
import type { RetryStep } from '../../routing/retry-policy.ts'
import type { Relay } from '../respond/relay.ts'
import { failureWithoutResponse } from './attempt-failure.ts'
import type { AttemptFailure } from './attempt-failure.ts'
import { AttemptHistory } from './attempt-history.ts'
import { CandidateAttempt } from './candidate-attempt.ts'
import { logPassedOver, logRetry } from './forward-log.ts'
import { hedgeAfter } from './hedge.ts'
import { HedgedAttempts } from './hedged-attempts.ts'
import { NO_REFUSAL_TARGETS } from './refusal-targets.ts'
import { RelayedResponse } from './relayed-response.ts'
import { reserveAtUpstream } from './reserve-at-upstream.ts'
import { RetryPlan } from './retry-plan.ts'
import { targetProtocols } from './translated-request.ts'
import { undeliveredError } from './upstream-errors.ts'

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

class Forwarding implements Stoppable {
  readonly #gateway: Gateway
  readonly #exchange: Exchange
  readonly #deadlines: Deadlines
  readonly #history: AttemptHistory
  readonly #retryPlan: RetryPlan
  readonly #response: RelayedResponse
  readonly #relay: Relay
  readonly #translate: Plan['route']['translate']
  /** Starts a second attempt beside a slow one; null = the request has none. */
  readonly #hedged: HedgedAttempts | null
  #cancelWait: (() => void) | null = null
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
    const history = this.#history = new AttemptHistory(gateway, exchange)
    const deadlines = this.#deadlines = new Deadlines(gateway.clock, timeouts, exchange.startedAt, error => this.#expired(error))
    const retryPlan = this.#retryPlan = new RetryPlan(gateway, exchange, plan, deadlines)
    this.#response = new RelayedResponse(gateway, exchange, { history, retryPlan, deadlines, resume })
    this.#relay = this.#response.relay
    const afterMs = hedgeAfter(exchange, plan.route)
    this.#hedged = afterMs === null ? null : new HedgedAttempts(gateway, exchange, {
      history, retryPlan, deadlines, afterMs,
      begin: (target, own, reservation) => {
        this.#reservation = reservation
        return this.#begin(target, own)
      },
      onExpired: (error, attempt) => this.#expired(error, attempt),
    })
    exchange.delivery = this.#relay
    exchange.underWay = this
  }

  async run(): Promise<GatewayError | null | typeof COUNT_TOKENS> {
    const exchange = this.#exchange
    if (this.#response.resumeMode === 'hold' && wantsEventStream(exchange)) this.#response.keepAlive.start()
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
          const unsent = failureWithoutResponse(begun)
          const skipped = this.#next(unsent)
          if (skipped === null) return await this.#giveUp(unsent)
          target = skipped.target
          continue
        }
        const hedged = this.#response.streamError ? null : this.#hedged
        const { attempt: current, failure } = hedged === null
          ? { attempt: begun, failure: await begun.run() }
          // The last attempt that is left, of two that ran beside each other.
          : await hedged.run(begun)
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
          step = this.#next(failure)
          if (step === null) return await this.#giveUp(failure)
        } else {
          const { streamError, continuation } = this.#response
          if (streamError) current.responseStarted()
          const { done } = this.#relay
          const end = await (continuation?.awaitEnd(done) ?? done)
          if (end === null || end instanceof GatewayError) return this.#response.ended(current, end)
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
      return await this.#response.break(asGatewayError(thrown))
    } finally {
      this.#reservation?.release()
      this.#history.current?.abandon()
      // It refers to the request's body, and the client's connection may refer to this object for longer.
      this.#history.current = null
      if (exchange.servedBy) exchange.servedBy.held = null
      this.#response.keepAlive.stop()
      this.#deadlines.stop()
      this.#hedged?.stopDeadlines()
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
    const step = this.#retryPlan.passOver(this.#response.streamError !== null)
    logPassedOver(this.#gateway, this.#exchange, upstream.name, step)
    return step
  }

  /** @returns null = no attempt follows */
  #next(failure: AttemptFailure): RetryStep | null {
    return this.#response.streamError ? this.#retryPlan.nextForContinuation(failure) : this.#retryPlan.next(failure)
  }

  /**
   * @param own deadlines of an attempt that runs beside another
   * @returns the error of a request that cannot be translated for the target, or of a second attempt that cannot start
   */
  #begin(target: Target, own: Deadlines | null = null): CandidateAttempt | GatewayError {
    const isFirst = this.#exchange.attempts.length === 0
    const { streamError, resumeMode, keepAlive, continuation } = this.#response
    const whole = resumeMode === 'hold'
    // To a client that has got keep-alive events not every response can go as it is.
    const isFree = !whole && !keepAlive.isRunning && !this.#relay.isWaiting
    const isLast = own === null && isFree && this.#retryPlan.isLast
    const reasons = streamError ? NO_REFUSAL_TARGETS : this.#retryPlan.refusalTargets
    const claim = streamError ? null : this.#hedged?.claim ?? null
    const attempt = orGatewayError(() => new CandidateAttempt(this.#gateway, this.#exchange, {
      target,
      refused: own === null ? this.#refused : NONE_REFUSED,
      deadlines: own ?? this.#deadlines,
      relay: this.#relay,
      keepAlive,
      requirements: isLast ? null : { reasons, whole, content: claim !== null },
      resume: resumeMode,
      translate: this.#translate,
      continuationEdits: continuation?.edits ?? null,
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
    this.#history.current = attempt
    continuation?.begin()
    // If the process dies, the ledger has every attempt that was started.
    if (!isFirst) writeCheckpoint(this.#gateway, this.#exchange)
    return attempt
  }

  /**
   * The attempt failed before the client got any of its response.
   *
   * @param isRetried the target is tried again with another credential
   */
  #failed(current: CandidateAttempt, failure: AttemptFailure, isRetried: boolean): void {
    const history = this.#history
    this.#deadlines.betweenAttempts()
    history.waitedMs += current.waitedMs + (this.#hedged?.waitedMsBefore(current) ?? 0)
    history.recordFailure(current, failure, isRetried, this.#response.streamError !== null)
  }

  /** No attempt follows: the client gets the latest error of an upstream's own, or else the gateway's. */
  async #giveUp({ error, status, reason }: AttemptFailure): Promise<GatewayError | null> {
    const { streamError } = this.#response
    if (streamError) throw streamError
    const sent = this.#response.sendLastError()
    if (sent === null) throw error ?? undeliveredError(status, reason)
    return await sent
  }

  /** A deadline has passed: of an attempt, which others may follow, or of the exchange. */
  #expired(error: GatewayError, attempt = this.#history.current): void {
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
      this.#history.current?.discardRest()
      return
    }
    this.#history.current?.stop(reason)
    this.#hedged?.stop(reason)
    this.#relay.stop(reason)
    this.#cancelWait?.()
  }

  /** Resolves after `ms`, or at once when the exchange is stopped. */
  #wait(ms: number): Promise<void> {
    this.#history.waitedMs += ms
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

/** @returns the result, or the error of the gateway that is expected */
function orGatewayError<T>(create: () => T, isExpected: (error: GatewayError) => boolean): T | GatewayError {
  try {
    return create()
  } catch (thrown) {
    if (thrown instanceof GatewayError && isExpected(thrown)) return thrown
    throw thrown
  }
}
