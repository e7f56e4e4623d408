import { ANONYMOUS } from '../auth/keyring.ts'
import type { Identity } from '../auth/keyring.ts'
import type { GatewayError } from '../base/errors.ts'
import type { Route, Target } from '../config/types.ts'
import type { LedgerEntry } from '../ledger/entry.ts'
import type { Reservation } from '../limits/types.ts'
import type { InterruptedUsage } from '../pricing/interrupted-usage.ts'
import type { QuotedPrice } from '../pricing/prices.ts'
import type { MeteredResponse, SettledCost } from '../pricing/settle-usage.ts'
import { classifyPath, isModelCallPath } from '../protocols/endpoint.ts'
import type { InspectedBody } from '../protocols/shared/inspect.ts'
import type { Classified } from '../protocols/shared/protocol.ts'
import type { RequestTarget } from '../protocols/shared/target.ts'
import type { ClientRequest, ClientResponse } from '../proxy/client.ts'
import type { ResponseHead } from '../proxy/response-head.ts'
import type { ResponseRecorder } from '../transcripts/recording.ts'

/** One try at one upstream, for the log and the ledger. */
export interface AttemptRecord {
  readonly upstream: string
  readonly model: string | null
  /**
   * `ok`, the code of the error that ended it, or `error_answer`: the
   * upstream answered with an error of its own.
   */
  outcome: string
  /** Milliseconds that it took. */
  ms: number
  /** Milliseconds from the start of the request to its own. */
  readonly atMs: number
  /** The upstream's HTTP status; absent where no answer came. */
  status?: number
  /** The word with which the upstream's error named itself, where it was one: `rate_limit_exceeded`. */
  said?: string
  /**
   * Where several attempts made up the answer: what this one used, and
   * what that cost in USD; absent = unknown.
   */
  inputTokens?: number
  outputTokens?: number
  costUsd?: string
}

/** The first part of an answer that another upstream went on with. */
export interface EarlierResponse {
  readonly response: MeteredResponse
  readonly quoted: QuotedPrice | null
  readonly record: AttemptRecord
  /** Tokens of its request, as estimated when it went up. */
  readonly estimatedInput: number | null
  /** What it used. */
  readonly share: InterruptedUsage
}

/** What a session is known to have used by now, without counting. */
export interface SessionUsage extends SettledCost {
  readonly quoted: QuotedPrice | null
  /** As the upstream has named it; null = it has not. */
  readonly model: string | null
}

/** What is said over a WebSocket, and what it costs. */
export interface Session {
  /** null = nothing was asked for. */
  usageSoFar(): SessionUsage | null
  /** What of that is known, though another part is not: limits count that. */
  readonly knownUsage: { readonly tokens: number, readonly pico: bigint }
  /** Takes the next bytes that the upstream says, and those that the client says. */
  receiveFromUpstream(chunk: Buffer): void
  receiveFromClient(chunk: Buffer): void
  /**
   * No more will come.
   *
   * @param endedBy whose connection was the first to end
   * @returns who broke off what was asked for; null = nothing was under way
   */
  connectionClosed(endedBy: 'client' | 'upstream' | null): Promise<GatewayError | null>
  /** The upstream has hung up for what the client had said. */
  readonly isClientFault: boolean
  /** No more will come. @returns what all of it costs, as it ended; null = in order */
  end(failure: GatewayError | null): Promise<SettledCost>
}

/** How far the response has come on its way to the client. */
export interface ClientDelivery {
  /** The response has left, whole. */
  readonly delivered: boolean
  /** Bytes of the body that the client's connection was given. */
  readonly bytes: number
  /** On the monotonic clock, when the first byte of the body came; 0 before. */
  readonly firstByteAt: number
}

/** What can be ended from outside. */
export interface Stoppable {
  stop(reason: GatewayError): void
}

/** What is asked, as far as the body and the path tell. */
export interface RequestContent {
  /** As the client wrote it. */
  readonly model: string | null
  readonly stream: boolean
  readonly body: InspectedBody | null
}

/** Where the request may go, and what that costs. */
export interface Plan {
  readonly route: Route
  /** The candidates, in the order in which they are to be tried; at least one. */
  readonly order: readonly Target[]
  /** Prices of all targets that the request may reach, the first candidate's first; null = unpriced. */
  readonly quotes: readonly (QuotedPrice | null)[]
}

/** What is set aside for the request, and its place in the ledger. */
export interface Reserved {
  /** null = no limit holds for the key. */
  readonly reservation: Reservation | null
  /** null = there is no ledger. */
  readonly ledgerEntry: LedgerEntry | null
  /** Tokens of the request as the client sent it; null = the body does not tell. */
  readonly estimatedInput: number | null
}

/** A request of which is known who asks for what. */
export type LocatedRequest = Pick<Exchange, 'target' | 'classified' | 'identity' | 'request'>

const EMPTY_REQUEST: RequestContent = { model: null, stream: false, body: null }
const EMPTY_TARGET: RequestTarget = { path: '/', query: '', queryKey: null, isGoogles: false }
const NO_ENDPOINT = classifyPath(EMPTY_TARGET.path)

/** A request from its first byte to its ledger row: each phase of the pipeline fills in its part. */
export class Exchange {
  readonly id: string
  readonly req: ClientRequest
  readonly res: ClientResponse
  /** On the monotonic clock, milliseconds. */
  readonly startedAt: number
  /** On the wall clock, milliseconds since 1970. */
  readonly startedWall: number
  /** The client's address: the peer's, or what a trusted proxy says. */
  readonly clientAddress: string
  /** The peer's address if it is a trusted proxy. */
  readonly trustedPeer: string | null
  /** The client holds its body back until it is told to go on (`Expect: 100-continue`). */
  readonly awaitsContinue: boolean

  /** It came by the management listener. */
  isManagement = false
  target: RequestTarget = EMPTY_TARGET
  classified: Classified = NO_ENDPOINT
  identity: Identity = ANONYMOUS
  /** Whose request it is, where that was found out before; null = its credential tells. */
  preAuthenticated: Identity | null = null
  /** Written by `classify`. */
  request: RequestContent = EMPTY_REQUEST
  /** Written by `route`. */
  plan: Plan | null = null
  /** Written by `reserve`. */
  reserved: Reserved | null = null
  /** Which of the route's targets serves it, or was the last that was asked to. */
  candidate: Target | null = null
  readonly attempts: AttemptRecord[] = []
  /** What the candidate's model costs; null = nobody knows. */
  quoted: QuotedPrice | null = null
  /** Tokens of the request, as estimated when it went up; null = the body does not tell. */
  estimatedInput: number | null = null
  /** The body of one that goes on with an answer, whose text is in it; null = as the client sent it. */
  continuationBody: Buffer | null = null
  /** Answers that broke under way and were continued by another upstream: each is billed for itself. */
  readonly earlierResponses: EarlierResponse[] = []
  /** What there is of a successful answer to settle by; null = none came. */
  response: MeteredResponse | null = null
  /** The same of one that is kept back: it can still be replaced, and costs nothing then. null = none can be. */
  heldResponse: (() => MeteredResponse | null) | null = null
  /** What the error says that the client gets of an upstream, decompressed; null = it gets none. */
  upstreamErrorBody: Buffer | null = null
  /** What is said over a WebSocket, where that is read. */
  session: Session | null = null
  /** The content coding of an answer that is collected whole. */
  responseEncoding: string | null = null
  /** Nothing but its end was missing from the stream that broke, and the client got that: it has it whole. */
  completedByGateway = false
  /** The gateway asked for usage in the stream, and the client did not: it must not see that chunk. */
  hidesUsage = false

  /** Collects what the client is sent; null = its bodies are not kept. */
  recording: ResponseRecorder | null = null
  relay: ClientDelivery | null = null
  /** What runs at this moment, to be torn down; set while an upstream is at work. */
  underWay: Stoppable | null = null
  /** HTTP status sent; 499 when the client left before any. */
  status = 0
  /** On the monotonic clock, when the first byte of the answer's body came; 0 = none did. */
  firstByteAt = 0
  bytesIn = 0
  /** Bytes of its body that it holds in memory, and of an answer that is kept back. */
  bytesHeld = 0
  /** Bytes of its answer that are kept to be read at the end, as far as they count. */
  responseBytesHeld = 0
  bytesOut = 0
  /** How it ended, and when on the monotonic clock: to settle it is nobody's waiting. null while it runs. */
  ended: { readonly failure: GatewayError | null, readonly at: number } | null = null
  #stopped: GatewayError | null = null

  constructor(init: {
    id: string
    req: ClientRequest
    res: ClientResponse
    startedAt: number
    startedWall: number
    clientAddress: string
    trustedPeer: string | null
    awaitsContinue: boolean
  }) {
    this.id = init.id
    this.req = init.req
    this.res = init.res
    this.startedAt = init.startedAt
    this.startedWall = init.startedWall
    this.clientAddress = init.clientAddress
    this.trustedPeer = init.trustedPeer
    this.awaitsContinue = init.awaitsContinue
  }

  /** What the upstream reads, as far as it counts; null where there is no body to look at. */
  get prompt(): Buffer | null {
    return this.continuationBody ?? this.request.body?.bytes ?? null
  }

  /** Why it was stopped from outside: the client left, or a deadline passed. null = it was not. */
  get stopped(): GatewayError | null {
    return this.#stopped
  }

  /** Ends it from outside, in whatever phase it is: the upstream's side is torn down at once. */
  stop(reason: GatewayError): void {
    if (this.#stopped !== null) return
    this.#stopped = reason
    this.underWay?.stop(reason)
  }

  /** Lets go of the request's body, which counts no more; a draft that is due refers to it a while longer. */
  releaseBody(): void {
    this.request = { ...this.request, body: null }
    this.continuationBody = null
  }

  /**
   * To be called after every await: the client may have left meanwhile.
   *
   * @throws GatewayError the reason for which it was stopped
   */
  throwIfStopped(): void {
    if (this.#stopped !== null) throw this.#stopped
  }
}

/** Does the client expect an answer as Server-Sent Events? */
export function wantsEventStream({ request: { stream }, classified, target }: Exchange): boolean {
  if (!classified.endpoint.streamsByPath) return stream
  return new URLSearchParams(target.query).get('alt') === 'sse'
}

/** Does it ask for an answer that is made whoever waits for it? */
export function isBackgroundRequest({ request: { body } }: Exchange): boolean {
  return body?.json?.fields.get('background')?.at(-1)?.type === 'true'
}

/** Does it fetch what is there, rather than ask a model for it? */
export function isRead({ req, request: { model } }: Exchange): boolean {
  return model === null && (req.method === 'GET' || req.method === 'HEAD')
}

/** Does it ask a model for something, as far as its body and its path tell? */
export function callsModel({ req, request: { model }, target }: Exchange): boolean {
  return model !== null || (req.method === 'POST' && isModelCallPath(target.path))
}

/** A stream was asked for, and what came does not say what it is: a stream, or an answer in one piece. */
export function isFormatUnknown({ request: { stream } }: Exchange, { status, contentType }: ResponseHead): boolean {
  return stream && contentType === '' && status !== 204
}
