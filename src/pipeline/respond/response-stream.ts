import type { GatewayError } from '../../base/errors.ts'
import type { ResponseContent } from '../exchange/upstream-attempt.ts'
import type { MeteredResponse } from '../../pricing/settle-usage.ts'
import { beginsJson } from '../../protocols/json/json-text.ts'
import type { UsageFilter } from '../../protocols/endpoint/protocol.ts'
import { ResponseFactsReader, mayHaveFinishReason } from '../../protocols/events/response-facts.ts'
import type { EventReader, EventSink, StreamEvent } from '../../protocols/events/stream-event.ts'
import type { StreamMeter } from '../../protocols/events/stream-meter.ts'
import type { LedgerCheckpoint } from '../parts/ledger-checkpoint.ts'
import type { ContinuationStage } from './continuation-stage.ts'
import type { RawHeaders } from '../../proxy/http/raw-headers.ts'

const NOTHING = Buffer.alloc(0)

/** The body of a response on its way through the stages. All steps are synchronous and cheap. */
export interface ResponseBody {
  /** @param chunk from the upstream @returns the bytes for the client */
  push(chunk: Buffer): Buffer
  end(): void
  /** The response is complete. @returns the held bytes for the client */
  rest(): Buffer
  /** The protocol's own end has passed; null = the HTTP message's end is the end. */
  readonly terminated: boolean | null
  /** What the client needs if the response ends properly without its protocol's end; null = more is missing. */
  readonly missingEnd: Buffer | null
  /** Some bytes could not be passed on: the response is incomplete. */
  readonly hasFailed?: boolean
  /** The client has the end of its protocol: nothing that follows is for it. */
  readonly isFinished: boolean
  /** Another event can follow the bytes so far. */
  readonly atBoundary: boolean
  /** Some bytes are changed or held. */
  readonly edits: boolean
  /** null = the client gets the upstream's headers. */
  readonly translateHeaders: HeaderTranslation | null
}

/** null = the response ended properly. */
export type RelayEnd = GatewayError | null

/** The client's stream may be continued: `continueLater`, `finish` or `fail` follows. */
export class StreamBreak {
  readonly error: GatewayError

  constructor(error: GatewayError) {
    this.error = error
  }
}

export interface RelaySource {
  resume(): void
}

export interface OpenResponse {
  /** null = the body passes unread. */
  readonly body: ResponseBody | null
  readonly source: RelaySource
  /** If the stream breaks it may be continued: by another attempt, or because only its end is missing. */
  readonly mayContinue: boolean
}

/** Gets each event after the stages before it. All steps are synchronous. */
export interface Stage extends EventSink {
  /** The first bytes arrived. */
  begin?(): void
  /** The response has ended or was aborted. */
  end?(): void
}

/** Decides which bytes of a response the client gets. */
export interface Outlet {
  /** Takes the chunk that was read last. @returns the bytes for the client */
  take(chunk: Buffer): Buffer
  /** The response is complete. @returns the held bytes for the client */
  rest(): Buffer
  /** The client has the end of its protocol; absent = it gets the upstream's. */
  readonly isOver?: boolean
  /** Some bytes could not be passed on: the response is incomplete, whatever its end says. */
  readonly hasFailed?: boolean
}

export type HeaderTranslation = (headers: RawHeaders) => RawHeaders

/** The stages of a response; null values = not needed. */
export interface ResponseStages {
  /** The stages have read the response while it was held. */
  readonly isRead: boolean
  /** The stages in order. */
  readonly all: readonly Stage[]
  readonly reader: EventReader
  readonly content: ResponseContent
  /** Knows whether the stream has reached its protocol's end; null = the HTTP message's end is the end. */
  readonly meter: StreamMeter | null
  readonly filter: UsageFilter | null
  readonly continuation: ContinuationStage | null
  /** null = the client gets all bytes. */
  readonly outlet: Outlet | null
  /** null = the client speaks the upstream's protocol. */
  readonly translateHeaders: HeaderTranslation | null
  readonly checkpoint: LedgerCheckpoint | null
}

/**
 * One response: bytes -> reader -> events -> meter -> translation -> filter -> continuation -> bytes for the client.
 * The first stage that reads an event's value parses it. Without an outlet each chunk passes unchanged, even if it ends inside an event.
 */
export class ResponseStream implements ResponseBody, ResponseContent {
  #stages: ResponseStages
  /** Creates the stages if the beginning of the response shows that it is a whole body; null = not needed. */
  readonly #createForBody: (() => ResponseStages) | null
  #hasBegun = false
  #hasEnded = false

  constructor(stages: ResponseStages, createForBody: (() => ResponseStages) | null = null) {
    this.#stages = stages
    this.#createForBody = createForBody
  }

  get metered(): MeteredResponse | null {
    return this.#stages.content.metered
  }

  get encoding(): string | null {
    return this.#stages.content.encoding
  }

  get errorBody(): Buffer | null {
    return this.#stages.content.errorBody
  }

  get terminated(): boolean | null {
    const { meter } = this.#stages
    if (this.hasFailed) return false
    // An error event of the protocol is a proper end too.
    return meter && (meter.sawError || meter.terminated)
  }

  get missingEnd(): Buffer | null {
    const { meter, reader, translateHeaders } = this.#stages
    if (!meter?.missingEnd || !reader.atBoundary || this.hasFailed) return null
    // A translated stream gets the end of the client's protocol.
    return translateHeaders === null ? meter.missingEnd : NOTHING
  }

  get hasFailed(): boolean {
    const { continuation, outlet } = this.#stages
    return Boolean(continuation?.fault) || outlet?.hasFailed === true
  }

  get isFinished(): boolean {
    return this.terminated === true && this.atBoundary && this.#stages.outlet?.isOver !== false
  }

  get atBoundary(): boolean {
    const { meter, filter, continuation, reader, translateHeaders } = this.#stages
    // The client gets only whole events.
    if (translateHeaders !== null) return meter !== null
    if (continuation && !continuation.overflowed) return true
    return meter !== null && (filter?.holding === true || reader.atBoundary)
  }

  get edits(): boolean {
    return this.#stages.outlet !== null
  }

  get translateHeaders(): HeaderTranslation | null {
    return this.#stages.translateHeaders
  }

  push(chunk: Buffer): Buffer {
    if (!this.#hasBegun && this.#createForBody !== null && beginsJson(chunk)) this.#stages = this.#createForBody()
    const { isRead, reader, outlet, checkpoint } = this.#stages
    if (!isRead) reader.push(chunk)
    if (!this.#hasBegun) this.#begin()
    else if (checkpoint?.isIdle) checkpoint.schedule()
    return outlet === null ? chunk : outlet.take(chunk)
  }

  end(): void {
    if (this.#hasEnded) return
    const { all, isRead, reader, continuation, translateHeaders } = this.#stages
    // The events of a translated stream reach the continuation later.
    if (translateHeaders === null) continuation?.close()
    if (!isRead) reader.end()
    for (const stage of all) stage.end?.()
    this.#hasEnded = true
  }

  rest(): Buffer {
    return this.#stages.outlet?.rest() ?? NOTHING
  }

  #begin(): void {
    this.#hasBegun = true
    for (const stage of this.#stages.all) stage.begin?.()
    // The first checkpoint records the upstream and the status.
    this.#stages.checkpoint?.writeNow()
  }
}

/** Reads facts of a stream for its trace. Most events contain only text and are not parsed. */
export class ResponseFactsStage implements Stage {
  readonly facts = new ResponseFactsReader()

  event(event: StreamEvent): void {
    const { facts } = this
    const isBeginning = facts.id === null || facts.model === null
    if (isBeginning || mayHaveFinishReason(event.buf.subarray(event.dataStart, event.dataEnd))) facts.read(event.value)
  }
}
