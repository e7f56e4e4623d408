import type { Target } from '../../config/types.ts'
import { GatewayError } from '../../base/errors.ts'
import { asksForEvents } from '../../context/exchange.ts'
import type { AttemptRecord, Exchange } from '../../context/exchange.ts'
import type { Gateway, LiveUpstream } from '../../gateway/gateway.ts'
import type { Answer } from '../../pricing/settle-usage.ts'
import { errorWord } from '../../protocols/refusal.ts'
import type { RefusalReason } from '../../protocols/refusal.ts'
import type { Edit } from '../../protocols/shared/splice.ts'
import { sameAddress } from '../../proxy/address.ts'
import { Attempt } from '../../proxy/attempt.ts'
import type { AnswerSink } from '../../proxy/attempt.ts'
import type { Deadlines } from '../../proxy/deadlines.ts'
import { answerHead } from '../../proxy/response-head.ts'
import type { AnswerHead } from '../../proxy/response-head.ts'
import { headerValue } from '../../proxy/headers.ts'
import type { RawHeaders } from '../../proxy/headers.ts'
import { Prelude } from '../../proxy/response-gate.ts'
import type { KeptAnswer } from '../../proxy/response-gate.ts'
import type { RelayEnd } from '../../proxy/relay.ts'
import { isCredentialRefused, isFailure, isRetryableStatus } from '../../proxy/retry.ts'
import type { OutgoingRequest } from '../../proxy/transport.ts'
import { candidateId } from '../../routing/candidate.ts'
import type { Trial } from '../../routing/health.ts'
import { News } from '../settle/ledger-checkpoint.ts'
import { NOWHERE } from './candidates.ts'
import { Refusal, judgeOf } from '../respond/response-classifier.ts'
import type { Demands } from '../respond/response-classifier.ts'
import { Whole } from '../respond/whole-response-classifier.ts'
import { roomFor } from '../respond/observe.ts'
import { outgoing } from './outgoing-request.ts'
import { toldError } from '../settle/error-response.ts'
import { askedFor, saidIn } from './upstream-errors.ts'

/** Redirects by which the same is asked for at another address; 303 has something else read. */
const ELSEWHERE = new Set([301, 302, 307, 308])

/** How a try failed of which the client has seen nothing. */
export interface Failure {
  /** The row of the error table, or null where the upstream answered with an error of its own. */
  readonly error: GatewayError | null
  /** The upstream's, or null where no head came. */
  readonly status: number | null
  readonly headers: RawHeaders
  /** That answer of its own, where all of it is there. */
  readonly answer: KeptAnswer | null
  /** What that says, decompressed. */
  readonly said: Buffer | null
  /** Why it refused the request: with 401 or 403, or where the route names another target for that. */
  readonly reason: RefusalReason | null
}

export interface TryOptions {
  readonly candidate: Target
  readonly deadlines: Deadlines
  /** Where the answer goes. */
  readonly sink: AnswerSink
  /** What is asked of an answer that is kept back until then; null = it goes through as it comes. */
  readonly demands: Demands | null
  /** The upstream has begun a stream, and shows that it is alive, but not yet what it is. */
  onAlive(): void
  /** Edits of the request's body beside those that every request needs; null = none. */
  readonly edits: ((body: Buffer) => Edit[]) | null
}

/** One try at one candidate: its request, its place in the ledger, its bearing on the candidate's health. */
export class Try {
  readonly candidate: Target
  readonly attempt: Attempt
  readonly record: AttemptRecord
  readonly #trial: Trial
  readonly #gateway: Gateway
  readonly #exchange: Exchange
  readonly #beganAt: number
  readonly #request: OutgoingRequest
  /** No other can follow: what it says goes to the client. */
  readonly #isLast: boolean
  #prelude: Prelude | null
  #refusal: Refusal | null = null
  /** Of an answer that is kept back until it is whole. */
  #whole: Whole | null = null

  constructor(gateway: Gateway, exchange: Exchange, options: TryOptions) {
    const { candidate, deadlines, sink, demands, edits } = options
    this.candidate = candidate
    this.#isLast = demands === null
    this.#gateway = gateway
    this.#exchange = exchange
    this.#beganAt = gateway.clock.monotonic()
    const upstream = gateway.upstreams.get(candidate.upstream.name) as LiveUpstream
    // Where the request cannot be made, there is no attempt.
    const request = outgoing(exchange, upstream, candidate, edits)
    this.#request = request
    this.record = {
      upstream: upstream.config.name,
      model: candidate.model ?? exchange.model,
      outcome: 'ok',
      ms: 0,
      atMs: this.#beganAt - exchange.startedAt,
    }
    exchange.attempts.push(this.record)
    this.#prelude = demands && this.#createPrelude(options, demands)
    this.attempt = new Attempt({
      transport: upstream.transport,
      upstreamUrl: upstream.url,
      request,
      deadlines,
      unpacks: exchange.route !== null && exchange.route.resume !== 'off' && asksForEvents(exchange),
      sinkFor: status => this.#prelude ?? (isCredentialRefused(status) ? this.#lookInto(options) : sink),
    })
    this.#trial = gateway.health.begin(candidateId(candidate, exchange.model))
  }

  /** Once a head has come: null when the answer goes to the sink; otherwise nothing of it did. */
  get verdict(): Promise<Failure | null> | null {
    const verdict = this.#prelude?.verdict
    return verdict?.then(refused => refused && {
      ...refused,
      said: refused.answer && saidIn(refused.answer),
      reason: this.#refusal?.reason ?? null,
    }) ?? null
  }

  /** What its answer lacked that was kept back and went to the client though it broke; null = none did. */
  get rest(): Buffer | null {
    return this.#prelude?.rest ?? null
  }

  /** What came of its answer and was kept back, for good. */
  get kept(): Buffer | null {
    return this.#prelude?.kept ?? null
  }

  /** What it would be settled by if it ended now, where it is kept back until it is whole; otherwise null. */
  get held(): Answer | null {
    if (this.#whole === null || this.#prelude === null) return null
    const { meter } = this.#whole
    return meter ? { kind: 'stream', meter } : { kind: 'body', body: this.#prelude.kept }
  }

  /**
   * Who follows a redirect to where the request went comes back here for ever, as at a vendor who wants
   * `https:` in the upstream's url.
   *
   * @returns what is wrong with that; null = the answer is another
   */
  leadsBack({ status, headers }: AnswerHead): GatewayError | null {
    if (!ELSEWHERE.has(status)) return null
    const location = headerValue(headers, 'location') ?? ''
    const same = sameAddress(location, this.candidate.upstream, this.#request.path)
    if (same === null) return null
    const cause = new Error(`${status} to ${same}`)
    return new GatewayError('upstream_invalid', 'the upstream redirects the request to itself', { cause })
  }

  /** Ends it from outside, as far as the client has seen nothing of it. */
  stop(reason: GatewayError): void {
    this.attempt.abort(reason)
    this.#prelude?.stop(reason)
  }

  /** An answer has begun that is none of an error. */
  answered(): void {
    this.#trial.answered(this.#age)
  }

  /** The client has seen nothing of it. */
  failed({ error, status, headers, said, reason }: Failure): void {
    const isRejected = this.#isLast && reason === null && status !== null && isCredentialRefused(status)
    this.#note(error?.code ?? (isRejected ? 'upstream_rejected_key' : 'error_answer'), status)
    this.#noteWord(said)
    // What is wrong with the request is nobody's fault there.
    const isFault = error
      ? error.source === 'upstream'
      : reason === null && status !== null && isFailure(status)
    if (isFault) this.#trial.failed(askedFor(headers, said, this.#gateway.clock.wall()))
    else this.#trial.abandoned()
  }

  /** The client got the beginning of its answer, and is to get the rest from another. */
  broke(error: GatewayError, status: number): void {
    this.#note(error.code, status)
    this.#trial.failed(null)
  }

  /**
   * The client got its answer, to its end or not.
   *
   * @param head of the answer
   * @param flaw what the upstream left out at the end, though the client misses nothing
   */
  ended(end: RelayEnd, head: Pick<AnswerHead, 'status' | 'headers'>, flaw: GatewayError | null): void {
    const { status, headers } = head
    const { refusal } = this.#exchange
    const error = end ?? flaw
    const isError = toldError(this.#exchange)
    this.#note(error?.code ?? (isError ? 'error_answer' : 'ok'), status)
    this.#noteWord(refusal)
    if (error?.source === 'upstream') this.#trial.failed(null)
    else if (error !== null) this.#trial.abandoned()
    else if (!isError) this.#trial.succeeded()
    else if (status < 400) this.#trial.failed(null)
    else if (!isRetryableStatus(status)) this.#trial.abandoned()
    else this.#trial.failed(askedFor(headers, refusal, this.#gateway.clock.wall()))
  }

  /** Nobody waits for it any more, however that came about; after an end of its own this does nothing. */
  leave(): void {
    this.#trial.abandoned()
  }

  #note(outcome: string, status: number | null): void {
    this.record.ms = this.#age
    this.record.outcome = outcome
    if (status !== null) this.record.status = status
  }

  /** The word with which the error names itself, for those who ask later why the request failed. */
  #noteWord(said: Buffer | null): void {
    const word = said && errorWord(said)
    if (word) this.record.said = word
  }

  /** Milliseconds since it began. */
  get #age(): number {
    return this.#gateway.clock.monotonic() - this.#beganAt
  }

  /** What is wrong with the request is for the client, though no other candidate follows. */
  #lookInto(options: TryOptions): Prelude {
    const demands = { reasons: NOWHERE, whole: false, begun: () => false }
    this.#prelude = this.#createPrelude(options, demands)
    return this.#prelude
  }

  #createPrelude({ deadlines, sink, onAlive }: TryOptions, demands: Demands): Prelude {
    const exchange = this.#exchange
    const { config, lasting: { bodies } } = this.#gateway
    const room = roomFor(this.#gateway, exchange)
    const news = new News(this.#gateway, exchange)
    const take = (bytes: number): boolean => {
      const isRoom = bodies.take(bytes, config.server.bodyMemory)
      if (isRoom) exchange.bytesHeld += bytes
      return isRoom
    }
    return new Prelude({
      clock: this.#gateway.clock,
      deadlines,
      sink,
      onAlive,
      take,
      give: bytes => {
        bodies.give(bytes)
        exchange.bytesHeld -= bytes
      },
      onKept: () => {
        if (this.#whole) news.tell()
      },
      retake: bytes => void take(Math.max(0, bytes - exchange.answerHeld)),
      judge: (status, headers) => {
        const judge = judgeOf(exchange, answerHead(status, headers), demands, room)
        if (judge instanceof Refusal) this.#refusal = judge
        if (judge instanceof Whole) this.#whole = judge
        return judge
      },
      handOver: () => this.attempt.handOver(sink),
      abort: error => this.attempt.abort(error),
    })
  }
}
