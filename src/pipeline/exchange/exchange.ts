import type { Attributed } from '../../attribution/attribution.ts'
import { ANONYMOUS, type Identity } from '../../auth/keyring.ts'
import type { SeparateCredentials } from '../../auth/presented-keys.ts'
import type { GatewayError } from '../../base/errors.ts'
import { MemoryBudget } from '../../base/memory-budget.ts'
import type { Route, Target } from '../../config/types.ts'
import type { LedgerEntry } from '../../ledger/entry.ts'
import type { LimitReason, Reservation } from '../../limits/types.ts'
import type { PriceBook, QuotedPrice } from '../../pricing/prices.ts'
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

export interface ClientDelivery {
  /** HTTP status; 499 = the client disconnected before any status, 0 = none yet. */
  readonly status: number
  readonly delivered: boolean
  /** Bytes of the body written to the client's connection. */
  readonly bytes: number
  /** When the first byte of the body arrived, on the monotonic clock; 0 = not yet. */
  readonly firstByteAt: number
}

const NOTHING_SENT: ClientDelivery = { status: 0, delivered: false, bytes: 0, firstByteAt: 0 }

export interface Stoppable {
  stop(reason: GatewayError): void
}

export interface RequestContent {
  /** The name as the client wrote it. */
  readonly model: string | null
  readonly stream: boolean
  readonly body: InspectedBody | null
}

export interface Plan {
  readonly route: Route
  /** The targets in the order of the attempts; at least one. */
  readonly order: readonly Target[]
  /** All targets that the request can reach, the first of `order` first. */
  readonly reachable: readonly Target[]
  /** The prices of `reachable`; null = unpriced. */
  readonly quotes: readonly (QuotedPrice | null)[]
  /** Milliseconds without a response after which another target is asked too; null = never. */
  readonly hedgeAfter: number | null
}

export interface Reserved {
  /** null = the key has no limits. */
  readonly reservation: Reservation | null
  /** Tokens of the client's own body; null = unknown. */
  readonly estimatedInput: number | null
  /** Tokens of input and output, at most. */
  readonly tokens: number
}

/** A request after the phases accept, identify and classify. */
export type LocatedRequest = Pick<Exchange, 'target' | 'classified' | 'identity' | 'request'>

const NO_CONTENT: RequestContent = { model: null, stream: false, body: null }
const EMPTY_TARGET: RequestTarget = { path: '/', query: '', queryKey: null, isGoogles: false }
const NO_ENDPOINT = classifyPath(EMPTY_TARGET.path)

/** A request from its first byte to its ledger row. Each phase writes its part, and later phases read it. */
class WritableExchange {
  readonly id: string
  readonly req: ClientRequest
  readonly res: ClientResponse
  /** On the monotonic clock, ms. */
  readonly startedAt: number
  /** On the wall clock, ms since 1970. */
  readonly startedWall: number
  /** The peer, or the address reported by a trusted proxy. */
  readonly clientAddress: string
  /** The peer's address if it is a trusted proxy. */
  readonly trustedPeer: string | null
  /** The client sends its body only after `100 Continue`. */
  readonly awaitsContinue: boolean
  /** null = not traced. */
  readonly trace: RequestTrace | null
  /** The ids that each log line contains. */
  readonly logIds: { readonly request: string, readonly trace_id?: string, readonly span_id?: string }
  readonly isManagement: boolean
  /** The console has authenticated the request; null = `identify` reads the credential. */
  readonly preAuthenticated: Identity | null
  /** A user of the console who may see the upstreams. */
  get isOperator(): boolean {
    return this.preAuthenticated?.unlimited ?? false
  }

  readonly memory: ExchangeMemory

  /** The request target without the keys that the client presented. Written by `accept`. */
  target: RequestTarget = EMPTY_TARGET
  /** Written by `accept`. */
  classified: Classified = NO_ENDPOINT
  /** What is looked up as a key. Written by `accept`. */
  presentedKeys: readonly string[] = []
  /** The keys and own credentials that the client presented, valid or not: not sent upstream. Written by `accept`. */
  presentedSecrets: readonly string[] = []
  /** null = all presented keys are the gateway's. Written by `accept`. */
  credentials: SeparateCredentials | null = null
  /** Written by `pipeline.ts`. */
  identity: Identity = ANONYMOUS
  /** Written by `pipeline.ts`. */
  request: RequestContent = NO_CONTENT
  /** null = the configuration attributes nothing, or the request was refused before. Written by `attribute`. */
  attributed: Attributed | null = null
  /** Bytes of the body, and of a WebSocket that has ended. Written by `classify` and `pipeline.ts`. */
  bytesIn = 0
  /** Milliseconds until the client had sent its body. Written by `classify`. */
  bodyWaitMs = 0
  /** Written by `pipeline.ts`. */
  plan: Plan | null = null
  /** Written by `reserve`. */
  reserved: Reserved | null = null
  /** The limit that refused the request. Written by `reserve` and by `priceable.ts`. */
  refusedBy: LimitReason | null = null
  /** null = there is no ledger. Written by `reserve`. */
  ledgerEntry: LedgerEntry | null = null
  /** null = bodies are not kept. Written by `startRecording`. */
  recording: ResponseRecorder | null = null
  /** `at`: on the monotonic clock, before the cost is counted. null = running. Written by `settle`. */
  ended: { readonly failure: GatewayError | null, readonly at: number } | null = null

  /** Attempts in the order of their start, but the responding attempt is last. Written by `begin` and `serveAsLast`. */
  attempts: readonly UpstreamAttempt[] = []
  /** The attempt whose response the client gets; until then the latest. Written by `begin`, `serve` and `serveAsLast`. */
  servedBy: UpstreamAttempt | null = null
  /** Written by `deliverBy`. */
  delivery: ClientDelivery = NOTHING_SENT
  /** Milliseconds that the gateway itself added before the first byte; null = no first byte. Written by `setOverhead`. */
  overheadMs: number | null = null
  /** Why the exchange was ended from outside: the client disconnected, or a deadline passed. Written by `stop`. */
  stopped: GatewayError | null = null
  #stoppable: Stoppable | null = null

  constructor(init: ExchangeInit) {
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

  /** Attempts that another one continued or replaced: each is billed separately. */
  get interruptedAttempts(): readonly UpstreamAttempt[] {
    return this.attempts.filter(({ share }) => share !== null)
  }

  /** The response to settle, without the parts of interrupted attempts; null = nothing. */
  get response(): MeteredResponse | null {
    const { servedBy } = this
    return servedBy === null || servedBy.share !== null ? null : servedBy.metered
  }

  /** The price at the target of the current attempt; null = unpriced. */
  get quoted(): QuotedPrice | null {
    return this.servedBy === null ? this.plan?.quotes[0] ?? null : this.servedBy.quoted
  }

  /** Tokens of the request as sent upstream; null = unknown. */
  get estimatedInput(): number | null {
    return this.servedBy === null ? this.reserved?.estimatedInput ?? null : this.servedBy.estimatedInput
  }

  /** The body that the upstream reads; null = none that can be read. */
  get prompt(): Buffer | null {
    return this.servedBy?.sentBody ?? this.request.body?.bytes ?? null
  }

  /** The upstream's endpoint if the request is translated. */
  get meteredEndpoint(): Endpoint {
    return this.servedBy?.endpoint ?? this.classified.endpoint
  }

  /** Ends the exchange from outside, in any phase. The request to the upstream is aborted at once. */
  stop(reason: GatewayError): void {
    if (this.stopped !== null) return
    this.stopped = reason
    this.#stoppable?.stop(reason)
  }

  /** Sets what `stop` ends from now on: the reading of the body, or the attempts; null = nothing. */
  stopBy(stoppable: Stoppable | null): void {
    this.#stoppable = stoppable
  }

  begin(attempt: UpstreamAttempt): void {
    this.attempts = [...this.attempts, attempt]
    this.servedBy = attempt
  }

  /** The client gets the response of this attempt; null = of none. */
  serve(attempt: UpstreamAttempt | null): void {
    this.servedBy = attempt
  }

  /** Of attempts that ran at the same time, this one responds to the client: it becomes the last. */
  serveAsLast(attempt: UpstreamAttempt): void {
    const at = this.attempts.indexOf(attempt)
    if (at < this.attempts.length - 1) {
      this.attempts = [...this.attempts.toSpliced(at, 1), attempt]
      this.trace?.moveAttemptToEnd(at)
    }
    this.servedBy = attempt
  }

  deliverBy(delivery: ClientDelivery): void {
    this.delivery = delivery
  }

  setOverhead(ms: number): void {
    this.overheadMs = ms
  }

  /** A due ledger checkpoint may refer to the exchange for longer. */
  releaseBody(): void {
    this.request = { ...this.request, body: null }
    for (const attempt of this.attempts) attempt.releaseBody()
  }

  /** Call it after every await: the client may have disconnected. @throws GatewayError `stopped` */
  throwIfStopped(): void {
    if (this.stopped !== null) throw this.stopped
  }
}

type ExchangeInit =
  Pick<WritableExchange, 'id' | 'req' | 'res' | 'startedAt' | 'startedWall' | 'clientAddress' | 'trustedPeer' | 'awaitsContinue'> &
  Partial<Pick<WritableExchange, 'isManagement' | 'preAuthenticated' | 'trace' | 'memory'>>

/** An exchange for reading. The methods change only what may change at any time. */
export type Exchange = Readonly<WritableExchange>
export const Exchange = WritableExchange

/** An exchange for a phase that writes these fields. */
export type Writes<field extends keyof Exchange> = Omit<Exchange, field> & Pick<WritableExchange, field>

export function wantsEventStream({ request: { stream }, classified, target }: Exchange): boolean {
  if (!classified.endpoint.streamsByPath) return stream
  return new URLSearchParams(target.query).get('alt') === 'sse'
}

/** The upstream generates a background response even if the client disconnects. */
export function isBackgroundRequest({ request: { body } }: Exchange): boolean {
  return body?.json?.fields.get('background')?.at(-1)?.type === 'true'
}

/** Does the request fetch something that exists, rather than call a model? */
export function isRead({ req, request: { model } }: Exchange): boolean {
  return model === null && (req.method === 'GET' || req.method === 'HEAD')
}

/** Does the request call a model, judging by its body and path? */
export function callsModel({ req, request: { model }, target }: Exchange): boolean {
  return model !== null || (req.method === 'POST' && isModelCallPath(target.path))
}

/** A stream was requested, and the head does not show whether the response is a stream. */
export function isFormatUnknown({ request: { stream } }: Exchange, { status, contentType }: ResponseHead): boolean {
  return stream && contentType === '' && status !== 204
}

/** The price of the target's model; null = unpriced, or there is no model. */
export function quote(
  prices: PriceBook, { request: { model: named }, startedWall }: Exchange, { model: own, upstream: { url } }: Target,
): QuotedPrice | null {
  const model = own ?? named
  return model === null ? null : prices.priceOf(url, model, new Date(startedWall), named ?? model)
}
