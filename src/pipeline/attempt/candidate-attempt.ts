import { GatewayError } from '../../base/errors.ts'
import type { Route, Target } from '../../config/types.ts'
import { clientReceivedError } from '../../context/error-response.ts'
import { wantsEventStream } from '../../context/exchange.ts'
import type { AttemptRecord, Exchange } from '../../context/exchange.ts'
import type { Gateway, LiveUpstream } from '../../context/gateway.ts'
import { LedgerCheckpoint } from '../../context/ledger-checkpoint.ts'
import type { MeteredResponse } from '../../pricing/settle-usage.ts'
import { errorIdentifier } from '../../protocols/shared/refusal.ts'
import type { RefusalReason } from '../../protocols/shared/refusal.ts'
import type { Edit } from '../../protocols/shared/splice.ts'
import { sameAddress } from '../../proxy/address.ts'
import { Attempt } from '../../proxy/attempt.ts'
import type { ResponseSink } from '../../proxy/attempt.ts'
import type { Deadlines } from '../../proxy/deadlines.ts'
import { headerValue } from '../../proxy/headers.ts'
import type { RawHeaders } from '../../proxy/headers.ts'
import { responseHead } from '../../proxy/response-head.ts'
import type { ResponseHead } from '../../proxy/response-head.ts'
import { candidateId } from '../../routing/candidate.ts'
import { isCredentialRefused, isFailure, isRetryableStatus } from '../../routing/failure.ts'
import type { HealthReporter } from '../../routing/health.ts'
import type { RelayEnd } from '../respond/relay.ts'
import { ErrorResponseClassifier, classifierFor } from '../respond/response-classifier.ts'
import type { ResponseRequirements } from '../respond/response-classifier.ts'
import { ResponseGate } from '../respond/response-gate.ts'
import type { HeldResponse } from '../respond/response-gate.ts'
import { responseMemoryFor } from '../respond/response-memory.ts'
import { WholeResponseClassifier } from '../respond/whole-response-classifier.ts'
import { outgoingRequest } from './outgoing-request.ts'
import { NO_REFUSAL_TARGETS } from './refusal-targets.ts'
import { requestedRetryDelay, decompressedBody } from './upstream-errors.ts'

/** Redirects by which the same is asked for at another address; 303 has something else read. */
const REDIRECT_STATUSES = new Set([301, 302, 307, 308])

/** How a try failed of which the client has seen nothing. */
export interface AttemptFailure {
  /** The row of the error table, or null where the upstream answered with an error of its own. */
  readonly error: GatewayError | null
  /** The upstream's, or null where no head came. */
  readonly status: number | null
  readonly headers: RawHeaders
  /** That answer of its own, where all of it is there. */
  readonly response: HeldResponse | null
  /** What that says, decompressed. */
  readonly said: Buffer | null
  /** Why it refused the request: with 401 or 403, or where the route names another target for that. */
  readonly reason: RefusalReason | null
}

export interface CandidateAttemptOptions {
  readonly candidate: Target
  readonly deadlines: Deadlines
  /** Where the answer goes. */
  readonly sink: ResponseSink
  /** What is asked of an answer that is kept back until then; null = it goes through as it comes. */
  readonly requirements: ResponseRequirements | null
  /** The upstream has begun a stream, and shows that it is alive, but not yet what it is. */
  onAlive(): void
  /** What becomes of a stream that breaks. */
  readonly resume: Route['resume']
  /** Edits of the request's body beside those that every request needs; null = none. */
  readonly edits: ((body: Buffer) => Edit[]) | null
}

/** One try at one candidate: its request, its place in the ledger, its bearing on the candidate's health. */
export class CandidateAttempt {
  readonly candidate: Target
  readonly attempt: Attempt
  readonly record: AttemptRecord
  readonly #healthReporter: HealthReporter
  readonly #gateway: Gateway
  readonly #exchange: Exchange
  readonly #startedAt: number
  /** Path and query at the upstream. */
  readonly #path: string
  /** No other can follow: what it says goes to the client. */
  readonly #isLast: boolean
  #gate: ResponseGate | null
  #errorClassifier: ErrorResponseClassifier | null = null
  /** Of an answer that is kept back until it is whole. */
  #wholeClassifier: WholeResponseClassifier | null = null

  constructor(gateway: Gateway, exchange: Exchange, options: CandidateAttemptOptions) {
    const { candidate, deadlines, sink, requirements: demands, edits } = options
    this.candidate = candidate
    this.#isLast = demands === null
    this.#gateway = gateway
    this.#exchange = exchange
    this.#startedAt = gateway.clock.monotonic()
    const upstream = gateway.upstreams.get(candidate.upstream.name) as LiveUpstream
    // Where the request cannot be made, there is no attempt.
    const request = outgoingRequest(exchange, upstream, candidate, edits)
    this.#path = upstream.prefix + request.path
    this.record = {
      upstream: upstream.config.name,
      model: candidate.model ?? exchange.request.model,
      outcome: 'ok',
      ms: 0,
      atMs: this.#startedAt - exchange.startedAt,
    }
    exchange.attempts.push(this.record)
    this.#gate = demands && this.#createGate(options, demands)
    this.attempt = new Attempt({
      transport: upstream.transport,
      upstreamUrl: upstream.url,
      request,
      clientResponse: exchange.res,
      deadlines,
      decompresses: options.resume !== 'off' && wantsEventStream(exchange),
      sinkFor: status => this.#gate ?? (isCredentialRefused(status) ? this.#createErrorGate(options) : sink),
    })
    this.#healthReporter = gateway.health.begin(candidateId(candidate, exchange.request.model))
  }

  /** Once a head has come: null when the answer goes to the sink; otherwise nothing of it did. */
  get failure(): Promise<AttemptFailure | null> | null {
    const verdict = this.#gate?.decision
    return verdict?.then(refused => refused && {
      ...refused,
      said: refused.response && decompressedBody(refused.response),
      reason: this.#errorClassifier?.reason ?? null,
    }) ?? null
  }

  /** What its answer lacked that was kept back and went to the client though it broke; null = none did. */
  get missingEnd(): Buffer | null {
    return this.#gate?.missingEnd ?? null
  }

  /** What came of its answer and was kept back, for good. */
  get heldBody(): Buffer | null {
    return this.#gate?.heldBody ?? null
  }

  /** What it would be settled by if it ended now, where it is kept back until it is whole; otherwise null. */
  get heldResponse(): MeteredResponse | null {
    if (this.#wholeClassifier === null || this.#gate === null) return null
    const { meter } = this.#wholeClassifier
    return meter ? { kind: 'stream', meter } : { kind: 'body', body: this.#gate.heldBody }
  }

  /**
   * Who follows a redirect to where the request went comes back here for ever, as at a vendor who wants
   * `https:` in the upstream's url.
   *
   * @returns what is wrong with that; null = the answer is another
   */
  selfRedirectError({ status, headers }: ResponseHead): GatewayError | null {
    if (!REDIRECT_STATUSES.has(status)) return null
    const location = headerValue(headers, 'location') ?? ''
    const same = sameAddress(location, this.candidate.upstream, this.#path)
    if (same === null) return null
    const cause = new Error(`${status} to ${same}`)
    return new GatewayError('upstream_invalid', 'the upstream redirects the request to itself', { cause })
  }

  /** Ends it from outside, as far as the client has seen nothing of it. */
  stop(reason: GatewayError): void {
    this.attempt.abort(reason)
    this.#gate?.stop(reason)
  }

  /** An answer has begun that is none of an error. */
  answered(): void {
    this.#healthReporter.responseStarted(this.#elapsedMs)
  }

  /** The client has seen nothing of it. */
  failed({ error, status, headers, said, reason }: AttemptFailure): void {
    const isRejected = this.#isLast && reason === null && status !== null && isCredentialRefused(status)
    this.#recordOutcome(error?.code ?? (isRejected ? 'upstream_rejected_key' : 'error_answer'), status)
    this.#recordErrorWord(said)
    // What is wrong with the request is nobody's fault there.
    const isFault = error
      ? error.source === 'upstream'
      : reason === null && status !== null && isFailure(status)
    if (isFault) this.#healthReporter.failed(requestedRetryDelay(headers, said, this.#gateway.clock.wall()))
    else this.#healthReporter.abandoned()
  }

  /** The client got the beginning of its answer, and is to get the rest from another. */
  interrupted(error: GatewayError, status: number): void {
    this.#recordOutcome(error.code, status)
    this.#healthReporter.failed(null)
  }

  /**
   * The client got its answer, to its end or not.
   *
   * @param head of the answer
   * @param flaw what the upstream left out at the end, though the client misses nothing
   */
  ended(end: RelayEnd, head: Pick<ResponseHead, 'status' | 'headers'>, flaw: GatewayError | null): void {
    const { status, headers } = head
    const { upstreamErrorBody: refusal } = this.#exchange
    const error = end ?? flaw
    const isError = clientReceivedError(this.#exchange)
    this.#recordOutcome(error?.code ?? (isError ? 'error_answer' : 'ok'), status)
    this.#recordErrorWord(refusal)
    if (error?.source === 'upstream') this.#healthReporter.failed(null)
    else if (error !== null) this.#healthReporter.abandoned()
    else if (!isError) this.#healthReporter.succeeded()
    else if (status < 400) this.#healthReporter.failed(null)
    else if (!isRetryableStatus(status)) this.#healthReporter.abandoned()
    else this.#healthReporter.failed(requestedRetryDelay(headers, refusal, this.#gateway.clock.wall()))
  }

  /** Nobody waits for it any more, however that came about; after an end of its own this does nothing. */
  abandon(): void {
    this.#healthReporter.abandoned()
  }

  #recordOutcome(outcome: string, status: number | null): void {
    this.record.ms = this.#elapsedMs
    this.record.outcome = outcome
    if (status !== null) this.record.status = status
  }

  /** The word with which the error names itself, for those who ask later why the request failed. */
  #recordErrorWord(said: Buffer | null): void {
    const word = said && errorIdentifier(said)
    if (word) this.record.said = word
  }

  /** Milliseconds since it began. */
  get #elapsedMs(): number {
    return this.#gateway.clock.monotonic() - this.#startedAt
  }

  /** What is wrong with the request is for the client, though no other candidate follows. */
  #createErrorGate(options: CandidateAttemptOptions): ResponseGate {
    const demands = { reasons: NO_REFUSAL_TARGETS, whole: false, begun: () => false }
    this.#gate = this.#createGate(options, demands)
    return this.#gate
  }

  #createGate({ deadlines, sink, onAlive }: CandidateAttemptOptions, demands: ResponseRequirements): ResponseGate {
    const exchange = this.#exchange
    const { config, sharedState: { bodyMemory: bodies } } = this.#gateway
    const room = responseMemoryFor(this.#gateway, exchange)
    const news = new LedgerCheckpoint(this.#gateway, exchange)
    const take = (bytes: number): boolean => {
      const isRoom = bodies.reserve(bytes, config.server.bodyMemory)
      if (isRoom) exchange.bytesHeld += bytes
      return isRoom
    }
    return new ResponseGate({
      clock: this.#gateway.clock,
      deadlines,
      sink,
      onAlive,
      reserve: take,
      release: bytes => {
        bodies.release(bytes)
        exchange.bytesHeld -= bytes
      },
      onHeld: () => {
        if (this.#wholeClassifier) news.schedule()
      },
      reserveAgain: bytes => void take(Math.max(0, bytes - exchange.responseBytesHeld)),
      classifierFor: (status, headers) => {
        const judge = classifierFor(exchange, responseHead(status, headers), demands, room)
        if (judge instanceof ErrorResponseClassifier) this.#errorClassifier = judge
        if (judge instanceof WholeResponseClassifier) this.#wholeClassifier = judge
        return judge
      },
      handOver: () => this.attempt.handOver(sink),
      abort: error => this.attempt.abort(error),
    })
  }
}
