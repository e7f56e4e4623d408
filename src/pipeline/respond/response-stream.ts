import type { ResponseContent } from '../../context/upstream-attempt.ts'
import type { MeteredResponse } from '../../pricing/settle-usage.ts'
import { beginsJson } from '../../protocols/shared/json-text.ts'
import type { UsageFilter } from '../../protocols/shared/protocol.ts'
import type { EventReader, EventSink } from '../../protocols/shared/stream-event.ts'
import type { StreamMeter } from '../../protocols/shared/stream-meter.ts'
import type { ContinuationStage } from './continuation-stage.ts'
import type { ResponseBody } from './response-body.ts'
import type { RawHeaders } from '../../proxy/raw-headers.ts'

const NOTHING = Buffer.alloc(0)

/** A stage of a response: it takes each event, behind the stages before it. All of it is synchronous. */
export interface Stage extends EventSink {
  /** The first bytes came. */
  begin?(): void
  /** No more will come: the response has ended, or was aborted. */
  end?(): void
}

/** Decides which bytes the client gets of a response. */
export interface Outlet {
  /** Takes the chunk that was read last. @returns what the client gets now */
  take(chunk: Buffer): Buffer
  /** Nothing is missing. @returns what the client gets of what was held back */
  rest(): Buffer
  /** The client was given the end of its protocol; absent = it gets that with the upstream's. */
  readonly isOver?: boolean
  /** It could not pass on what came: the response is not whole, whatever the upstream's end says. */
  readonly hasFailed?: boolean
}

/** Makes the client's headers of an upstream's, where its response is translated. */
export type HeaderTranslation = (headers: RawHeaders) => RawHeaders

/** Writes to the ledger what is known so far, in case the process dies. */
export interface Checkpoint {
  /** No write is due yet, and there is a ledger to write to. */
  readonly isIdle: boolean
  schedule(): void
  writeNow(): void
}

/** The stages that a response needs; null = it does not need that one. */
export interface ResponseStages {
  /** The stages have read the response while it was held. */
  readonly isRead: boolean
  /** All stages, in the order of the stream, and the reader that gives them its events. */
  readonly all: readonly Stage[]
  readonly reader: EventReader
  /** What the response is settled by. */
  readonly content: ResponseContent
  /** Knows whether the stream has reached its protocol's end; null = the end of HTTP is its end. */
  readonly meter: StreamMeter | null
  readonly filter: UsageFilter | null
  readonly continuation: ContinuationStage | null
  /** What decides which bytes the client gets; null = it gets all. */
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
 * Its bytes are split into events once, and an event is parsed at most once, by the first stage that asks
 * for its value. Without a filter or a continuation each chunk is passed on as it came, also in the middle of an event.
 */
export class ResponseStream implements ResponseBody, ResponseContent {
  #stages: ResponseStages
  /** Creates the stages for a whole body, where its beginning tells whether it is one; null = that is known. */
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
    const { meter, continuation, outlet } = this.#stages
    if (continuation?.fault || outlet?.hasFailed === true) return false
    // An error event of the protocol is a proper end too.
    return meter && (meter.sawError || meter.terminated)
  }

  get missingEnd(): Buffer | null {
    const { meter, continuation, outlet, reader, translateHeaders } = this.#stages
    if (!meter?.missingEnd || !reader.atBoundary || continuation?.fault || outlet?.hasFailed === true) return null
    // A translated stream gets the end of the client's protocol.
    return translateHeaders === null ? meter.missingEnd : NOTHING
  }

  get isFinished(): boolean {
    return this.terminated === true && this.atBoundary && this.#stages.outlet?.isOver !== false
  }

  get atBoundary(): boolean {
    const { meter, filter, continuation, reader, translateHeaders } = this.#stages
    // The client gets whole events alone.
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
    // The first checkpoint is written at once: it has the upstream and the status.
    this.#stages.checkpoint?.writeNow()
  }
}
