import type { Clock } from '../../base/clock.ts'
import type { GatewayError } from '../../base/errors.ts'
import type { Target } from '../../config/types.ts'
import type { Authorization } from '../../upstreams/credentials/credential.ts'
import type { AttemptRecord } from '../../ledger/row.ts'
import type { ActualUsage, Reservation } from '../../limits/types.ts'
import type { InterruptedUsage } from '../../pricing/interrupted-usage.ts'
import type { QuotedPrice } from '../../pricing/prices.ts'
import type { MeteredResponse } from '../../pricing/settle-usage.ts'
import type { SettledCost } from '../../pricing/settled-cost.ts'
import { EMPTY_REQUEST } from '../../protocols/neutral/request.ts'
import type { ResponseFactsReader } from '../../protocols/events/response-facts.ts'
import type { Endpoint } from '../../protocols/endpoint/protocol.ts'
import { estimateTokens } from '../../protocols/request/request-estimate.ts'
import type { TranslatedAttempt } from '../../protocols/translate.ts'
import type { HealthReporter } from '../../routing/circuit.ts'
import { Attempt, type CredentialUse } from '../../upstreams/attempt.ts'
import type { LiveUpstream } from '../../upstreams/live-upstreams.ts'

/** The record of a running attempt, whose fields can change. */
export type AttemptDraft = { -readonly [field in keyof AttemptRecord]: AttemptRecord[field] } & { readonly atMs: number }

export interface AttemptRequest {
  /** A translated body, or a body that requests the rest of a response; null = the client's body was sent. */
  readonly sentBody: Buffer | null
  /** The client must not get the usage event, because only the gateway requested usage. */
  readonly hidesUsage: boolean
  /** Client fields that were not sent upstream. */
  readonly dropped: readonly string[]
  /** null = the upstream speaks the client's protocol. */
  readonly translated: TranslatedAttempt | null
}

export interface ResponseContent {
  /** null = an error, or not billed. */
  readonly metered: MeteredResponse | null
  /** The coding of a whole body that is still compressed; null = not compressed. */
  readonly encoding: string | null
  /** The body of an error, decompressed; null = not an error. */
  readonly errorBody: Buffer | null
}

export interface SessionUsage extends SettledCost {
  readonly quoted: QuotedPrice | null
  /** The model that the upstream named. */
  readonly model: string | null
}

export interface Session {
  /** The usage so far, in which no tokens are counted; null = no response was requested. */
  usageSoFar(): SessionUsage | null
  /** The known part of the usage. Limits count it if another part is unknown. */
  readonly knownUsage: { readonly tokens: number, readonly pico: bigint }
  receiveFromUpstream(chunk: Buffer): void
  receiveFromClient(chunk: Buffer): void
  /** @param endedBy the side that ended the connection first @returns the error of an interrupted response; null = none was running */
  connectionClosed(endedBy: 'client' | 'upstream' | null): Promise<GatewayError | null>
  /** The upstream closed the connection because of what the client sent. */
  readonly isClientFault: boolean
  /** The part of the session's usage that the settled responses have not counted in the limits. */
  unsettled(used: ActualUsage): ActualUsage
  /** Settles all responses. @param failure null = the session ended properly */
  end(failure: GatewayError | null): Promise<SessionUsage>
}

/** No body arrived yet. */
export const NOT_DELIVERED: MeteredResponse = { kind: 'none', delivered: false }
/** A body arrived and is not kept. */
export const DELIVERED: MeteredResponse = { kind: 'none', delivered: true }

export interface UpstreamAttemptOptions {
  readonly target: Target
  readonly upstream: LiveUpstream
  readonly use: CredentialUse
  /** Credentials that the target refused for this request. */
  readonly refused: readonly Authorization[]
  readonly sent: AttemptRequest
  /** Estimated tokens of the body as the client sent it; null = unknown. */
  readonly ownInput: number | null
  /** The price of the target's model; null = unpriced. */
  readonly quoted: QuotedPrice | null
  readonly record: AttemptDraft
  readonly health: Pick<HealthReporter, keyof HealthReporter>
  /** null = the upstream has no limits. */
  readonly reservation: Reservation | null
  readonly clock: Clock
  /** On the monotonic clock, ms. */
  readonly startedAt: number
}

/** One attempt of an exchange at one target, over HTTP or a WebSocket. `recorder.ts` records how the attempt ends. */
export abstract class UpstreamAttempt extends Attempt {
  readonly target: Target
  readonly record: AttemptDraft
  readonly quoted: QuotedPrice | null
  readonly #ownInput: number | null
  /** Estimated tokens of `sentBody`; null = not estimated yet. */
  #sentInput: number | null = null
  readonly hidesUsage: boolean
  readonly health: UpstreamAttemptOptions['health']
  readonly reservation: Reservation | null
  /** null = not a WebSocket, not open, or not read. */
  session: Session | null = null
  /** The usage of an attempt that another attempt continues or replaces; null = no attempt does. */
  share: InterruptedUsage | null = null
  /** Facts of the response for the trace; null = no trace needs facts. */
  facts: ResponseFactsReader | null = null
  /** The client got an error of the upstream; null = not known yet. Written by `AttemptRecorder.ended`. */
  receivedError: boolean | null = null
  /** The gateway completed the response: only the protocol's end was missing. */
  completedByGateway = false
  /** The stream broke before the client had text of the response. */
  sentNoText = false
  readonly startedAt: number
  readonly #clock: Clock
  /** The endpoint at the upstream; null = the client's endpoint, because the request is not translated. */
  readonly endpoint: Endpoint | null
  /** null = the client's body was sent. Written by `releaseBody`. */
  sentBody: Buffer | null
  /** null = the upstream speaks the client's protocol. Written by `releaseBody`. */
  translated: TranslatedAttempt | null
  /** The response that the client gets; null = no response, or a response that is not billed. Written by `deliver` and `fail`. */
  response: ResponseContent | null = null
  /** The settlement basis of a response that the client does not get; null = not billed. */
  #abandoned: MeteredResponse | null = null

  constructor(options: UpstreamAttemptOptions) {
    super(options.upstream, options.use, options.refused)
    this.target = options.target
    this.record = options.record
    this.quoted = options.quoted
    this.#ownInput = options.ownInput
    this.hidesUsage = options.sent.hidesUsage
    this.health = options.health
    this.reservation = options.reservation
    this.#clock = options.clock
    this.startedAt = options.startedAt
    this.sentBody = options.sent.sentBody
    this.translated = options.sent.translated
    this.endpoint = this.translated?.endpoint ?? null
  }

  abstract stop(reason: GatewayError): void

  /** The upstream may bill the attempt: it got the request and has not refused it. */
  abstract readonly mayBeBilled: boolean

  /** The settlement basis if the client no longer waits for the response. */
  get abandonedResponse(): MeteredResponse {
    return NOT_DELIVERED
  }

  /** The held part of a response that the client does not get, as content to settle; null = nothing is held. */
  readHeld(): ResponseContent | null {
    return null
  }

  /** Estimated tokens of the request as it was sent, for an upstream that does not report them; null = unknown. */
  get estimatedInput(): number | null {
    if (this.sentBody !== null) this.#sentInput ??= estimateTokens(this.sentBody)
    return this.#sentInput ?? this.#ownInput
  }

  get elapsedMs(): number {
    return this.#clock.monotonic() - this.startedAt
  }

  /** null = no successful response arrived. */
  get metered(): MeteredResponse | null {
    return this.response?.metered ?? this.#abandoned
  }

  /** The held part of a response that the client gets only when it is complete; null = nothing is held. */
  get held(): MeteredResponse | null {
    return null
  }

  /** @param response null = not billed */
  deliver(response: ResponseContent | null): void {
    this.response = response
  }

  /** @param abandoned the settlement basis of a response that the client does not get but that may be billed; null = not billed */
  fail(abandoned: MeteredResponse | null): void {
    this.response = null
    this.#abandoned = abandoned
    if (abandoned !== null) this.reservation?.releaseConcurrency()
    else this.reservation?.release()
  }

  releaseBody(): void {
    this.sentBody = null
    if (this.translated) this.translated = { ...this.translated, request: EMPTY_REQUEST }
  }
}
