import type { UsageFilter } from '../../protocols/shared/protocol.ts'
import type { EventReader, EventSink } from '../../protocols/shared/stream-event.ts'
import type { StreamMeter } from '../../protocols/shared/stream-meter.ts'
import { beginsJson } from './body-classifier.ts'
import type { ContinuationStage } from './continuation-stage.ts'
import type { ResponseBody } from './relay.ts'

const NOTHING = Buffer.alloc(0)

/** A stage of a response: it takes each event, behind the stages before it. All of it is synchronous. */
export interface Stage extends EventSink {
  /** The first bytes came. */
  begin?(): void
  /** No more will come: the response has ended, or was aborted. */
  end?(): void
}

/** Writes to the ledger what is known so far, in case the process dies. */
export interface Checkpoint {
  /** No write is due yet, and there is a ledger to write to. */
  readonly isIdle: boolean
  schedule(): void
  writeNow(): void
}

/** The stages that a response needs; null = it does not need that one. */
export interface ResponseStages {
  /** All stages, in the order of the stream, and the reader that gives them its events. */
  readonly all: readonly Stage[]
  readonly reader: EventReader
  /** Tells whether the stream has ended as its protocol says; null = HTTP's end is its end. */
  readonly meter: StreamMeter | null
  readonly filter: UsageFilter | null
  readonly continuation: ContinuationStage | null
  readonly checkpoint: Checkpoint | null
}

/**
 * One response on its way to the client:
 *
 *   bytes -> reader -> events -> meter -> filter -> continuation -> bytes for the client
 *
 * Its bytes are split into events once, and an event is parsed at most once, by the first stage that asks
 * for its value. Without a filter or a continuation each chunk is passed on as it came, also in the middle
 * of an event. A chunk of a plain stream costs six calls, from the relay to the client's writer:
 * `Deadlines.upstreamActive`, `ResponseStream.push`, `SseReader.push`, `StreamMeter.event`, `Relay.#write` and
 * `ClientWriter.write`.
 */
export class ResponseStream implements ResponseBody {
  #stages!: readonly Stage[]
  #reader!: EventReader
  #meter!: StreamMeter | null
  #filter!: UsageFilter | null
  #continuation!: ContinuationStage | null
  /** What decides which bytes the client gets; null = it gets all. */
  #outlet!: UsageFilter | ContinuationStage | null
  #checkpoint!: Checkpoint | null
  /** Makes the stages for a body in one piece, where its start tells whether it is one; null = that is known. */
  readonly #createForBody: (() => ResponseStages) | null
  #hasBegun = false
  #hasEnded = false

  constructor(stages: ResponseStages, createForBody: (() => ResponseStages) | null = null) {
    this.#use(stages)
    this.#createForBody = createForBody
  }

  get terminated(): boolean | null {
    if (this.#continuation?.fault) return false
    const meter = this.#meter
    // An error event of the protocol's own is an honest end too.
    return meter && (meter.sawError || meter.terminated)
  }

  get atBoundary(): boolean {
    if (this.#continuation && !this.#continuation.overflowed) return true
    return this.#meter !== null && (this.#filter?.holding === true || this.#reader.atBoundary)
  }

  get edits(): boolean {
    return this.#outlet !== null
  }

  push(chunk: Buffer): Buffer {
    if (this.#hasBegun) {
      this.#reader.push(chunk)
      if (this.#checkpoint?.isIdle) this.#checkpoint.schedule()
    } else {
      this.#begin(chunk)
    }
    return this.#outlet === null ? chunk : this.#outlet.take(chunk)
  }

  end(): void {
    if (this.#hasEnded) return
    this.#continuation?.close()
    this.#reader.end()
    for (const stage of this.#stages) stage.end?.()
    this.#hasEnded = true
  }

  rest(): Buffer {
    return this.#outlet?.rest() ?? NOTHING
  }

  #begin(chunk: Buffer): void {
    this.#hasBegun = true
    if (this.#createForBody !== null && beginsJson(chunk)) this.#use(this.#createForBody())
    this.#reader.push(chunk)
    for (const stage of this.#stages) stage.begin?.()
    // The first checkpoint is written at once: it has the upstream and the status.
    this.#checkpoint?.writeNow()
  }

  #use({ all, reader, meter, filter, continuation, checkpoint }: ResponseStages): void {
    this.#stages = all
    this.#reader = reader
    this.#meter = meter
    this.#filter = filter
    this.#continuation = continuation
    this.#outlet = continuation ?? filter
    this.#checkpoint = checkpoint
  }
}
