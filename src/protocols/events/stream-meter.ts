import type { ReserveMemory } from '../../base/memory-reservation.ts'
import { ownCopy } from '../../base/own-copy.ts'
import { JsonCursor, bytesEqual, parseJsonRange } from '../json/cursor.ts'
import { GeneratedText } from './generated-text.ts'
import type { TextSample, TextKind } from './generated-text.ts'
import { GrowingBytes } from './growing-bytes.ts'
import { MAX_PLACES, RepeatedEvent } from './repeated-event.ts'
import type { Place, TextLane } from './repeated-event.ts'
import type { ReportedUsage } from '../usage/reported-usage.ts'
import { tierIn, normaliseTier } from '../usage/service-tier.ts'
import type { EventReader, EventSink, StreamEvent } from './stream-event.ts'

/**
 * Measures a streamed response. If only the text of an event differs from the event before, the meter compares the
 * rest and copies the text; it parses any other event once. It parses usage figures when they are asked for.
 */
export interface StreamMeter {
  /**
   * Creates the reader that splits a decompressed stream into the events of the meter's protocol.
   *
   * @param sink the meter itself, or what passes each event on to it
   */
  createReader(sink: EventSink): EventReader
  /** Reads the next event. */
  event(event: StreamEvent): void
  /** Did the protocol's own end arrive? null = the protocol has none, and HTTP's end is the end. */
  readonly terminated: boolean | null
  /** What the client still needs if the stream ends now: the response is complete. null = more is missing. */
  readonly missingEnd: Buffer | null
  /** The protocol's own error arrived in the stream. */
  readonly sawError: boolean
  /** The data of the event with the error; null = there was none, or it was too long. */
  readonly errorEvent: string | null
  /** Generated output arrived: text, a tool call, audio, an image. */
  readonly sawContent: boolean
  /** No output has arrived since the output was last reported. */
  readonly isOutputReported: boolean
  /** Some output since then is not text, such as an image: only a report can tell its tokens. */
  readonly uncountable: boolean
  /** What the upstream has reported so far; null = nothing. */
  reading(): ReportedUsage | null
  /** The tier in which the upstream says it serves the response, in lower case: `flex`; null = it has not said. */
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
  /** Memory for incomplete events. */
  readonly reserveMemory: ReserveMemory | undefined
}

// A usage object is a few hundred bytes; one of this size is an error of the upstream.
const MAX_USAGE_BYTES = 64 * 1024
const MAX_ERROR_BYTES = 64 * 1024
// The longest name of a tier that is kept: real names are a word or two.
const MAX_TIER_BYTES = 64
const INVALID_USAGE = Buffer.from('"nonsense"')
const NO_TIER = Buffer.alloc(0)
const LOWER_N = 0x6e
const QUOTE = 0x22
const NINE = 0x39
const NUMBERS = /\d+/g
/** How many events in a row are remembered without a repetition. Each repetition starts the count again. */
const MAX_ATTEMPTS = 8

/** What the meters of all known protocols share: the text, the figures, and how to read them. */
export abstract class ProtocolMeter implements StreamMeter {
  sawError = false
  errorEvent: string | null = null
  sawContent = false
  uncountable = false
  abstract readonly terminated: boolean | null
  protected readonly cursor = new JsonCursor()
  /**
   * The meter recognises repeated events and does not parse them again. Only for meters that count nothing but text
   * and usage.
   */
  protected readonly remembersEvents: boolean = true
  /** The last event; null = none is remembered. */
  #repeated: RepeatedEvent | null = null
  /** Places that may differ in the event that is parsed; null = the event will not be remembered. */
  #places: Place[] | null = null
  #dataStart = 0
  #attempts = MAX_ATTEMPTS
  /** The current event reports the output. */
  #reports = false
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

  get missingEnd(): Buffer | null {
    return null
  }

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

  /**
   * Takes the event if it repeats the last one: then only its text and usage have an effect.
   *
   * @returns false = parse the event, and then call `remember`
   */
  protected repeats(event: StreamEvent): boolean {
    const repeated = this.#repeated
    const { buf, dataStart } = event
    if (repeated === null || !repeated.matches(event)) {
      this.#places = this.remembersEvents && this.#attempts > 0 ? [] : null
      this.#dataStart = dataStart
      this.#reports = false
      return false
    }
    const { places, starts, ends } = repeated
    let usageStart = -1
    for (let n = 0; n < places.length; n++) {
      const { holds, lane } = places[n]!
      const start = dataStart + starts[n]!
      if (lane !== null) {
        this.textAt(lane.kind, lane.index, true, buf, start, dataStart + ends[n]!)
      } else if (holds === 'nothing') {
        if (usageStart !== -1) this.#setUsage(buf, usageStart, start)
        usageStart = usageStart === -1 ? start : -1
      }
    }
    if (this.#reports) this.markOutputReported()
    this.#attempts = MAX_ATTEMPTS
    return true
  }

  /** Remembers the event that was parsed. */
  protected remember(event: StreamEvent): void {
    const places = this.#places
    const before = this.#repeated
    this.#places = this.#repeated = null
    // An event without text rarely repeats.
    if (places === null || !places.some(hasText) || this.sawError || this.terminated === true) return
    this.#attempts--
    this.#repeated = RepeatedEvent.of(event, places, before)
  }

  /** The current event must be parsed each time. */
  protected notRepeatable(): void {
    this.#places = this.#repeated = null
  }

  /** Skips a value without meaning to the meter. */
  protected ignore(buf: Buffer): void {
    const { cursor } = this
    if (!cursor.skip()) return
    const { valueStart: start, valueEnd: end } = cursor
    if (this.#places === null) return
    if (buf[start] === QUOTE) this.#mayDiffer(this.#places, start + 1, end - 1, 'string')
    else if (buf[start]! <= NINE) this.#mayDiffer(this.#places, start, end, 'digits')
  }

  #mayDiffer(places: Place[], start: number, end: number, holds: Place['holds'], lane: TextLane | null = null): void {
    if (places.length === MAX_PLACES) this.#places = null
    else places.push({ start: start - this.#dataStart, end: end - this.#dataStart, holds, lane })
  }

  /** Reads generated text: the value at the cursor if it is a JSON string. */
  protected text(kind: TextKind, index: number, buf: Buffer): void {
    const { cursor } = this
    if (cursor.string()) this.textAt(kind, index, true, buf, cursor.valueStart, cursor.valueEnd)
    else cursor.skip()
  }

  protected textAt(
    kind: TextKind, index: number, escaped: boolean, buf: Buffer, start: number, end: number,
  ): void {
    if (end <= start) return
    if (!escaped) this.#places = null
    else if (this.#places !== null) this.#mayDiffer(this.#places, start, end, 'string', { kind, index })
    this.sawContent = true
    this.#totalBytes += end - start
    this.#text.append(kind, index, escaped, buf, start, end)
  }

  /** Notes output that is not text, or could not be read. */
  protected noteUncountable(): void {
    this.sawContent = true
    this.uncountable = true
  }

  /** Keeps the value at the cursor as the last usage, unless it is null. */
  protected keepUsage(buf: Buffer): void {
    const { cursor } = this
    if (!cursor.skip() || buf[cursor.valueStart] === LOWER_N) return
    this.#setUsage(buf, cursor.valueStart, cursor.valueEnd)
  }

  #setUsage(buf: Buffer, start: number, end: number): void {
    this.#usage.clear()
    if (end - start > MAX_USAGE_BYTES) {
      this.#usage.append(INVALID_USAGE, 0, INVALID_USAGE.length)
      return
    }
    this.#usage.append(buf, start, end)
    const places = this.#places
    if (places === null) return
    this.#mayDiffer(places, start, start, 'nothing')
    for (const { 0: digits, index } of buf.toString('latin1', start, end).matchAll(NUMBERS)) {
      this.#mayDiffer(places, start + index, start + index + digits.length, 'digits')
    }
    this.#mayDiffer(places, end, end, 'nothing')
  }

  /** Keeps the value at the cursor as the service tier, if it is a name. */
  protected keepTier(buf: Buffer): void {
    const { cursor } = this
    const isName = cursor.isString()
    if (!cursor.skip() || !isName || cursor.valueEnd - cursor.valueStart > MAX_TIER_BYTES) return
    // Many vendors repeat it in each chunk.
    if (bytesEqual(buf, cursor.valueStart + 1, cursor.valueEnd - 1, this.#tier)) return
    this.#tier = ownCopy(buf.subarray(cursor.valueStart + 1, cursor.valueEnd - 1))
  }

  /** The last value that was skipped, as a usage object; NaN if it is too large. */
  protected parsedUsage(): unknown {
    return this.cursor.valueEnd - this.cursor.valueStart <= MAX_USAGE_BYTES ? this.cursor.parsed() : NaN
  }

  /** The reported output includes everything generated so far. Call it when the whole event is read. */
  protected markOutputReported(): void {
    this.#reports = true
    this.#reportedUpTo = this.#totalBytes
    this.uncountable = false
  }

  /** The last usage that was kept, parsed; undefined = none. */
  protected lastUsage(): unknown {
    return this.#usage.length === 0 ? undefined : parseJsonRange(this.#usage.bytes, 0, this.#usage.length)
  }

  /** Keeps the data of an error. Call it with each event that was read. */
  protected keepError({ buf, dataStart, dataEnd }: StreamEvent): void {
    if (!this.sawError || this.errorEvent !== null || dataEnd - dataStart > MAX_ERROR_BYTES) return
    this.errorEvent = buf.toString('utf8', dataStart, dataEnd)
  }

  /** Notes an error if the value at the cursor is one: anything but null. */
  protected errorMember(buf: Buffer): void {
    if (this.cursor.skip() && buf[this.cursor.valueStart] !== LOWER_N) this.sawError = true
  }

  /** Reads the next value as a small count, such as a choice's index; 0 = it is not one. */
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

const hasText = ({ lane }: Place): boolean => lane !== null
