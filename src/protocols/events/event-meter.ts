import { bytesEqual } from '../json/cursor.ts'
import { SseReader } from './sse.ts'
import type { EventReader, EventSink, StreamEvent } from './stream-event.ts'
import { ProtocolMeter, type MeterLimits } from './stream-meter.ts'

const ERROR = Buffer.from('error')
const TYPE = Buffer.from('type')

/** Base class of the meters for protocols that stream only as server-sent events. */
export abstract class EventMeter extends ProtocolMeter {
  terminated: boolean | null = false
  /** Range of the event's type, after `walk`. */
  protected typeStart = 0
  protected typeEnd = 0
  readonly #limits: MeterLimits

  constructor(limits: MeterLimits) {
    super(limits)
    this.#limits = limits
  }

  /** Reads one event. The event's data is JSON or a word of the protocol. The cursor does not point to the data yet. */
  protected abstract read(event: StreamEvent): void

  /**
   * Calls `member` for each member of an event's data. The type is the member `type`, or else the event's name. false = not a valid object.
   */
  protected walk({ buf, dataStart, dataEnd, nameStart, nameEnd }: StreamEvent): boolean {
    const { cursor } = this
    this.typeStart = nameStart
    this.typeEnd = nameEnd
    cursor.reset(buf, dataStart, dataEnd)
    if (!cursor.beginObject()) return false
    while (cursor.nextMember()) {
      if (cursor.keyIs(TYPE) && cursor.string()) {
        this.typeStart = cursor.valueStart
        this.typeEnd = cursor.valueEnd
      } else {
        this.member(buf)
      }
    }
    return !cursor.broken
  }

  /** Called by `walk` with the cursor at each member except `type`. The method must move the cursor past the value. */
  protected member(_buf: Buffer): void {
    this.cursor.skip()
  }

  protected isOneOf(buf: Buffer, types: readonly Buffer[]): boolean {
    for (const type of types) {
      if (bytesEqual(buf, this.typeStart, this.typeEnd, type)) return true
    }
    return false
  }

  protected onOversizeEvent(): void {}

  createReader(sink: EventSink): EventReader {
    return new SseReader(sink, this.#limits)
  }

  event(event: StreamEvent): void {
    if (event.oversize) {
      // Only events with images or audio are that large.
      this.noteUncountable()
      this.notRepeatable()
      if (event.terminated) this.onOversizeEvent()
      return
    }
    if (event.terminated ? this.repeats(event) : !this.#isWhole(event)) return
    if (bytesEqual(event.buf, event.nameStart, event.nameEnd, ERROR)) this.sawError = true
    this.read(event)
    if (this.sawError) this.keepError(event)
    this.remember(event)
    this.cursor.release()
  }

  /** Tells whether the event's data is complete JSON. Clients cannot use an event that the end of the stream cut. */
  #isWhole({ buf, dataStart, dataEnd }: StreamEvent): boolean {
    this.cursor.reset(buf, dataStart, dataEnd)
    return this.cursor.skip()
  }
}
