import type { Attributed } from '../../attribution/attribution.ts'
import { ANONYMOUS, type Identity } from '../../auth/keyring.ts'
import type { SeparateCredentials } from '../../auth/presented-keys.ts'
import type { GatewayError } from '../../base/errors.ts'
import { MemoryBudget } from '../../base/memory-budget.ts'
import type { Route, Target } from '../../config/types.ts'
import type { LedgerEntry } from '../../ledger/entry.ts'
import type { PolicyAction } from '../../ledger/row.ts'
import type { LimitReason, Reservation } from '../../limits/types.ts'
import type { HeaderChanges } from '../../policy/edits/header-edits.ts'
import type { LiveHook } from '../../policy/hooks/hook-set.ts'
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
  /** HTTP status; 499 = the client disconnected before it got a status; 0 = no status was sent yet. */
  readonly status: number
  readonly delivered: boolean
  /** Bytes of the body written to the client's connection. */
  readonly bytes: number
  /** When the first byte of the body arrived from the upstream, ms on the monotonic clock; 0 = not yet. */
  readonly firstByteAt: number
}

const NOTHING_SENT: ClientDelivery = { status: 0, delivered: false, bytes: 0, firstByteAt: 0 }

/** Whose limit has no room. */
export type QueueScope = 'key' | 'group' | 'upstream'

/** A wait for room that has ended. */
export interface QueueWait {
  readonly scope: QueueScope
  readonly ms: number
  /** The wait ended without room, or the queue was full. */
  readonly isRefused: boolean
}

/** A running wait for room. */
export interface RunningWait extends Pick<QueueWait, 'scope'> {
  readonly which: LimitReason
  readonly priority: number
  /** ms on the monotonic clock. */
  readonly since: number
  leave(): void
}

export interface Stoppable {
  stop(reason: GatewayError): void
}

export interface RequestContent {
  /** The model's name as the client wrote it; null = the request names no model. */
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
  /** Milliseconds without a response after which a second attempt starts at another target; null = never. */
  readonly hedgeAfter: number | null
}

export interface Reserved {
  /** null = the key has no limits. */
  readonly reservation: Reservation | null
  /** Tokens of the body as the client sent it; null = unknown. */
  readonly estimatedInput: number | null
  /** Tokens of input and output, at most. */
  readonly tokens: number
}

/** A request after the phases accept, identify and classify. */
export type LocatedRequest = Pick<Exchange, 'target' | 'classified' | 'identity' | 'request'>

const NO_WAITS: readonly QueueWait[] = []
const NO_CONTENT: RequestContent = { model: null, stream: false, body: null }
const EMPTY_TARGET: RequestTarget = { path: '/', query: '', queryKey: null, isGoogles: false }
const NO_ENDPOINT = classifyPath(EMPTY_TARGET.path)

/** A request from its first byte to its ledger row. Each phase writes its part, and later phases read it. */
class WritableExchange {
  readonly id: string
  readonly req: ClientRequest
  readonly res: ClientResponse
  /** Milliseconds on the monotonic clock. */
  readonly startedAt: number
  /** Milliseconds since 1970, on the wall clock. */
  readonly startedWall: number
  /** The peer's address, or the address that a trusted proxy reports. */
  readonly clientAddress: string
  /** The peer's address if it is a trusted proxy. */
  readonly trustedPeer: string | null
  /** The client sends its body only after `100 Continue`. */
  readonly awaitsContinue: boolean
  /** null = not traced. */
  readonly trace: RequestTrace | null
  /** The ids that each log line about the exchange contains. */
  readonly logIds: { readonly request: string, readonly trace_id?: string, readonly span_id?: string }
  readonly isManagement: boolean
  /** The identity of a request that the console has authenticated; null = `identify` reads the key. */
  readonly preAuthenticated: Identity | null
  /** The request comes from a user of the console who may see the upstreams. */
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
  /** Bytes that the client sent: of the body, or on a WebSocket that has ended. Written by `classify` and `pipeline.ts`. */
  bytesIn = 0
  /** Milliseconds that `classify` waited for the body. Written by `classify`. */
  bodyWaitMs = 0
  /** Written by `pipeline.ts`. */
  plan: Plan | null = null
  /** What rules did with the request; null = nothing. Written by `runChecks` and `askHooks`. */
  policy: readonly PolicyAction[] | null = null
  /** Changes of headers; null = none. Written by `editRequest`. */
  edits: HeaderChanges | null = null
  /** The hooks of the request; null = none. Written by `askHooks`. */
  hooks: readonly LiveHook[] | null = null
  /** Written by `reserve`. */
  reserved: Reserved | null = null
  /** The limit that refused the request. Written by `reserve` and by `priceable.ts`. */
  refusedBy: LimitReason | null = null
  /** null = there is no ledger. Written by `reserve`. */
  ledgerEntry: LedgerEntry | null = null
  /** null = bodies are not kept. Written by `startRecording`. */
  recording: ResponseRecorder | null = null
  /** `at`: ms on the monotonic clock, before tokens are counted. null = running. Written by `settle`. */
  ended: { readonly failure: GatewayError | null, readonly at: number } | null = null

  /** Attempts in the order of their start, except that `serveAsLast` moves an attempt to the end. Written by `begin` and `serveAsLast`. */
  attempts: readonly UpstreamAttempt[] = []
  /** The attempt whose response the client gets; before a response, the latest attempt. Written by `begin`, `serve` and `serveAsLast`. */
  servedBy: UpstreamAttempt | null = null
  /** Written by `deliverBy`. */
  delivery: ClientDelivery = NOTHING_SENT
  /** Milliseconds that the gateway itself added before the first byte; null = no first byte. Written by `setOverhead`. */
  overheadMs: number | null = null
  /** Why the exchange must end early, for example `client_gone` or a deadline; null = not stopped. Written by `stop`. */
  stopped: GatewayError | null = null
  /** Waits for room in the limits, then reserves; null = nothing to wait for. Written by `reserve`. */
  pendingRoom: (() => Promise<void>) | null = null
  /** null = the request does not wait in a queue. Written by `waitForRoom`. */
  waiting: RunningWait | null = null
  /** The ended waits. Written by `waitForRoom`. */
  queueWaits: readonly QueueWait[] = NO_WAITS
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

  /** The attempts that another attempt continued or replaced. Each of them is billed separately. */
  get interruptedAttempts(): readonly UpstreamAttempt[] {
    return this.attempts.filter(({ share }) => share !== null)
  }

  /** The response to settle, without the parts of interrupted attempts; null = there is no response to settle. */
  get response(): MeteredResponse | null {
    const { servedBy } = this
    return servedBy === null || servedBy.share !== null ? null : servedBy.metered
  }

  /** The price at the target of `servedBy` or, before any attempt, of the first target; null = unpriced. */
  get quoted(): QuotedPrice | null {
    return this.servedBy === null ? this.plan?.quotes[0] ?? null : this.servedBy.quoted
  }

  /** Estimated tokens of the request as it was sent upstream; null = unknown. */
  get estimatedInput(): number | null {
    return this.servedBy === null ? this.reserved?.estimatedInput ?? null : this.servedBy.estimatedInput
  }

  /** The body that was sent upstream, decompressed; null = there is no body, or the gateway cannot read it. */
  get prompt(): Buffer | null {
    return this.servedBy?.sentBody ?? this.request.body?.bytes ?? null
  }

  /** The endpoint that defines the format of the response: the upstream's if the request is translated, otherwise the client's. */
  get meteredEndpoint(): Endpoint {
    return this.servedBy?.endpoint ?? this.classified.endpoint
  }

  /** Ends the exchange early, in any phase. A running request to the upstream is aborted at once. */
  stop(reason: GatewayError): void {
    if (this.stopped !== null) return
    this.stopped = reason
    this.#stoppable?.stop(reason)
    this.waiting?.leave()
  }

  /** @param stoppable what `stop` stops from now on: the reading of the body, or the attempts; null = nothing */
  stopBy(stoppable: Stoppable | null): void {
    this.#stoppable = stoppable
  }

  begin(attempt: UpstreamAttempt): void {
    this.attempts = [...this.attempts, attempt]
    this.servedBy = attempt
  }

  /** Call this when the client gets the response of `attempt`. @param attempt null = the gateway itself responds */
  serve(attempt: UpstreamAttempt | null): void {
    this.servedBy = attempt
  }

  /** Call this when the client gets the response of `attempt`, which ran at the same time as another. Moves `attempt` to the end. */
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

  /** Frees the bodies, because a scheduled ledger checkpoint may refer to the exchange after its end. */
  releaseBody(): void {
    this.request = { ...this.request, body: null }
    for (const attempt of this.attempts) attempt.releaseBody()
  }

  /** Call this after every await, because the client may have disconnected meanwhile. @throws GatewayError `stopped` */
  throwIfStopped(): void {
    if (this.stopped !== null) throw this.stopped
  }
}

type ExchangeInit =
  Pick<WritableExchange, 'id' | 'req' | 'res' | 'startedAt' | 'startedWall' | 'clientAddress' | 'trustedPeer' | 'awaitsContinue'> &
  Partial<Pick<WritableExchange, 'isManagement' | 'preAuthenticated' | 'trace' | 'memory'>>

/** An exchange whose fields a phase can only read. Any phase may call the methods, which change fields. */
export type Exchange = Readonly<WritableExchange>
export const Exchange = WritableExchange

/** An exchange in which a phase can write the fields `field`. */
export type Writes<field extends keyof Exchange> = Omit<Exchange, field> & Pick<WritableExchange, field>

export function wantsEventStream({ request: { stream }, classified, target }: Exchange): boolean {
  if (!classified.endpoint.streamsByPath) return stream
  return new URLSearchParams(target.query).get('alt') === 'sse'
}

/** The upstream generates a background response even if the client disconnects. */
export function isBackgroundRequest({ request: { body } }: Exchange): boolean {
  return body?.json?.fields.get('background')?.at(-1)?.type === 'true'
}

/** @returns true = the request reads something that exists, and does not call a model */
export function isRead({ req, request: { model } }: Exchange): boolean {
  return model === null && (req.method === 'GET' || req.method === 'HEAD')
}

/** @returns true = the request names a model, or its method and path are those of a call of a model */
export function callsModel({ req, request: { model }, target }: Exchange): boolean {
  return model !== null || (req.method === 'POST' && isModelCallPath(target.path))
}

/** @returns true = the request asks for a stream, and the response's head does not show whether the response is a stream */
export function isFormatUnknown({ request: { stream } }: Exchange, { status, contentType }: ResponseHead): boolean {
  return stream && contentType === '' && status !== 204
}

/** The price of the model that the target uses; null = unpriced, or no model is named. */
export function quote(
  prices: PriceBook, { request: { model: named }, startedWall }: Exchange, { model: own, upstream: { url } }: Target,
): QuotedPrice | null {
  const model = own ?? named
  return model === null ? null : prices.priceOf(url, model, new Date(startedWall), named ?? model)
}
