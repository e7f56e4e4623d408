import type { Clock } from '../../base/clock.ts'
import type { Target } from '../../config/types.ts'
import { GatewayError, asGatewayError } from '../../base/errors.ts'
import { asksForEvents } from '../../context/exchange.ts'
import type { Exchange, Stoppable } from '../../context/exchange.ts'
import type { Gateway } from '../../gateway/gateway.ts'
import { PROTOCOLS } from '../../protocols/index.ts'
import type { ClientResponse } from '../../proxy/client.ts'
import { Deadlines } from '../../proxy/deadlines.ts'
import { answerHead } from '../../proxy/response-head.ts'
import type { AnswerHead } from '../../proxy/response-head.ts'
import { headerValue } from '../../proxy/headers.ts'
import type { OwnHeaders, RawHeaders } from '../../proxy/headers.ts'
import type { KeptAnswer } from '../../proxy/response-gate.ts'
import { Relay } from '../../proxy/relay.ts'
import type { Observer, RelayEnd, RelayHost } from '../../proxy/relay.ts'
import { isCredentialRefused, isOperatorsFault } from '../../proxy/retry.ts'
import type { Step } from '../../routing/candidate-state.ts'
import { quote } from '../settle/reserve.ts'
import { NOWHERE } from './candidates.ts'
import { alarm, logLost, logStep } from './forward-log.ts'
import { Itinerary } from './retry-plan.ts'
import { observe } from '../respond/observe.ts'
import { Rescue } from '../respond/continuation.ts'
import { servedBy } from './gateway-headers.ts'
import { SignsOfLife } from '../respond/keep-alive-timer.ts'
import { Try } from './candidate-attempt.ts'
import type { Failure } from './candidate-attempt.ts'
import { ownWords, untold } from './upstream-errors.ts'

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

class Forwarding implements RelayHost, Stoppable {
  readonly res: ClientResponse
  readonly clock: Clock
  readonly deadlines: Deadlines
  readonly onSent: ((bytes: Buffer) => void) | undefined
  readonly #gateway: Gateway
  readonly #exchange: Exchange
  readonly #relay: Relay
  readonly #itinerary: Itinerary
  /** Has other candidates go on with the client's stream where it breaks; null = nobody is to. */
  readonly #rescue: Rescue | null
  #current: Try | null = null
  /** What kept the upstream from the protocol's end, after all had been said; null = nothing did. */
  #unfinished: GatewayError | null = null
  /** The latest answer that an upstream gave of its own, though it was an error. */
  #kept: { readonly answer: KeptAnswer; readonly candidate: Target } | null = null
  /** Of the answer that goes to the client. */
  #headers: RawHeaders = []
  /** Nothing has helped, and what was kept goes to the client. */
  #gaveUp = false
  /** To a client that waits for a stream which is kept back, or is to go on; null = none does. */
  #signs: SignsOfLife | null = null
  #wake: (() => void) | null = null

  constructor(gateway: Gateway, exchange: Exchange, order: readonly Target[]) {
    const { route } = exchange
    const timeouts = route?.timeouts ?? gateway.config.timeouts
    this.#gateway = gateway
    this.#exchange = exchange
    this.res = exchange.res
    this.clock = gateway.clock
    this.onSent = recordingOf(exchange)
    const expired = (error: GatewayError): void => this.#expired(error)
    this.deadlines = new Deadlines(gateway.clock, timeouts, exchange.startedAt, expired)
    this.#itinerary = new Itinerary(gateway, exchange, order, this.deadlines)
    this.#relay = new Relay(this)
    const continues = route?.resume === 'continue' && asksForEvents(exchange)
    this.#rescue = continues ? new Rescue(gateway, exchange, error => this.#flawed(error)) : null
    exchange.relay = this.#relay
    exchange.underWay = this
  }

  async run(): Promise<GatewayError | null> {
    const exchange = this.#exchange
    if (exchange.route?.resume === 'hold' && asksForEvents(exchange)) this.#showLife()
    try {
      let candidate = this.#itinerary.current
      for (;;) {
        const current = this.#begin(candidate)
        const error = await current.attempt.run(this.#gateway.proxy)
        const failure = error ? unanswered(error) : await current.verdict
        let step: Step | null
        if (failure !== null) {
          this.#failed(current, failure)
          exchange.proceed()
          step = this.#broke ? this.#itinerary.nextToGoOn(failure) : this.#itinerary.next(failure)
          if (step === null) return await this.#giveUp(failure)
        } else {
          if (this.#broke) current.answered()
          const { done } = this.#relay
          const end = await (this.#rescue?.interrupted(done) ?? done)
          if (end === null || end instanceof GatewayError) return this.#ended(current, end)
          step = end
        }
        logStep(this.#gateway, exchange, current.record, step)
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
      // It has the request's body, and the client's connection may refer to all this for longer.
      this.#current = null
      exchange.held = null
      this.#signs?.end()
      this.deadlines.stop()
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
    const isLast = isFree && this.#itinerary.isLast
    const reasons = this.#broke ? NOWHERE : this.#itinerary.elsewhere
    const current = new Try(this.#gateway, exchange, {
      candidate,
      deadlines: this.deadlines,
      sink: this.#relay,
      demands: isLast ? null : { reasons, whole, begun },
      onAlive: () => this.#showLife(),
      edits: this.#rescue?.edits ?? null,
    })
    this.#current = current
    exchange.held = () => current.held
    this.#rescue?.begin()
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
    const { status, answer, reason } = failure
    this.deadlines.rest()
    current.failed(failure)
    exchange.held = null
    // It went up and no refusal came back: who left it waiting may have to pay for the prompt.
    const isTaken = attempt.sent && (status === null || status < 400)
    exchange.answer = exchange.stopped && isTaken ? { kind: 'none', delivered: false } : null
    if (failure.error?.code === 'client_gone') this.#leftBehind(current, failure)
    // What is wrong with the request is not what is wrong with the credential, whatever the status.
    const isOurs = reason === null && status !== null
    if (isOurs && isOperatorsFault(status)) alarm(this.#gateway, exchange, candidate, status)
    const isSecret = isOurs && isCredentialRefused(status)
    if (answer && !isSecret && this.#broke === null) this.#kept = { answer, candidate }
  }

  /** Who leaves while an answer is kept back has let it be generated, and pays for what came of it. */
  #leftBehind({ kept }: Try, { status, headers }: Failure): void {
    if (status === null || kept === null || kept.length === 0) return
    const observer = observe(this.#gateway, this.#exchange, answerHead(status, headers))
    observer?.push(kept)
    observer?.end()
  }

  /** What broke the stream that another candidate is to go on with; null = nothing did. */
  get #broke(): GatewayError | null {
    return this.#rescue?.broke ?? null
  }

  /**
   * The client's stream broke.
   * @returns whether somebody goes on with it, or the end if that is all it lacks
   */
  rescue(error: GatewayError): boolean | Buffer {
    const current = this.#current
    if (current === null || this.#gaveUp || error.source !== 'upstream') return false
    if (current.rest !== null) {
      this.#unfinished = error
      return current.rest
    }
    const rescue = this.#rescue
    if (rescue === null) return false
    const standing = rescue.stand()
    if (standing.can === 'finish') {
      this.#unfinished = error
      this.#exchange.madeWhole = true
      return standing.rest
    }
    if (standing.can === 'nothing') {
      logLost(this.#gateway, this.#exchange, standing.reason)
      return false
    }
    const step = this.#itinerary.nextToGoOn(unanswered(error))
    if (step === null) return false
    current.attempt.abort(error)
    current.broke(error, this.#relay.status)
    this.deadlines.rest()
    rescue.goOn(error, current.record, step)
    this.#showLife()
    return true
  }

  /** The stream had an event that the client is not to see, or cannot. */
  #flawed(error: GatewayError): void {
    // It may have ended the stream as well by now.
    if (this.#relay.waits) return
    this.#current?.stop(error)
    this.#relay.broken(error)
  }

  /** Nothing has helped: the client gets what an upstream said, or else what is known of the failure. */
  async #giveUp({ error, status, reason }: Failure): Promise<GatewayError | null> {
    if (this.#broke) throw this.#broke
    const kept = this.#kept
    if (kept === null || this.#relay.waits) throw error ?? untold(status, reason)
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

  own(): OwnHeaders {
    return servedBy(this.#gateway, this.#exchange, (this.#exchange.candidate as Target).upstream)
  }

  inspect(head: AnswerHead): GatewayError | Observer | null {
    const exchange = this.#exchange
    const candidate = exchange.candidate as Target
    const back = this.#current?.leadsBack(head) ?? null
    if (back !== null) return back
    // What was kept has been looked into, and a refused credential never gets here.
    if (!this.#gaveUp && isOperatorsFault(head.status)) alarm(this.#gateway, exchange, candidate, head.status)
    this.#signs?.end()
    this.#signs = null
    this.#kept = null
    this.#headers = head.headers
    if (exchange.recording) {
      exchange.recording.contentType = headerValue(head.headers, 'content-type')
      exchange.recording.encoding = headerValue(head.headers, 'content-encoding')
    }
    exchange.status = head.status
    const observer = observe(this.#gateway, exchange, head)
    return observer && this.#rescue ? this.#rescue.follow(observer, head) : observer
  }

  onFirstByte(): void {
    if (this.#relay.status < 400) this.#current?.answered()
  }

  resume(): void {
    this.#current?.attempt.resume()
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
  lastWords(error: GatewayError): string {
    const { classified, id } = this.#exchange
    const { protocol, name } = classified.endpoint
    const told = error.source === 'upstream' ? this.#rescue?.lastWords : null
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
}

function recordingOf({ recording }: Exchange): ((bytes: Buffer) => void) | undefined {
  return recording ? bytes => recording.push(bytes) : undefined
}

function unanswered(error: GatewayError): Failure {
  return { error, status: null, headers: [], answer: null, said: null, reason: null }
}
