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

/** The record of an attempt while it is written. */
export type AttemptDraft = { -readonly [field in keyof AttemptRecord]: AttemptRecord[field] } & { readonly atMs: number }

export interface AttemptRequest {
  /** A translated body, or one that asks for the rest of a response; null = the client's own. */
  readonly sentBody: Buffer | null
  /** The gateway requested usage in the stream, and the client did not: the client must not see that event. */
  readonly hidesUsage: boolean
  /** Client fields that were not sent upstream. */
  readonly dropped: readonly string[]
  /** null = the upstream speaks the client's protocol. */
  readonly translated: TranslatedAttempt | null
}

export interface ResponseContent {
  /** null = an error, or not billed. */
  readonly metered: MeteredResponse | null
  /** The coding of a whole body that is still compressed. */
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
  /** The usage so far, without counting tokens; null = nothing was requested. */
  usageSoFar(): SessionUsage | null
  /** The known part of the usage, which limits count if another part is unknown. */
  readonly knownUsage: { readonly tokens: number, readonly pico: bigint }
  receiveFromUpstream(chunk: Buffer): void
  receiveFromClient(chunk: Buffer): void
  /** @param endedBy the side that ended first @returns the error of an interrupted response; null = no response was running */
  connectionClosed(endedBy: 'client' | 'upstream' | null): Promise<GatewayError | null>
  /** The upstream closed the connection because of what the client sent. */
  readonly isClientFault: boolean
  /** The usage of the session that its responses have not settled with the limits. */
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
  /** Estimated tokens of the client's own body; null = unknown. */
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

/** One attempt of an exchange at one target, over HTTP or a WebSocket. `recorder.ts` records how it ends. */
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
  /** The usage if another attempt continues or replaces the response; null = not the case. */
  share: InterruptedUsage | null = null
  /** null = no trace needs them. */
  facts: ResponseFactsReader | null = null
  /** The client got an error of the upstream; null = not known yet. Written by `AttemptRecorder.ended`. */
  receivedError: boolean | null = null
  /** Only the end of the protocol was missing, and the gateway sent it. */
  completedByGateway = false
  readonly startedAt: number
  readonly #clock: Clock
  /** The endpoint at the upstream; null = the client's. */
  readonly endpoint: Endpoint | null
  /** null = the client's own body was sent. Written by `releaseBody`. */
  sentBody: Buffer | null
  /** null = the upstream speaks the client's protocol. Written by `releaseBody`. */
  translated: TranslatedAttempt | null
  /** The response that goes to the client; null = none, or not billed. Written by `deliver` and `fail`. */
  response: ResponseContent | null = null
  /** What is billed although the client gets nothing; null = nothing. */
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

  /** The upstream may have begun to work, and has not refused the request. */
  abstract readonly mayBeBilled: boolean

  /** The settlement basis if the client no longer waits for the response. */
  get abandonedResponse(): MeteredResponse {
    return NOT_DELIVERED
  }

  /** Reads what is held of a response that does not go to the client; null = nothing is held. */
  readHeld(): ResponseContent | null {
    return null
  }

  /** Tokens of the request as it was sent, where the upstream does not report them; null = unknown. */
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

  /** What is held of a response that must be complete before the client gets it; null = nothing. */
  get held(): MeteredResponse | null {
    return null
  }

  /** @param response null = not billed */
  deliver(response: ResponseContent | null): void {
    this.response = response
  }

  /** @param abandoned the settlement basis if the client may be billed although nobody waits for the response; null = not billed */
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
