import { ANONYMOUS } from '../../auth/keyring.ts'
import type { Identity } from '../../auth/keyring.ts'
import type { GatewayError } from '../../base/errors.ts'
import { MemoryBudget } from '../../base/memory-budget.ts'
import type { Route, Target } from '../../config/types.ts'
import type { LedgerEntry } from '../../ledger/entry.ts'
import type { LimitReason, Reservation } from '../../limits/types.ts'
import type { QuotedPrice } from '../../pricing/prices.ts'
import type { MeteredResponse } from '../../pricing/settle-usage.ts'
import { classifyPath, isModelCallPath } from '../../protocols/classify-path.ts'
import type { InspectedBody } from '../../protocols/request/inspect.ts'
import type { Classified, Endpoint } from '../../protocols/endpoint/protocol.ts'
import type { RequestTarget } from '../../protocols/request/target.ts'
import type { ClientRequest, ClientResponse } from '../../proxy/client/client.ts'
import type { ResponseHead } from '../../proxy/upstream/response-head.ts'
import type { RequestTrace } from '../../telemetry/tracing.ts'
import type { ResponseRecorder } from '../../transcripts/recording.ts'
import { ExchangeMemory } from './exchange-memory.ts'
import type { UpstreamAttempt } from './upstream-attempt.ts'

/** What was sent to the client so far. */
export interface ClientDelivery {
  /** HTTP status; 499 = the client disconnected before any status, 0 = none yet. */
  readonly status: number
  /** The whole response was sent. */
  readonly delivered: boolean
  /** Bytes of the body that were written to the client's connection. */
  readonly bytes: number
  /** When the first byte of the body arrived, on the monotonic clock; 0 = not yet. */
  readonly firstByteAt: number
}

const NOTHING_SENT: ClientDelivery = { status: 0, delivered: false, bytes: 0, firstByteAt: 0 }

/** Something that can be ended from outside. */
export interface Stoppable {
  stop(reason: GatewayError): void
}

/** What the client requests, by the body and the path. */
export interface RequestContent {
  /** As the client wrote it. */
  readonly model: string | null
  readonly stream: boolean
  readonly body: InspectedBody | null
}

/** Where the request may go, and at which prices. */
export interface Plan {
  readonly route: Route
  /** The targets in the order of the attempts; at least one. */
  readonly order: readonly Target[]
  /** All targets that the request can reach, the first of `order` first. */
  readonly reachable: readonly Target[]
  /** Their prices; null = unpriced. */
  readonly quotes: readonly (QuotedPrice | null)[]
  /** Milliseconds without a response after which another target is asked too; null = none is. */
  readonly hedgeAfter: number | null
}

/** The reservation of a request. */
export interface Reserved {
  /** null = the key has no limits. */
  readonly reservation: Reservation | null
  /** Tokens of the request as the client sent it; null = unknown. */
  readonly estimatedInput: number | null
  /** The most tokens that the request can use, input and output. */
  readonly tokens: number
}

/** A request after the phases accept, identify and classify. */
export type LocatedRequest = Pick<Exchange, 'target' | 'classified' | 'identity' | 'request'>

const NO_CONTENT: RequestContent = { model: null, stream: false, body: null }
const EMPTY_TARGET: RequestTarget = { path: '/', query: '', queryKey: null, isGoogles: false }
const NO_ENDPOINT = classifyPath(EMPTY_TARGET.path)

/**
 * A request from its first byte to its ledger row. Each phase of the pipeline writes its part, which later phases
 * read.
 */
class WritableExchange {
  readonly id: string
  readonly req: ClientRequest
  readonly res: ClientResponse
  /** On the monotonic clock, ms. */
  readonly startedAt: number
  /** On the wall clock, ms since 1970. */
  readonly startedWall: number
  /** The client's address: the peer's, or the one reported by a trusted proxy. */
  readonly clientAddress: string
  /** The peer's address if it is a trusted proxy. */
  readonly trustedPeer: string | null
  /** The client sends its body only after `100 Continue`. */
  readonly awaitsContinue: boolean
  /** null = not traced. */
  readonly trace: RequestTrace | null
  /** What each of its log lines contains: its id, and its span. */
  readonly logIds: { readonly request: string, readonly trace_id?: string, readonly span_id?: string }
  /** The request came over the management listener. */
  readonly isManagement: boolean
  /** Identity of a request that the console has authenticated; null = `identify` reads the credential. */
  readonly preAuthenticated: Identity | null
  /** The request comes from a user of the console who may see the upstreams. */
  get isOperator(): boolean {
    return this.preAuthenticated?.unlimited ?? false
  }

  /** Its memory for bodies. */
  readonly memory: ExchangeMemory

  /** The request target without the keys that the client presented. Written by `accept`. */
  target: RequestTarget = EMPTY_TARGET
  /** Written by `accept`. */
  classified: Classified = NO_ENDPOINT
  /** All keys that the client presented, valid or not: none is sent upstream. Written by `accept`. */
  presentedKeys: readonly string[] = []
  /** Result of `identify`. Written by `pipeline.ts`. */
  identity: Identity = ANONYMOUS
  /** Result of `classify`. Written by `pipeline.ts`. */
  request: RequestContent = NO_CONTENT
  /**
   * Bytes from the client: of its body, and of its WebSocket once that has ended. Written by `classify` and
   * `pipeline.ts`.
   */
  bytesIn = 0
  /** Milliseconds that the client took to send its body. Written by `classify`. */
  bodyWaitMs = 0
  /** Result of `plan`. Written by `pipeline.ts`. */
  plan: Plan | null = null
  /** Written by `reserve`. */
  reserved: Reserved | null = null
  /** The limit that refused the request; null = none. Written by `reserve` and by `priceable.ts`. */
  refusedBy: LimitReason | null = null
  /** Written by `reserve`; null = there is no ledger. */
  ledgerEntry: LedgerEntry | null = null
  /** Records what the client is sent; null = bodies are not kept. Written by `startRecording`. */
  recording: ResponseRecorder | null = null
  /**
   * How the exchange ended, and when on the monotonic clock, before its cost is counted; null = running. Written by
   * `settle`.
   */
  ended: { readonly failure: GatewayError | null, readonly at: number } | null = null

  /** In the order of their start, but the one that responds is last. Written by `begin` and `serveAsLast`. */
  attempts: readonly UpstreamAttempt[] = []
  /**
   * The attempt whose response the client gets, or the latest attempt as long as there is none; null = none. Written
   * by `begin`, `serve` and `serveAsLast`.
   */
  servedBy: UpstreamAttempt | null = null
  /** What was sent to the client so far. Written by `deliverBy`. */
  delivery: ClientDelivery = NOTHING_SENT
  /**
   * Milliseconds that the gateway itself added before the first byte; null = no first byte. Written by `setOverhead`.
   */
  overheadMs: number | null = null
  /**
   * Why the exchange was stopped from outside: the client disconnected, or a deadline passed; null = not stopped.
   * Written by `stop`.
   */
  stopped: GatewayError | null = null
  #stoppable: Stoppable | null = null

  constructor(init: {
    id: string
    req: ClientRequest
    res: ClientResponse
    startedAt: number
    startedWall: number
    clientAddress: string
    trustedPeer: string | null
    awaitsContinue: boolean
    isManagement?: boolean
    preAuthenticated?: Identity | null
    trace?: RequestTrace | null
    memory?: ExchangeMemory
  }) {
    this.id = init.id
    this.req = init.req
    this.res = init.res
    this.startedAt = init.startedAt
    this.startedWall = init.startedWall
    this.clientAddress = init.clientAddress
    this.trustedPeer = init.trustedPeer
    this.awaitsContinue = init.awaitsContinue
    this.isManagement = init.isManagement ?? false
    this.preAuthenticated = init.preAuthenticated ?? null
    const trace = this.trace = init.trace ?? null
    this.logIds = trace === null ? { request: init.id } : { request: init.id, trace_id: trace.traceId, span_id: trace.spanId }
    this.memory = init.memory ?? new ExchangeMemory(new MemoryBudget(), Infinity)
  }

  /**
   * Attempts that another one continued, or that were cancelled because another one responded: each is billed
   * separately.
   */
  get interruptedAttempts(): readonly UpstreamAttempt[] {
    return this.attempts.filter(({ share }) => share !== null)
  }

  /** What the response is settled by, without the parts of interrupted attempts; null = nothing. */
  get response(): MeteredResponse | null {
    const { servedBy } = this
    return servedBy === null || servedBy.share !== null ? null : servedBy.metered
  }

  /** The price of the model at the target of the current attempt; null = unpriced. */
  get quoted(): QuotedPrice | null {
    return this.servedBy === null ? this.plan?.quotes[0] ?? null : this.servedBy.quoted
  }

  /** Tokens of the request as it was sent upstream; null = unknown. */
  get estimatedInput(): number | null {
    return this.servedBy === null ? this.reserved?.estimatedInput ?? null : this.servedBy.estimatedInput
  }

  /** The body that the upstream reads; null = none that can be read. */
  get prompt(): Buffer | null {
    return this.servedBy?.sentBody ?? this.request.body?.bytes ?? null
  }

  /** The endpoint by which the response is metered: the upstream's if the request is translated. */
  get meteredEndpoint(): Endpoint {
    return this.servedBy?.endpoint ?? this.classified.endpoint
  }

  /**
   * Ends the exchange from outside, in any phase: `pipeline.ts` calls it when the client disconnects, `deadlines.ts` when
   * time is up. The request to the upstream is aborted at once (`forward.ts`).
   */
  stop(reason: GatewayError): void {
    if (this.stopped !== null) return
    this.stopped = reason
    this.#stoppable?.stop(reason)
  }

  /** Sets what `stop` ends from now on: the reading of the body, or the attempts; null = nothing. */
  stopBy(stoppable: Stoppable | null): void {
    this.#stoppable = stoppable
  }

  /** An attempt has begun. */
  begin(attempt: UpstreamAttempt): void {
    this.attempts = [...this.attempts, attempt]
    this.servedBy = attempt
  }

  /** The client gets the response of this attempt; null = of none. */
  serve(attempt: UpstreamAttempt | null): void {
    this.servedBy = attempt
  }

  /** Of attempts that ran at the same time, the client gets the response of this one: it becomes the last. */
  serveAsLast(attempt: UpstreamAttempt): void {
    const at = this.attempts.indexOf(attempt)
    if (at < this.attempts.length - 1) {
      this.attempts = [...this.attempts.toSpliced(at, 1), attempt]
      this.trace?.moveAttemptToEnd(at)
    }
    this.servedBy = attempt
  }

  /** Sets what sends the response: the relay, the tunnel, or the gateway itself. */
  deliverBy(delivery: ClientDelivery): void {
    this.delivery = delivery
  }

  /** @param ms that the gateway itself added before the first byte */
  setOverhead(ms: number): void {
    this.overheadMs = ms
  }

  /** Releases the request's body. A due ledger checkpoint may refer to the exchange for longer. */
  releaseBody(): void {
    this.request = { ...this.request, body: null }
    for (const attempt of this.attempts) attempt.releaseBody()
  }

  /**
   * Call it after every await: the client may have disconnected meanwhile.
   *
   * @throws GatewayError the reason for which the exchange was stopped
   */
  throwIfStopped(): void {
    if (this.stopped !== null) throw this.stopped
  }
}

/** An exchange for reading. Its methods change only what may change at any time. */
export type Exchange = Readonly<WritableExchange>
export const Exchange = WritableExchange

/** An exchange of which a phase writes these fields. */
export type Writes<field extends keyof Exchange> = Omit<Exchange, field> & Pick<WritableExchange, field>

/** Does the client expect the response as server-sent events? */
export function wantsEventStream({ request: { stream }, classified, target }: Exchange): boolean {
  if (!classified.endpoint.streamsByPath) return stream
  return new URLSearchParams(target.query).get('alt') === 'sse'
}

/** Does it request a response that the upstream generates even if the client disconnects? */
export function isBackgroundRequest({ request: { body } }: Exchange): boolean {
  return body?.json?.fields.get('background')?.at(-1)?.type === 'true'
}

/** Does it fetch something that exists, rather than call a model? */
export function isRead({ req, request: { model } }: Exchange): boolean {
  return model === null && (req.method === 'GET' || req.method === 'HEAD')
}

/** Does it call a model, judging by its body and path? */
export function callsModel({ req, request: { model }, target }: Exchange): boolean {
  return model !== null || (req.method === 'POST' && isModelCallPath(target.path))
}

/** A stream was requested, and the response does not show whether it is one. */
export function isFormatUnknown({ request: { stream } }: Exchange, { status, contentType }: ResponseHead): boolean {
  return stream && contentType === '' && status !== 204
}
