import type { ReserveMemory } from '../../base/memory-reservation.ts'
import { ownCopy } from '../../base/own-copy.ts'
import { JsonCursor, bytesEqual, parseJson } from './cursor.ts'
import { GeneratedText } from './generated-text.ts'
import type { TextSample, TextKind } from './generated-text.ts'
import { GrowingBytes } from './growing-bytes.ts'
import type { ReportedUsage } from './reported-usage.ts'
import { tierIn, normaliseTier } from './service-tier.ts'
import { SseReader } from './sse.ts'
import type { EventReader, EventSink, StreamEvent } from './stream-event.ts'

/**
 * Measures a streamed response. An event costs one walk over its bytes and one copy
 * of the text in it; usage figures are parsed when they are asked for.
 */
export interface StreamMeter {
  /**
   * Makes the reader that splits a stream, decompressed, into the events of the meter's protocol.
   *
   * @param sink the meter itself, or what gives each event to it among others
   */
  createReader(sink: EventSink): EventReader
  /** Takes the next event. */
  event(event: StreamEvent): void
  /** Did the protocol's own end pass by? null: unknown, and HTTP's end is the end. */
  readonly terminated: boolean | null
  /** The protocol's own in-stream error passed by. */
  readonly sawError: boolean
  /** The data of the event that reported it; null = there was none, or it was too long. */
  readonly errorEvent: string | null
  /** Something generated passed by: text, a tool call, sound, a picture. */
  readonly sawContent: boolean
  /** Nothing generated has passed by since the output was last reported. */
  readonly isOutputReported: boolean
  /** Some of what has passed by since then is no text, as a picture: in tokens only a report tells it. */
  readonly uncountable: boolean
  /** What the upstream reported so far; null when it has said nothing. */
  reading(): ReportedUsage | null
  /** The tier that the upstream says it serves this in, in lower case: `flex`; null when it has not said. */
  readonly serviceTier: string | null
  /** How much text was generated so far: bytes on the wire, by kind. */
  readonly generatedBytes: Readonly<Record<TextKind, number>>
  /** The text generated so far, for counting. */
  partial(): TextSample
}

export interface MeterLimits {
  /** Bytes of generated text kept for counting. */
  readonly textLimit: number
  /** Bytes of the longest event that is read. */
  readonly maxEvent: number
  /** Memory for events that are not whole yet. */
  readonly reserveMemory: ReserveMemory | undefined
}

const ERROR = Buffer.from('error')
const TYPE = Buffer.from('type')
// A usage object is a few hundred bytes; one of this size is not one.
const MAX_USAGE_BYTES = 64 * 1024
const MAX_ERROR_BYTES = 64 * 1024
// The name of a tier is a word or two.
const MAX_TIER_BYTES = 64
const INVALID_USAGE = Buffer.from('"nonsense"')
const NO_TIER = Buffer.alloc(0)
const LOWER_N = 0x6e

/** What the meters of all known protocols have in common: the text, the figures, and how to read them. */
export abstract class ProtocolMeter implements StreamMeter {
  sawError = false
  errorEvent: string | null = null
  sawContent = false
  uncountable = false
  abstract readonly terminated: boolean | null
  protected readonly cursor = new JsonCursor()
  readonly #text: GeneratedText
  readonly #usage = new GrowingBytes()
  #tier: Buffer = NO_TIER
  #totalBytes = 0
  #reportedUpTo = 0

  constructor({ textLimit: keep }: MeterLimits) {
    this.#text = new GeneratedText(keep)
  }

  abstract createReader(sink: EventSink): EventReader
  abstract event(event: StreamEvent): void
  abstract reading(): ReportedUsage | null

  get isOutputReported(): boolean {
    return this.#reportedUpTo === this.#totalBytes && !this.uncountable
  }

  get serviceTier(): string | null {
    return normaliseTier(this.#tier.toString('latin1')) ?? tierIn(this.lastUsage())
  }

  get generatedBytes(): Readonly<Record<TextKind, number>> {
    return this.#text.generatedBytes
  }

  partial(): TextSample {
    return this.#text.generated()
  }

  /** Text was generated: the JSON string that the cursor is at, if it is one. */
  protected text(kind: TextKind, index: number, buf: Buffer): void {
    const { cursor } = this
    if (cursor.string()) this.textAt(kind, index, true, buf, cursor.valueStart, cursor.valueEnd)
    else cursor.skip()
  }

  protected textAt(
    kind: TextKind, index: number, escaped: boolean, buf: Buffer, start: number, end: number,
  ): void {
    if (end <= start) return
    this.sawContent = true
    this.#totalBytes += end - start
    this.#text.append(kind, index, escaped, buf, start, end)
  }

  /** Something was generated that is no text, or could not be read. */
  protected noteUncountable(): void {
    this.sawContent = true
    this.uncountable = true
  }

  /** Keeps the value that the cursor is at as the last usage, unless it is null. */
  protected keepUsage(buf: Buffer): void {
    const { cursor } = this
    if (!cursor.skip() || buf[cursor.valueStart] === LOWER_N) return
    this.#usage.clear()
    if (cursor.valueEnd - cursor.valueStart <= MAX_USAGE_BYTES) {
      this.#usage.append(buf, cursor.valueStart, cursor.valueEnd)
    } else {
      this.#usage.append(INVALID_USAGE, 0, INVALID_USAGE.length)
    }
  }

  /** Keeps the value that the cursor is at as the tier that this is served in, if it names one. */
  protected keepTier(buf: Buffer): void {
    const { cursor } = this
    const isName = cursor.isString()
    if (!cursor.skip() || !isName || cursor.valueEnd - cursor.valueStart > MAX_TIER_BYTES) return
    // Many vendors say the same in each chunk.
    if (bytesEqual(buf, cursor.valueStart + 1, cursor.valueEnd - 1, this.#tier)) return
    this.#tier = ownCopy(buf.subarray(cursor.valueStart + 1, cursor.valueEnd - 1))
  }

  /** The last value skipped as a usage object; one of absurd size reads as nonsense. */
  protected parsedUsage(): unknown {
    return this.cursor.valueEnd - this.cursor.valueStart <= MAX_USAGE_BYTES ? this.cursor.parsed() : NaN
  }

  /** The output reported includes all generated so far; to be called when the whole event is read. */
  protected markOutputReported(): void {
    this.#reportedUpTo = this.#totalBytes
    this.uncountable = false
  }

  /** The last usage that was kept, parsed; undefined when there is none. */
  protected lastUsage(): unknown {
    return this.#usage.length === 0 ? undefined : parseJson(this.#usage.bytes, 0, this.#usage.length)
  }

  /** To be called with each event that was read. */
  protected keepError({ buf, dataStart, dataEnd }: StreamEvent): void {
    if (!this.sawError || this.errorEvent !== null || dataEnd - dataStart > MAX_ERROR_BYTES) return
    this.errorEvent = buf.toString('utf8', dataStart, dataEnd)
  }

  /** Notes an error if the value that the cursor is at is one: anything but null. */
  protected errorMember(buf: Buffer): void {
    if (this.cursor.skip() && buf[this.cursor.valueStart] !== LOWER_N) this.sawError = true
  }

  /** Reads the next value as a small count, such as a choice's index; 0 when it is none. */
  protected index(buf: Buffer): number {
    const { cursor } = this
    if (!cursor.skip()) return 0
    let value = 0
    for (let i = cursor.valueStart; i < cursor.valueEnd && value < 1e6; i++) {
      const digit = buf[i]! - 0x30
      if (digit < 0 || digit > 9) return 0
      value = value * 10 + digit
    }
    return value
  }
}

/** The meters of protocols that stream Server-Sent Events alone. */
export abstract class EventMeter extends ProtocolMeter {
  terminated: boolean | null = false
  /** Where the type stands of the event that was walked over last. */
  protected typeStart = 0
  protected typeEnd = 0
  readonly #limits: MeterLimits

  constructor(limits: MeterLimits) {
    super(limits)
    this.#limits = limits
  }

  /** Reads one event. Its data is JSON that the cursor is not set to yet, or the protocol's own word. */
  protected abstract read(event: StreamEvent): void

  /**
   * Walks over the members of an event's data, of which `type` tells what it is; the
   * event's name does where there is none.
   *
   * @returns false where the data is no object, or is broken
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

  /** On such a walk the cursor is at another member, which is to be passed. */
  protected member(_buf: Buffer): void {
    this.cursor.skip()
  }

  /** Is the type one of these? */
  protected isOneOf(buf: Buffer, types: readonly Buffer[]): boolean {
    for (const type of types) {
      if (bytesEqual(buf, this.typeStart, this.typeEnd, type)) return true
    }
    return false
  }

  /** An event has passed that was too long to be kept. */
  protected onOversizeEvent(): void {}

  createReader(sink: EventSink): EventReader {
    return new SseReader(sink, this.#limits)
  }

  event(event: StreamEvent): void {
    if (event.oversize) {
      // Nothing but pictures and sound is that large.
      this.noteUncountable()
      if (event.terminated) this.onOversizeEvent()
      return
    }
    if (!event.terminated && !this.#isWhole(event)) return
    if (bytesEqual(event.buf, event.nameStart, event.nameEnd, ERROR)) this.sawError = true
    this.read(event)
    if (this.sawError) this.keepError(event)
    this.cursor.release()
  }

  /** What the end of the stream cut in its data is dropped: no client can have made use of it. */
  #isWhole({ buf, dataStart, dataEnd }: StreamEvent): boolean {
    this.cursor.reset(buf, dataStart, dataEnd)
    return this.cursor.skip()
  }
}
