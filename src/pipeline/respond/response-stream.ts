import type { ResponseContent } from '../exchange/upstream-attempt.ts'
import type { MeteredResponse } from '../../pricing/settle-usage.ts'
import { beginsJson } from '../../protocols/json/json-text.ts'
import type { UsageFilter } from '../../protocols/endpoint/protocol.ts'
import type { EventReader, EventSink } from '../../protocols/events/stream-event.ts'
import type { StreamMeter } from '../../protocols/events/stream-meter.ts'
import type { ContinuationStage } from './continuation-stage.ts'
import type { ResponseBody } from './response-body.ts'
import type { RawHeaders } from '../../proxy/http/raw-headers.ts'

const NOTHING = Buffer.alloc(0)

/** A stage of a response: it gets each event after the stages before it. All steps are synchronous. */
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

/** Converts the upstream's headers for the client if the response is translated. */
export type HeaderTranslation = (headers: RawHeaders) => RawHeaders

/** Writes what is known so far to the ledger, in case the process dies. */
export interface Checkpoint {
  /** No write is due, and there is a ledger to write to. */
  readonly isIdle: boolean
  schedule(): void
  writeNow(): void
}

/** The stages of a response; null = not needed. */
export interface ResponseStages {
  /** The stages have read the response while it was held. */
  readonly isRead: boolean
  /** All stages in order, and the reader that passes them its events. */
  readonly all: readonly Stage[]
  readonly reader: EventReader
  /** The parts of the response that settlement reads. */
  readonly content: ResponseContent
  /** Knows whether the stream has reached its protocol's end; null = the HTTP message's end is the end. */
  readonly meter: StreamMeter | null
  readonly filter: UsageFilter | null
  readonly continuation: ContinuationStage | null
  /** Decides which bytes the client gets; null = all. */
  readonly outlet: Outlet | null
  /** null = the client speaks the upstream's protocol. */
  readonly translateHeaders: HeaderTranslation | null
  readonly checkpoint: Checkpoint | null
}

/**
 * One response on its way to the client:
 *
 *   bytes -> reader -> events -> meter -> translation -> filter -> continuation -> bytes for the client
 *
 * Its bytes are split into events once, and an event is parsed at most once, by the first stage that reads its value.
 * Without a filter or a continuation each chunk passes unchanged, even if it ends inside an event.
 */
export class ResponseStream implements ResponseBody, ResponseContent {
  #stages: ResponseStages
  /** Creates the stages for a whole body, if only its beginning shows whether it is one; null = not needed. */
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
    // Write the first checkpoint at once: it records the upstream and the status.
    this.#stages.checkpoint?.writeNow()
  }
}
