import type { Clock } from '../base/clock.ts'
import type { GatewayError } from '../base/errors.ts'
import type { Target } from '../config/types.ts'
import type { Authorization } from '../credentials/credential.ts'
import type { AttemptRecord } from '../ledger/row.ts'
import type { Reservation } from '../limits/types.ts'
import type { InterruptedUsage } from '../pricing/interrupted-usage.ts'
import type { QuotedPrice } from '../pricing/prices.ts'
import type { MeteredResponse } from '../pricing/settle-usage.ts'
import type { SettledCost } from '../pricing/settled-cost.ts'
import { EMPTY_REQUEST } from '../protocols/neutral/request.ts'
import type { ResponseFactsReader } from '../protocols/shared/response-facts.ts'
import type { Endpoint } from '../protocols/shared/protocol.ts'
import type { TranslatedAttempt } from '../protocols/translate.ts'
import type { HealthReporter } from '../routing/health-reporter.ts'
import { Attempt } from './attempt.ts'
import type { CredentialUse } from './attempt.ts'
import type { LiveUpstream } from './live-upstreams.ts'

/** One attempt as the ledger and the log have it, while it is written. */
export type AttemptDraft = { -readonly [field in keyof AttemptRecord]: AttemptRecord[field] } & { readonly atMs: number }

/** What differs between the requests that an exchange sends to its targets. */
export interface AttemptRequest {
  /** The body that was sent where it is not the client's own: it is translated, or asks for the rest of a response. */
  readonly sentBody: Buffer | null
  /** Tokens of the request, as estimated before it was sent; null = the body does not tell. */
  readonly estimatedInput: number | null
  /** The gateway asked for usage in the stream, and the client did not: it must not see that event. */
  readonly hidesUsage: boolean
  /** The client's fields that the upstream does not get. */
  readonly dropped: readonly string[]
  /** null = the upstream speaks the client's protocol. */
  readonly translated: TranslatedAttempt | null
}

/** What a response is settled by. */
export interface ResponseContent {
  /** null = nothing: it is an error, or not billed. */
  readonly metered: MeteredResponse | null
  /** The content coding of a whole body that is still compressed; null = it is plain. */
  readonly encoding: string | null
  /** The body of an error, decompressed; null = it is no error. */
  readonly errorBody: Buffer | null
}

/** What a session cost, and by which price. */
export interface SessionUsage extends SettledCost {
  readonly quoted: QuotedPrice | null
  /** As the upstream named it; null = it did not. */
  readonly model: string | null
}

/** The messages of a WebSocket, and what they cost. */
export interface Session {
  /** Without counting; null = nothing was requested. */
  usageSoFar(): SessionUsage | null
  /** The known part where another part is unknown: limits count that. */
  readonly knownUsage: { readonly tokens: number, readonly pico: bigint }
  receiveFromUpstream(chunk: Buffer): void
  receiveFromClient(chunk: Buffer): void
  /**
   * No more bytes will come.
   *
   * @param endedBy whose connection was the first to end
   * @returns who interrupted a response; null = none was in progress
   */
  connectionClosed(endedBy: 'client' | 'upstream' | null): Promise<GatewayError | null>
  /** The upstream closed the connection because of what the client sent. */
  readonly isClientFault: boolean
  /** Settles all responses. @param failure why the session ended; null = in order */
  end(failure: GatewayError | null): Promise<SessionUsage>
}

/** No body came yet. */
export const NOT_DELIVERED: MeteredResponse = { kind: 'none', delivered: false }
/** A body arrived and is not kept. */
export const DELIVERED: MeteredResponse = { kind: 'none', delivered: true }

/** What an attempt of an exchange is made with. */
export interface UpstreamAttemptOptions {
  readonly target: Target
  readonly upstream: LiveUpstream
  readonly use: CredentialUse
  /** Credentials of the target that it refused for this request. */
  readonly refused: readonly Authorization[]
  readonly sent: AttemptRequest
  /** The price of the target's model; null = unpriced. */
  readonly quoted: QuotedPrice | null
  readonly record: AttemptDraft
  readonly health: HealthReporter
  /** Of the limits of the upstream; null = it has none. */
  readonly reservation: Reservation | null
  readonly clock: Clock
  /** On the monotonic clock, ms. */
  readonly startedAt: number
}

/**
 * One attempt of an exchange at one target: what was sent there at which price, what came back, and what becomes of it.
 * What carries it (HTTP, a WebSocket) is its subclass. `recorder.ts` writes how it ends.
 */
export abstract class UpstreamAttempt extends Attempt {
  readonly target: Target
  readonly record: AttemptDraft
  /** The price of the target's model; null = unpriced. */
  readonly quoted: QuotedPrice | null
  readonly estimatedInput: number | null
  readonly hidesUsage: boolean
  /** Tells the target's health how it ends. */
  readonly health: HealthReporter
  readonly reservation: Reservation | null
  /** The messages of a WebSocket that is open; null = there is none, or they are not read. */
  session: Session | null = null
  /** What it used, where another attempt continues its response or responds in its place; null = none does. */
  share: InterruptedUsage | null = null
  /** What the response tells of itself; null = no trace asks for it. */
  facts: ResponseFactsReader | null = null
  /** Only the end of the protocol was missing, and the gateway sent that. */
  completedByGateway = false
  /** On the monotonic clock, ms. */
  readonly startedAt: number
  readonly #clock: Clock
  /** null = the client's own body was sent. Written by `releaseBody`. */
  sentBody: Buffer | null
  /** null = the upstream speaks the client's protocol. Written by `releaseBody`. */
  translated: TranslatedAttempt | null
  /** The response that goes to the client; null = it is not billed, or none did. Written by `deliver` and `fail`. */
  response: ResponseContent | null = null
  /** What it is settled by although the client gets none of its response; null = nothing. */
  #abandoned: MeteredResponse | null = null

  constructor(options: UpstreamAttemptOptions) {
    super(options.upstream, options.use, options.refused)
    this.target = options.target
    this.record = options.record
    this.quoted = options.quoted
    this.estimatedInput = options.sent.estimatedInput
    this.hidesUsage = options.sent.hidesUsage
    this.health = options.health
    this.reservation = options.reservation
    this.#clock = options.clock
    this.startedAt = options.startedAt
    this.sentBody = options.sent.sentBody
    this.translated = options.sent.translated
  }

  /** Ends it from outside, with what is held of its response. */
  abstract stop(reason: GatewayError): void

  /** The upstream may have started to work on the request, and has not refused it: the prompt may be billed. */
  abstract readonly mayBeBilled: boolean

  /** What it is settled by if nobody awaits its response any more. */
  get abandonedResponse(): MeteredResponse {
    return NOT_DELIVERED
  }

  /** Reads what is held of a response that does not go to the client; null = nothing is. */
  readHeld(): ResponseContent | null {
    return null
  }

  /** Milliseconds since it started. */
  get elapsedMs(): number {
    return this.#clock.monotonic() - this.startedAt
  }

  /** What its response is settled by; null = no successful response came. */
  get metered(): MeteredResponse | null {
    return this.response?.metered ?? this.#abandoned
  }

  /** What is held of a response that has to be whole before the client gets it; null = none is. */
  get held(): MeteredResponse | null {
    return null
  }

  /** The endpoint at the upstream; null = the client's. */
  get endpoint(): Endpoint | null {
    return this.translated?.endpoint ?? null
  }

  /** Its response goes to the client. @param response null = it is not billed */
  deliver(response: ResponseContent | null): void {
    this.response = response
  }

  /**
   * It failed before the client got any of its response.
   *
   * @param abandoned what it is settled by where nobody awaits its response any more, and the client may have to pay
   *   for the prompt; null = it is not billed
   */
  fail(abandoned: MeteredResponse | null): void {
    this.response = null
    this.#abandoned = abandoned
    if (abandoned !== null) this.reservation?.releaseConcurrency()
    else this.reservation?.release()
  }

  /** Releases the body that it sent. */
  releaseBody(): void {
    this.sentBody = null
    if (this.translated) this.translated = { ...this.translated, request: EMPTY_REQUEST }
  }
}
