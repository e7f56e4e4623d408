import { GatewayError, asGatewayError } from '../../base/errors.ts'
import type { Target, UpstreamLimits } from '../../config/types.ts'
import { wantsEventStream, type Exchange, type Plan, type Stoppable } from '../exchange/exchange.ts'
import type { Gateway } from '../parts/gateway.ts'
import type { Authorization } from '../../upstreams/credentials/credential.ts'
import type { Reservation } from '../../limits/types.ts'
import { Deadlines } from '../../proxy/http/deadlines.ts'
import { isUnsuited } from '../../routing/failure.ts'
import { StreamBreak } from '../respond/response-stream.ts'
import { canWait, queuedMs, waitForRoom } from '../parts/wait-for-room.ts'
import { failureWithoutResponse, undeliveredError, type AttemptFailure } from './attempt-failure.ts'
import { AttemptLoop, type AttemptCarrier, type AttemptOutcome, type RefusedTarget, type WaitedTarget } from './attempt-loop.ts'
import { ClientStream } from './client-stream.ts'
import { HedgedAttempts, type HedgeHost } from './hedge.ts'
import { beginHttpAttempt, type HttpAttempt } from './http-attempt.ts'
import { AttemptRecorder } from './recorder.ts'
import { NO_REFUSAL_TARGETS, RetryPlan } from './retry-plan.ts'

const NONE_REFUSED: readonly Authorization[] = []

/** The result of `forward` if the target has no endpoint that counts tokens, so that the gateway must count them. */
export const COUNT_TOKENS = Symbol('count tokens')

/** null = the response ended properly; COUNT_TOKENS = the client got nothing yet. */
type ForwardEnd = GatewayError | null | typeof COUNT_TOKENS

/** Tries the targets in order and relays the response. @throws GatewayError if the client got nothing yet */
export function forward(gateway: Gateway, exchange: Exchange, plan: Plan): Promise<ForwardEnd> {
  return new Forwarding(gateway, exchange, plan).run()
}

class Forwarding implements Stoppable, AttemptCarrier<HttpAttempt, ForwardEnd>, HedgeHost {
  readonly #gateway: Gateway
  readonly #exchange: Exchange
  readonly #deadlines: Deadlines
  readonly #plan: RetryPlan
  readonly #recorder: AttemptRecorder
  readonly #stream: ClientStream
  readonly #loop: AttemptLoop<HttpAttempt, ForwardEnd>
  readonly #translate: Plan['route']['translate']
  /** null = the request is not hedged. */
  readonly #hedged: HedgedAttempts | null
  isContinuation = false
  current: HttpAttempt | null = null

  constructor(gateway: Gateway, exchange: Exchange, plan: Plan) {
    const { resume, timeouts, translate } = plan.route
    this.#translate = translate
    this.#gateway = gateway
    this.#exchange = exchange
    const deadlines = this.#deadlines = new Deadlines(gateway.clock, timeouts, exchange.startedAt, error => this.expired(error, this.current))
    const retryPlan = this.#plan = new RetryPlan(gateway, exchange, plan, deadlines)
    const recorder = this.#recorder = new AttemptRecorder(gateway, exchange)
    this.#stream = new ClientStream(gateway, exchange, { recorder, deadlines, plan: retryPlan, resume })
    this.#loop = new AttemptLoop(gateway, exchange, retryPlan, recorder)
    const { hedgeAfter: afterMs } = plan
    this.#hedged = afterMs === null ? null : new HedgedAttempts(gateway, exchange, { recorder, plan: retryPlan, deadlines, afterMs, host: this })
  }

  async run(): Promise<ForwardEnd> {
    const exchange = this.#exchange
    const { relay, resumeMode } = this.#stream
    exchange.deliverBy(relay)
    exchange.stopBy(this)
    if (resumeMode === 'hold' && wantsEventStream(exchange)) this.#stream.keepAlive()
    try {
      if (exchange.pendingRoom !== null) await this.#waitFor(exchange.pendingRoom)
      return await this.#loop.run(this)
    } catch (thrown) {
      if (relay.status === 0) throw thrown
      // The client already has the head of the response, so it gets an error event in the stream.
      this.#stream.fail(asGatewayError(thrown))
      return await relay.outcome as GatewayError | null
    } finally {
      this.current?.health.abandoned()
      // Free the attempt, which refers to the request's body: the client's connection may refer to this object for longer.
      this.current = null
      this.#stream.keepAliveTimer?.stop()
      this.#deadlines.stop()
      this.#hedged?.stopDeadlines()
      exchange.stopBy(null)
    }
  }

  endBefore(target: Target): ForwardEnd {
    const { classified: { endpoint }, request: { model } } = this.#exchange
    if (endpoint.tokenCount === null) return null
    return this.#gateway.targets.at(target, endpoint, model).isSpoken ? null : COUNT_TOKENS
  }

  /** @param own deadlines of a second, hedged attempt; null = use the deadlines of the exchange */
  async waitForTarget(all: readonly RefusedTarget[]): Promise<WaitedTarget | null> {
    const { route } = this.#exchange.plan as Plan
    const refused = all.filter(({ refusal, target }) => (
      canWait(this.#gateway, route, refusal) && (!this.isContinuation || target.prefill)
    ))
    if (refused.length === 0) return null
    const result = await this.#waitFor(() => waitForRoom(this.#gateway, this.#exchange, refused))
    if ('which' in result) {
      this.#exchange.throwIfStopped()
      return null
    }
    if (this.#exchange.stopped !== null) result.reservation.release()
    this.#exchange.throwIfStopped()
    const { target } = refused[result.at] as RefusedTarget
    this.#plan.resume(target)
    return { target, reservation: result.reservation }
  }

  /** Sends keep-alive events during the wait to clients that accept them before a response. */
  async #waitFor<T>(wait: () => Promise<T>): Promise<T> {
    const { relay, resumeMode, keepAliveTimer } = this.#stream
    const isKeptAlive = wantsEventStream(this.#exchange) && keepAliveTimer?.isRunning !== true
    const before = queuedMs(this.#exchange)
    if (isKeptAlive) this.#stream.keepAlive()
    // The total timeout applies to the wait too.
    this.#deadlines.betweenAttempts()
    try {
      return await wait()
    } finally {
      this.#recorder.waitedMs += queuedMs(this.#exchange) - before
      // Without a keep-alive event, the client still gets the upstream's own status.
      if (isKeptAlive && relay.status === 0 && resumeMode !== 'hold') this.#stream.keepAliveTimer?.stop()
    }
  }

  begin(
    target: Target, refused: readonly Authorization[], reservation: Reservation | null, own: Deadlines | null = null,
  ): HttpAttempt | GatewayError {
    const { relay, resumeMode, continuation } = this.#stream
    const whole = resumeMode === 'hold'
    // The response must be checked if the client got keep-alive events, because then only an event stream can follow.
    const isFree = !whole && this.#stream.keepAliveTimer?.isRunning !== true && !relay.isWaiting
    const isLast = own === null && isFree && this.#plan.isLast
    const claim = this.isContinuation ? null : this.#hedged?.claim ?? null
    try {
      const attempt = beginHttpAttempt(this.#gateway, this.#exchange, {
        target, refused, reservation,
        deadlines: own ?? this.#deadlines,
        stream: this.#stream,
        requirements: isLast ? null : {
          reasons: this.isContinuation ? NO_REFUSAL_TARGETS : this.#plan.refusalTargets, whole, content: claim !== null,
        },
        resume: resumeMode,
        translate: this.#translate,
        continuationEdits: continuation?.edits ?? null,
        claim,
      })
      this.current = attempt
      continuation?.begin()
      return attempt
    } catch (thrown) {
      // If there is no memory for the request of a second attempt, the first one continues alone.
      if (thrown instanceof GatewayError && (own !== null || isUnsuited(thrown.code))) return thrown
      throw thrown
    }
  }

  async carry(attempt: HttpAttempt): Promise<AttemptOutcome<HttpAttempt, ForwardEnd>> {
    const hedged = this.isContinuation ? null : this.#hedged
    const { attempt: last, failure } = hedged === null ? { attempt, failure: await attempt.run() } : await hedged.run(attempt)
    if (failure !== null) {
      this.#deadlines.betweenAttempts()
      this.#recorder.waitedMs += last.waitedMs + (this.#hedged?.waitedMsBefore(last) ?? 0)
      return { kind: 'failed', attempt: last, failure, isLast: last.isLast }
    }
    if (this.isContinuation) last.health.responseStarted(last.elapsedMs)
    return this.#relay(last)
  }

  async giveUp({ error, status, reason }: AttemptFailure): Promise<GatewayError | null> {
    const { streamError } = this.#stream
    if (streamError) throw streamError
    const sent = this.#stream.sendLastError()
    if (sent === null) throw error ?? undeliveredError(status, reason)
    return await sent
  }

  stop(reason: GatewayError): void {
    const { relay } = this.#stream
    if (reason.code === 'client_gone' && relay.clientClosed()) {
      this.current?.discardRest()
      return
    }
    this.current?.stop(reason)
    this.#hedged?.stop(reason)
    relay.stop(reason)
    this.#loop.cancelWait()
  }

  reserve(limits: UpstreamLimits): Promise<Reservation | GatewayError> {
    return this.#loop.reserve(limits)
  }

  beginHedge(target: Target, own: Deadlines, reservation: Reservation | null): HttpAttempt | GatewayError {
    return this.#loop.begin(() => this.begin(target, NONE_REFUSED, reservation, own), reservation)
  }

  expired(error: GatewayError, attempt: HttpAttempt | null): void {
    if (error.source !== 'upstream') {
      this.#exchange.stop(error)
      return
    }
    const { relay } = this.#stream
    const { status, isWaiting } = relay
    attempt?.stop(error)
    // Stop the relay only if it was open before: stopping an attempt whose held response lacks only its end opens the relay.
    if (status !== 0 && !isWaiting) relay.stop(error)
  }

  /** Waits for the end of the client's response. If the stream breaks, decides whether another attempt continues it. */
  async #relay(attempt: HttpAttempt): Promise<AttemptOutcome<HttpAttempt, ForwardEnd>> {
    const { relay, continuation } = this.#stream
    for (;;) {
      const end = await relay.outcome
      if (!(end instanceof StreamBreak)) return { kind: 'ended', end: this.#stream.ended(attempt, end) }
      if (!relay.isBroken) continue
      const { error } = end
      const recovery = this.#stream.recovery(attempt, error)
      if (recovery instanceof Buffer) {
        relay.finish(recovery)
        continue
      }
      const failure = failureWithoutResponse(error, this.#gateway.clock.wall())
      const step = recovery === 'continue' ? this.#plan.next(failure, true) : null
      if (step === null) {
        this.#stream.fail(error)
        continue
      }
      attempt.abort(error)
      this.#recorder.interrupted(attempt, error, relay.status)
      this.#deadlines.betweenAttempts()
      continuation?.interrupted(error, attempt)
      relay.continueLater()
      this.#stream.keepAlive()
      this.isContinuation = true
      return { kind: 'interrupted', attempt, failure, step }
    }
  }
}
