import { EMPTY_REQUEST } from '../protocols/neutral/request.ts'
import type { GatewayError } from '../base/errors.ts'
import type { Target } from '../config/types.ts'
import type { Reservation } from '../limits/types.ts'
import type { InterruptedUsage } from '../pricing/interrupted-usage.ts'
import type { QuotedPrice } from '../pricing/prices.ts'
import type { MeteredResponse } from '../pricing/settle-usage.ts'
import type { SettledCost } from '../pricing/settled-cost.ts'
import type { ResponseFactsReader } from '../protocols/shared/response-facts.ts'
import type { Endpoint } from '../protocols/shared/protocol.ts'
import type { TranslatedAttempt } from '../protocols/translate.ts'

/** One attempt at one upstream, as the ledger and the log have it. */
export interface AttemptRecord {
  readonly upstream: string
  readonly model: string | null
  /** The client's protocol and the upstream's: `messages->chat`; absent = the request is not translated. */
  readonly translated?: string
  /** The client's fields that the upstream did not get; absent = it got all. */
  readonly dropped?: readonly string[]
  /** `ok`, the code of the error that ended it, `error_answer`: the upstream sent an error of its own, or `hedge_lost`. */
  outcome: string
  /** Duration in ms. */
  ms: number
  /** From the start of the exchange to the start of the attempt, ms. */
  readonly atMs: number
  /** The upstream's HTTP status; absent where no response came. */
  status?: number
  /** How the upstream's error names itself: `rate_limit_exceeded`. */
  said?: string
  /** The first kilobyte of that error, without the operator's secrets. */
  errorText?: string
  /**
   * Where several attempts made up the response: what this one used, and
   * what that cost in USD; absent = unknown.
   */
  inputTokens?: number
  outputTokens?: number
  costUsd?: string
}

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

/** One attempt at one target: what was sent there at which price, and what came back. */
export class UpstreamAttempt {
  readonly target: Target
  readonly record: AttemptRecord
  /** The price of the target's model; null = unpriced. */
  readonly quoted: QuotedPrice | null
  readonly estimatedInput: number | null
  readonly hidesUsage: boolean
  /** The response that is held until it is whole; null = none is. */
  held: Pick<ResponseContent, 'metered'> | null = null
  /** A whole response as the client gets it; null = it is not translated, or is a stream. */
  translatedBody: string | null = null
  /** The messages of a WebSocket that is open; null = there is none, or they are not read. */
  session: Session | null = null
  /** What it used, where another attempt continues its response or responds in its place; null = none does. */
  share: InterruptedUsage | null = null
  /** What the response tells of itself; null = no trace asks for it. */
  facts: ResponseFactsReader | null = null
  /** Of the limits of the upstream; null = it has none. */
  reservation: Reservation | null = null
  /** Only the end of the protocol was missing, and the gateway sent that. */
  completedByGateway = false
  #sentBody: Buffer | null
  #translated: TranslatedAttempt | null
  #response: ResponseContent | null = null
  /** What it is settled by although the client gets none of its response; null = nothing. */
  #abandoned: MeteredResponse | null = null

  constructor(target: Target, record: AttemptRecord, quoted: QuotedPrice | null, request: AttemptRequest) {
    this.target = target
    this.record = record
    this.quoted = quoted
    this.estimatedInput = request.estimatedInput
    this.hidesUsage = request.hidesUsage
    this.#sentBody = request.sentBody
    this.#translated = request.translated
  }

  /** The response that goes to the client; null = it is not billed, or none did. */
  get response(): ResponseContent | null {
    return this.#response
  }

  /** What its response is settled by; null = no successful response came. */
  get metered(): MeteredResponse | null {
    return this.#response?.metered ?? this.#abandoned
  }

  /** null = the client's own body was sent. */
  get sentBody(): Buffer | null {
    return this.#sentBody
  }

  /** null = the upstream speaks the client's protocol. */
  get translated(): TranslatedAttempt | null {
    return this.#translated
  }

  /** The endpoint at the upstream; null = the client's. */
  get endpoint(): Endpoint | null {
    return this.#translated?.endpoint ?? null
  }

  /** Its response goes to the client. @param response null = it is not billed */
  deliver(response: ResponseContent | null): void {
    this.#response = response
  }

  /**
   * It failed before the client got any of its response.
   *
   * @param abandoned what it is settled by where nobody awaits its response any more, and the client may have to pay
   *   for the prompt; null = it is not billed
   */
  fail(abandoned: MeteredResponse | null): void {
    this.held = null
    this.#response = null
    this.#abandoned = abandoned
    if (abandoned !== null) this.reservation?.releaseConcurrency()
    else this.reservation?.release()
  }

  /** Releases the body that it sent. */
  releaseBody(): void {
    this.#sentBody = null
    if (this.#translated) this.#translated = { ...this.#translated, request: EMPTY_REQUEST }
  }
}
