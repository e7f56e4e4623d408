import type { ReserveMemory } from '../../base/memory-reservation.ts'
import { ownCopy } from '../../base/own-copy.ts'
import { JsonCursor, bytesEqual, parseJsonRange } from '../json/cursor.ts'
import { GeneratedText, type TextSample, type TextKind } from './generated-text.ts'
import { GrowingBytes } from './growing-bytes.ts'
import { MAX_PLACES, RepeatedEvent, type Place, type TextLane } from './repeated-event.ts'
import type { ReportedUsage } from '../usage/reported-usage.ts'
import { tierIn, normaliseTier } from '../usage/service-tier.ts'
import type { EventReader, EventSink, StreamEvent } from './stream-event.ts'

/** Meters a streamed response. An event that differs from the previous event only in text is not parsed. Usage is parsed on demand. */
export interface StreamMeter {
  /** Creates the reader of a decompressed stream. @param sink the meter itself, or a sink that passes each event to the meter */
  createReader(sink: EventSink): EventReader
  event(event: StreamEvent): void
  /** true if the end that the protocol defines has arrived; null = the protocol defines none, so the end of the HTTP body is the end. */
  readonly terminated: boolean | null
  /** If the stream ends now, the bytes that complete the client's response; null = more than the protocol's end is missing. */
  readonly missingEnd: Buffer | null
  readonly sawError: boolean
  /** Data of the event that reports an error; null = no such event, or its data is too long. */
  readonly errorEvent: string | null
  /** true if text, a tool call, audio or an image has arrived. */
  readonly sawContent: boolean
  /** true if no output has arrived since the upstream last reported the number of output tokens. */
  readonly isOutputReported: boolean
  /** true if some output since the last report is not text, so that only the upstream knows the number of its tokens. */
  readonly uncountable: boolean
  /** Usage that the upstream has reported so far; null = none. */
  reading(): ReportedUsage | null
  /** The tier in which the upstream serves the response, in lower case, such as `flex`; null = the upstream did not report a tier. */
  readonly serviceTier: string | null
  /** Bytes of generated text so far, as the upstream sent them. */
  readonly generatedBytes: Readonly<Record<TextKind, number>>
  /** The text generated so far, from which tokens can be counted. */
  partial(): TextSample
}

export interface MeterLimits {
  readonly textLimit: number
  readonly maxEvent: number
  readonly reserveMemory: ReserveMemory | undefined
}

// A usage object has a few hundred bytes. A larger object is an error of the upstream.
const MAX_USAGE_BYTES = 64 * 1024
const MAX_ERROR_BYTES = 64 * 1024
// A longer name is ignored: the name of a tier is one or two words.
const MAX_TIER_BYTES = 64
const INVALID_USAGE = Buffer.from('"nonsense"')
const NO_TIER = Buffer.alloc(0)
const LOWER_N = 0x6e
const QUOTE = 0x22
const NINE = 0x39
const NUMBERS = /\d+/g
/** Maximum number of successive events that are remembered although none repeats. A repetition resets the count. */
const MAX_ATTEMPTS = 8

/** Base class of the meters of all known protocols. */
export abstract class ProtocolMeter implements StreamMeter {
  sawError = false
  errorEvent: string | null = null
  sawContent = false
  uncountable = false
  abstract readonly terminated: boolean | null
  protected readonly cursor = new JsonCursor()
  /** true if the meter recognises repeated events. Only for meters that count nothing except text and usage. */
  protected readonly remembersEvents: boolean = true
  /** The event that later events may repeat; null = no event is remembered. */
  #repeated: RepeatedEvent | null = null
  /** Places that may differ in the current event; null = the event will not be remembered. */
  #places: Place[] | null = null
  #dataStart = 0
  #attempts = MAX_ATTEMPTS
  /** true if the current event reports the number of output tokens. */
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
   * Tells whether the event repeats the remembered event, and if so, counts its text. false = parse the event, and then call `remember`.
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

  protected remember(event: StreamEvent): void {
    const places = this.#places
    const before = this.#repeated
    this.#places = this.#repeated = null
    // Do not remember an event without text, because it rarely repeats.
    if (places === null || !places.some(hasText) || this.sawError || this.terminated === true) return
    this.#attempts--
    this.#repeated = RepeatedEvent.of(event, places, before)
  }

  /** Forgets the current event: events like it must be parsed each time. */
  protected notRepeatable(): void {
    this.#places = this.#repeated = null
  }

  /** Skips a value that has no meaning for the meter. */
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

  /** Counts the value at the cursor as generated text if the value is a string. */
  protected text(kind: TextKind, index: number, buf: Buffer): void {
    const { cursor } = this
    if (cursor.string()) this.textAt(kind, index, true, buf, cursor.valueStart, cursor.valueEnd)
    else cursor.skip()
  }

  protected textAt(kind: TextKind, index: number, escaped: boolean, buf: Buffer, start: number, end: number): void {
    if (end <= start) return
    if (!escaped) this.#places = null
    else if (this.#places !== null) this.#mayDiffer(this.#places, start, end, 'string', { kind, index })
    this.sawContent = true
    this.#totalBytes += end - start
    this.#text.append(kind, index, escaped, buf, start, end)
  }

  /** Records that output arrived that is not text, or is unreadable. */
  protected noteUncountable(): void {
    this.sawContent = true
    this.uncountable = true
  }

  /** Keeps the value at the cursor as the last usage, unless the value is null. */
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

  /** Keeps the value at the cursor as the service tier, if the value is a name. */
  protected keepTier(buf: Buffer): void {
    const { cursor } = this
    const isName = cursor.isString()
    if (!cursor.skip() || !isName || cursor.valueEnd - cursor.valueStart > MAX_TIER_BYTES) return
    // Many vendors repeat the tier in each chunk.
    if (bytesEqual(buf, cursor.valueStart + 1, cursor.valueEnd - 1, this.#tier)) return
    this.#tier = ownCopy(buf.subarray(cursor.valueStart + 1, cursor.valueEnd - 1))
  }

  /** The last skipped value, parsed as a usage object; NaN = the value is too large. */
  protected parsedUsage(): unknown {
    return this.cursor.valueEnd - this.cursor.valueStart <= MAX_USAGE_BYTES ? this.cursor.parsed() : NaN
  }

  /** Records that the reported output includes all text generated so far. Must be called after the whole event is read. */
  protected markOutputReported(): void {
    this.#reports = true
    this.#reportedUpTo = this.#totalBytes
    this.uncountable = false
  }

  /** The last usage that was kept, parsed; undefined = none was kept. */
  protected lastUsage(): unknown {
    return this.#usage.length === 0 ? undefined : parseJsonRange(this.#usage.bytes, 0, this.#usage.length)
  }

  /** Keeps the data of the event with the first error. Must be called with each event that was read. */
  protected keepError({ buf, dataStart, dataEnd }: StreamEvent): void {
    if (!this.sawError || this.errorEvent !== null || dataEnd - dataStart > MAX_ERROR_BYTES) return
    this.errorEvent = buf.toString('utf8', dataStart, dataEnd)
  }

  /** Records an error if the value at the cursor is not null. */
  protected errorMember(buf: Buffer): void {
    if (this.cursor.skip() && buf[this.cursor.valueStart] !== LOWER_N) this.sawError = true
  }

  /** Reads the value at the cursor as a small number, such as the index of a choice; 0 = not a number. */
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
