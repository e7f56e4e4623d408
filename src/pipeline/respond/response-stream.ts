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

/** Passes the body of a response through the stages. All methods are synchronous and fast. */
export interface ResponseBody {
  /** @param chunk from the upstream @returns the bytes for the client */
  push(chunk: Buffer): Buffer
  end(): void
  /** Called when the response is complete. @returns the held bytes for the client */
  rest(): Buffer
  /** true = the protocol's own end has passed; null = the protocol has no own end, so the HTTP message's end counts. */
  readonly terminated: boolean | null
  /** The bytes that complete a response which lacks only its protocol's end; null = more is missing. */
  readonly missingEnd: Buffer | null
  /** true = some bytes could not be passed on, so the client's response is incomplete. */
  readonly hasFailed?: boolean
  /** true = the client has its protocol's end, and gets nothing of what the upstream sends after it. */
  readonly isFinished: boolean
  /** true = the bytes so far end with a whole event, so that another event can follow. */
  readonly atBoundary: boolean
  /** true = the stages can change or hold bytes. */
  readonly edits: boolean
  /** null = the client gets the upstream's headers. */
  readonly translateHeaders: HeaderTranslation | null
}

/** How the client's response ended; null = properly. */
export type RelayEnd = GatewayError | null

/** The client's stream broke and may be continued. The next call is `continueLater`, `finish` or `fail`. */
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
  /** true = a stream that breaks may be continued by another attempt, or completed because only its end is missing. */
  readonly mayContinue: boolean
}

/** A step that reads the events of a response. Each event goes to the stages in order. All methods are synchronous. */
export interface Stage extends EventSink {
  /** Called when the first bytes arrive. */
  begin?(): void
  /** Called when the response has ended or was aborted. */
  end?(): void
}

/** Decides which bytes of a response the client gets. */
export interface Outlet {
  /** Takes the chunk that was read last. @returns the bytes for the client */
  take(chunk: Buffer): Buffer
  /** Called when the response is complete. @returns the held bytes for the client */
  rest(): Buffer
  /** true = the client has its protocol's end; absent = the client gets the upstream's end. */
  readonly isOver?: boolean
  /** true = some bytes could not be passed on, so the response is incomplete even if it has a proper end. */
  readonly hasFailed?: boolean
}

export type HeaderTranslation = (headers: RawHeaders) => RawHeaders

/** The stages of a response; null values = not needed. */
export interface ResponseStages {
  /** true = the stages have read the whole response while it was held. */
  readonly isRead: boolean
  /** The stages in order. */
  readonly all: readonly Stage[]
  readonly reader: EventReader
  readonly content: ResponseContent
  /** Detects the protocol's end of the stream; null = the HTTP message's end counts. */
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
 * An event's value is parsed when a stage first reads it. Without an outlet each chunk passes unchanged, even if it ends inside an event.
 */
export class ResponseStream implements ResponseBody, ResponseContent {
  #stages: ResponseStages
  /** Creates other stages if the beginning of the response shows that it is a whole body; null = it is a stream. */
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
    // A stream that ends with an error event of the protocol has ended properly too.
    return meter && (meter.sawError || meter.terminated)
  }

  get missingEnd(): Buffer | null {
    const { meter, reader, translateHeaders } = this.#stages
    if (!meter?.missingEnd || !reader.atBoundary || this.hasFailed) return null
    // The translator adds the end of the client's protocol, so no bytes are missing.
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
    // A translated stream consists of whole events for the client.
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
    // Do not close the continuation of a translated stream yet: it gets its last events from the translation.
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
    // Write a checkpoint now, so that the ledger has the upstream and the status.
    this.#stages.checkpoint?.writeNow()
  }
}

/** Reads facts of a stream for the trace. Parses only events that can contain a fact, because most events contain only text. */
export class ResponseFactsStage implements Stage {
  readonly facts = new ResponseFactsReader()

  event(event: StreamEvent): void {
    const { facts } = this
    const isBeginning = facts.id === null || facts.model === null
    if (isBeginning || mayHaveFinishReason(event.buf.subarray(event.dataStart, event.dataEnd))) facts.read(event.value)
  }
}
