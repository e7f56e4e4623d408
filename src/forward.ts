import { NOWHERE, elsewhere } from './candidates.ts'
import type { Target } from './config/types.ts'
import { GatewayError, asGatewayError } from './errors.ts'
import { asksForEvents } from './exchange.ts'
import type { Exchange, Stoppable } from './exchange.ts'
import type { Gateway } from './gateway.ts'
import { hasSpoken, usedSoFar } from './ledger-row.ts'
import { createShare } from './metering/share.ts'
import { observe } from './observe.ts'
import { PROTOCOLS } from './protocols/index.ts'
import type { RefusalReason } from './protocols/refusal.ts'
import { Deadlines } from './proxy/deadlines.ts'
import type { OwnHeaders, RawHeaders } from './proxy/headers.ts'
import type { KeptAnswer } from './proxy/prelude.ts'
import { Relay, codingOf } from './proxy/relay.ts'
import type { AnswerHead, Observer, RelayEnd } from './proxy/relay.ts'
import { afterFailure, isOperatorsFault } from './proxy/retry.ts'
import { limitHeaders, quote } from './reserve.ts'
import { Rescue, createRescue } from './rescue.ts'
import { isAccident } from './routing/accident.ts'
import { candidateId } from './routing/candidate.ts'
import { Course } from './routing/course.ts'
import type { Moment, Step } from './routing/course.ts'
import type { Condition } from './routing/health.ts'
import { SignsOfLife } from './signs-of-life.ts'
import { Try } from './try.ts'
import type { Failure } from './try.ts'
import { askedFor, isCredentialRefused, ownWords, untold } from './upstream-errors.ts'
import type { FlawKind } from './whole-events.ts'

/**
 * Sends the exchange to its candidates, one after the other, until one answers,
 * and relays that answer to the client.
 *
 * @param order the candidates, in the order in which they are to be tried; at least one
 * @throws GatewayError while nothing was sent to the client; what breaks later
 *   is told to the client in mid-stream, and returned
 */
export function forward(
  gateway: Gateway, exchange: Exchange, order: readonly Target[],
): Promise<GatewayError | null> {
  return new Forwarding(gateway, exchange, order).run()
}

/** The stream broke that the client was getting, and somebody is to go on with it. */
interface Interruption {
  readonly step: Step
}

class Forwarding implements Stoppable {
  readonly #gateway: Gateway
  readonly #exchange: Exchange
  readonly #course: Course
  readonly #deadlines: Deadlines
  readonly #relay: Relay
  /** Where refusals of the request itself go, as far as no such target was asked yet. */
  readonly #elsewhere: Map<RefusalReason, Target>
  /** Follows a stream that another candidate may go on with, or why none could; null = none is to. */
  readonly #rescue: Rescue | string | null
  #current: Try | null = null
  /** What broke the stream that is to be continued; null = nothing did. */
  #broke: GatewayError | null = null
  /** What kept the upstream from the protocol's end, after all had been said; null = nothing did. */
  #unfinished: GatewayError | null = null
  /** Of the answer that is under way: it may come and break before anybody waits for that. */
  #interruption: PromiseWithResolvers<Interruption> | null = null
  /** The latest answer that an upstream gave of its own, though it was an error. */
  #kept: { readonly answer: KeptAnswer; readonly candidate: Target } | null = null
  /** Of the answer that goes to the client. */
  #headers: RawHeaders = []
  /** Nothing has helped, and what was kept goes to the client. */
  #gaveUp = false
  /** To a client that waits for a stream which is kept back. */
  #signs: SignsOfLife | null = null
  #wake: (() => void) | null = null

  constructor(gateway: Gateway, exchange: Exchange, order: readonly Target[]) {
    const { route } = exchange
    const timeouts = route?.timeouts ?? gateway.config.timeouts
    this.#gateway = gateway
    this.#exchange = exchange
    const isIll = (target: Target) => this.#condition(target).circuit !== 'closed'
    this.#course = new Course(order, route?.retries ?? 0, isIll)
    this.#elsewhere = route ? elsewhere(route) : NOWHERE
    const expired = (error: GatewayError): void => this.#expired(error)
    this.#deadlines = new Deadlines(gateway.clock, timeouts, exchange.startedAt, expired)
    this.#relay = new Relay({
      res: exchange.res,
      own: () => this.#own(),
      clock: gateway.clock,
      deadlines: this.#deadlines,
      inspect: head => this.#inspect(head),
      onFirstByte: () => {
        if (this.#relay.status < 400) this.#current?.answered()
      },
      lastWords: error => this.#lastWords(error),
      onSent: recordingOf(exchange),
      resume: () => this.#current?.attempt.resume(),
      rescue: error => this.#rescued(error),
    })
    const continues = route?.resume === 'continue' && asksForEvents(exchange)
    this.#rescue = continues ? createRescue(exchange, kind => this.#flawed(kind)) : null
    exchange.relay = this.#relay
    exchange.underWay = this
  }

  async run(): Promise<GatewayError | null> {
    const exchange = this.#exchange
    if (exchange.route?.resume === 'hold' && asksForEvents(exchange)) this.#showLife()
    try {
      let candidate = this.#course.current
      for (;;) {
        const current = this.#begin(candidate)
        const error = await current.attempt.run(this.#gateway.proxy)
        const failure = error ? unanswered(error) : await current.verdict
        let step: Step | null
        if (failure !== null) {
          this.#failed(current, failure)
          exchange.proceed()
          step = this.#next(failure)
          if (step === null) return await this.#giveUp(failure)
        } else {
          const end = await (this.#interruption ? this.#relayed(current) : this.#relay.done)
          if (end === null || end instanceof GatewayError) return this.#ended(current, end)
          step = end.step
        }
        this.#logStep(current, step)
        if (step.delayMs > 0) await this.#wait(step.delayMs)
        exchange.proceed()
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
      this.#current?.leave()
      this.#signs?.end()
      this.#deadlines.stop()
      exchange.underWay = null
      exchange.bytesOut = this.#relay.bytes
      exchange.firstByteAt = this.#relay.firstByteAt
    }
  }

  #begin(candidate: Target): Try {
    const exchange = this.#exchange
    const isFirst = exchange.attempts.length === 0
    exchange.candidate = candidate
    if (!isFirst) exchange.quoted = quote(this.#gateway, exchange, candidate)
    const whole = exchange.route?.resume === 'hold'
    const begun = () => this.#relay.waits
    // To a client that was shown signs of life not every answer can go as it is.
    const isFree = !whole && this.#signs === null && !begun()
    const isLast = isFree && this.#course.attemptsLeft === 0 && this.#elsewhere.size === 0
    const rescue = this.#broke === null ? null : this.#following
    const current = new Try(this.#gateway, exchange, {
      candidate,
      deadlines: this.#deadlines,
      sink: this.#relay,
      demands: isLast ? null : { reasons: rescue ? NOWHERE : this.#elsewhere, whole, begun },
      onAlive: () => this.#showLife(),
      edits: rescue && (body => rescue.edits(body)),
    })
    this.#current = current
    if (this.#following) this.#interruption = Promise.withResolvers()
    // Should the process die, the ledger tells of every attempt that was begun.
    if (!isFirst && exchange.entry) this.#gateway.accounts.ledger?.progress(exchange.entry)
    return current
  }

  /** The answer went to the client, to its end or not. */
  #ended(current: Try, end: RelayEnd): GatewayError | null {
    const { status } = this.#relay
    this.#exchange.status = status
    current.ended(end, { status, headers: this.#headers }, this.#unfinished)
    return end
  }

  /** The client has seen nothing of it. */
  #failed(current: Try, failure: Failure): void {
    const exchange = this.#exchange
    const { candidate, attempt } = current
    const { status, answer } = failure
    this.#deadlines.rest()
    current.failed(failure)
    // It went up and nothing came back: who left it waiting may have to pay for the prompt.
    exchange.answer = exchange.stopped && attempt.sent ? { kind: 'none', delivered: false } : null
    if (status !== null && isOperatorsFault(status)) this.#alarm(candidate, status)
    const isKept = answer && !isCredentialRefused(answer.status) && this.#broke === null
    if (isKept) this.#kept = { answer, candidate }
  }

  #next({ error, status, headers, answer, reason }: Failure): Step | null {
    if (reason !== null) {
      const target = this.#elsewhere.get(reason) as Target
      this.#elsewhere.delete(reason)
      return this.#course.redirect(target)
    }
    const retryAfterMs = askedFor(headers, answer, this.#gateway.clock.wall())
    const { retryable, again } = afterFailure(error, status)
    if (this.#broke === null) {
      const { consecutiveFailures } = this.#condition(this.#course.current)
      const soon = isAccident(status, retryAfterMs, consecutiveFailures)
      return this.#course.next({ retryable, again, soon, retryAfterMs }, this.#moment)
    }
    // Whatever keeps one from going on, another may.
    const setback = { retryable: true, again: retryable && again, soon: false, retryAfterMs }
    return this.#course.next(setback, this.#moment, this.#suits)
  }

  #condition(target: Target): Condition {
    return this.#gateway.health.condition(candidateId(target, this.#exchange.model))
  }

  get #moment(): Moment {
    return { now: this.#gateway.clock.monotonic(), timeLeft: this.#deadlines.left, random: Math.random() }
  }

  /** Who can go on: of what has said nothing yet, anybody can be asked anew. */
  readonly #suits = ({ prefill }: Target): boolean => prefill || !hasSpoken(this.#exchange)

  get #following(): Rescue | null {
    return this.#rescue instanceof Rescue ? this.#rescue : null
  }

  /** @returns how the answer ended, or how it is to go on */
  #relayed(current: Try): Promise<RelayEnd | Interruption> {
    if (this.#broke) current.answered()
    const interrupted = this.#interruption?.promise
    return interrupted ? Promise.race([this.#relay.done, interrupted]) : this.#relay.done
  }

  /**
   * The client's stream broke.
   * @returns whether somebody goes on with it, or the end if that is all it lacks
   */
  #rescued(error: GatewayError): boolean | Buffer {
    const rescue = this.#rescue
    const current = this.#current
    if (current === null || this.#gaveUp || error.source !== 'upstream') return false
    if (current.rest !== null) {
      this.#unfinished = error
      return current.rest
    }
    if (rescue === null) return false
    if (typeof rescue === 'string') {
      this.#logLost(rescue)
      return false
    }
    const { standing } = rescue
    if (standing.can === 'finish') {
      this.#unfinished = error
      return standing.rest
    }
    if (standing.can === 'nothing') {
      this.#logLost(standing.reason)
      return false
    }
    const { again } = afterFailure(error, null)
    const setback = { retryable: true, again, soon: false, retryAfterMs: null }
    const step = this.#course.next(setback, this.#moment, this.#suits)
    if (step === null) return false
    this.#broke = error
    this.#partly(current, error)
    rescue.goOn(usedSoFar(this.#exchange))
    this.#interruption?.resolve({ step })
    return true
  }

  /** An attempt brought the first part of an answer, and is to be billed for it. */
  #partly(current: Try, error: GatewayError): void {
    const exchange = this.#exchange
    const { answer, quoted, estimatedInput, body, classified: { endpoint } } = exchange
    current.attempt.abort(error)
    current.broke(error, this.#relay.status)
    this.#deadlines.rest()
    if (answer) {
      const request = body?.bytes ?? null
      const { counter } = this.#gateway.accounts
      const share = createShare(counter, { endpoint: endpoint.name, request, answer, estimatedInput })
      exchange.earlier.push({ answer, quoted, record: current.record, share })
    }
    exchange.answer = null
  }

  /** The stream had an event that the client is not to see, or cannot. */
  #flawed(kind: FlawKind): void {
    // It may have ended the stream as well by now.
    if (this.#relay.waits) return
    const error = flawError(kind)
    this.#current?.stop(error)
    this.#relay.broken(error)
  }

  /** Nothing has helped: the client gets what an upstream said, or else what is known of the failure. */
  async #giveUp({ error, status }: Failure): Promise<GatewayError | null> {
    if (this.#broke) throw this.#broke
    const kept = this.#kept
    if (kept === null || this.#relay.waits) throw error ?? untold(status)
    const { candidate, answer } = kept
    this.#gaveUp = true
    this.#exchange.candidate = candidate
    const relay = this.#relay
    const refused = relay.head(answer.status, answer.headers, answer.httpVersion)
    if (refused) throw refused
    relay.data(answer.body)
    relay.end()
    const end = await relay.done
    this.#exchange.status = relay.status
    return end
  }

  #inspect(head: AnswerHead): GatewayError | Observer | null {
    const exchange = this.#exchange
    const candidate = exchange.candidate as Target
    if (!this.#gaveUp && isOperatorsFault(head.status)) this.#alarm(candidate, head.status)
    if (isCredentialRefused(head.status)) return untold(head.status)
    this.#signs?.end()
    this.#kept = null
    this.#headers = head.headers
    if (exchange.recording) exchange.recording.contentType = head.contentType
    exchange.status = head.status
    const observer = observe(this.#gateway, exchange, head)
    // Compressed against our asking, its events cannot be followed.
    const isEvents = head.contentType.toLowerCase().startsWith('text/event-stream') && codingOf(head) === null
    return (observer && isEvents && head.status === 200 && this.#following?.follow(observer)) || observer
  }

  #own(): OwnHeaders {
    const { id, candidate, attempts } = this.#exchange
    return {
      version: this.#gateway.version,
      requestId: id,
      limits: limitHeaders(this.#gateway, this.#exchange),
      served: { upstream: (candidate as Target).upstream.name, attempts: attempts.length },
    }
  }

  /** A deadline has passed: of an attempt, which others may follow, or of the exchange. */
  #expired(error: GatewayError): void {
    if (error.source !== 'upstream') {
      this.#exchange.stop(error)
      return
    }
    const { status, waits } = this.#relay
    this.#current?.stop(error)
    // What was kept back and lacks no more than its end has gone there only now.
    if (status !== 0 && !waits) this.#relay.stop(error)
  }

  /** The exchange is ended from outside. */
  stop(reason: GatewayError): void {
    this.#current?.stop(reason)
    this.#relay.stop(reason)
    this.#wake?.()
  }

  #showLife(): void {
    if (this.#signs) return
    this.#signs = new SignsOfLife()
    this.#signs.begin(this.#gateway.clock, this.#relay, this.#exchange.classified.endpoint.protocol)
  }

  /** How the client is told of an error under way: in the upstream's own words, where there are any. */
  #lastWords(error: GatewayError): string {
    const { classified, id } = this.#exchange
    const { protocol, name } = classified.endpoint
    const told = error.source === 'upstream' ? this.#following?.lastWords : null
    if (told) return told
    const own = this.#kept && ownWords(this.#kept.answer, protocol)
    return own ?? PROTOCOLS[protocol].streamError(error, name, id)
  }

  /** Resolves when the time is up, or at once when the exchange is stopped. */
  #wait(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = this.#gateway.clock.setTimeout(resolve, ms)
    this.#wake = () => {
      timer.cancel()
      resolve()
    }
    return promise
  }

  #alarm({ upstream: { name } }: Target, status: number): void {
    this.#gateway.lasting.rejections.set(name, { status, at: this.#gateway.clock.wall() })
    this.#gateway.log.error(
      { request: this.#exchange.id, upstream: name, status },
      "the upstream refused the gateway's own credential: check upstreams.%s.auth", name,
    )
  }

  #logLost(why: string): void {
    this.#gateway.log.info({ request: this.#exchange.id, why }, 'the stream cannot be continued')
  }

  #logStep({ record }: Try, { target, delayMs }: Step): void {
    const { upstream, outcome, status } = record
    const next = target.upstream.name
    const line = { request: this.#exchange.id, upstream, outcome, status, next, wait_ms: delayMs }
    this.#gateway.log.warn(line, 'attempt failed')
  }
}

function recordingOf({ recording }: Exchange): ((bytes: Buffer) => void) | undefined {
  return recording ? bytes => recording.push(bytes) : undefined
}

function flawError(kind: FlawKind): GatewayError {
  switch (kind) {
    case 'error':
      return new GatewayError('upstream_cut', 'the upstream broke off the stream with an error')
    case 'malformed':
      return new GatewayError('upstream_invalid', 'the upstream sent an event that is not well-formed')
    case 'too_long':
      return new GatewayError('upstream_invalid', 'the upstream sent an event that is too long to be joined')
  }
}

function unanswered(error: GatewayError): Failure {
  return { error, status: null, headers: [], answer: null, reason: null }
}
