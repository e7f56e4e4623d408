import type { ReserveMemory } from '../../base/memory-reservation.ts'
import { ownCopy } from '../../base/own-copy.ts'
import { JsonCursor, bytesEqual, parseJsonRange } from '../json/cursor.ts'
import { GeneratedText, type TextSample, type TextKind } from './generated-text.ts'
import { GrowingBytes } from './growing-bytes.ts'
import { MAX_PLACES, RepeatedEvent, type Place, type TextLane } from './repeated-event.ts'
import type { ReportedUsage } from '../usage/reported-usage.ts'
import { tierIn, normaliseTier } from '../usage/service-tier.ts'
import type { EventReader, EventSink, StreamEvent } from './stream-event.ts'

/** Measures a streamed response. An event that differs from the previous one only in text is not parsed; usage is parsed on demand. */
export interface StreamMeter {
  /** Creates the reader of a decompressed stream. @param sink the meter itself, or a sink that passes each event on to it */
  createReader(sink: EventSink): EventReader
  event(event: StreamEvent): void
  /** The protocol's own end arrived; null = the protocol has none, and HTTP's end is the end. */
  readonly terminated: boolean | null
  /** The bytes that the client still needs if the stream ends now and the response is complete; null = more is missing. */
  readonly missingEnd: Buffer | null
  readonly sawError: boolean
  /** Data of the event with the error; null = none, or it was too long. */
  readonly errorEvent: string | null
  /** Text, a tool call, audio or an image arrived. */
  readonly sawContent: boolean
  /** No output has arrived since the upstream last reported the output. */
  readonly isOutputReported: boolean
  /** Some output since that report is not text: only the upstream can tell its tokens. */
  readonly uncountable: boolean
  /** Usage reported so far; null = none. */
  reading(): ReportedUsage | null
  /** The tier in which the upstream says it serves the response, in lower case: `flex`; null = not said. */
  readonly serviceTier: string | null
  /** Bytes of generated text so far, as sent. */
  readonly generatedBytes: Readonly<Record<TextKind, number>>
  /** The text generated so far, for counting. */
  partial(): TextSample
}

export interface MeterLimits {
  readonly textLimit: number
  readonly maxEvent: number
  readonly reserveMemory: ReserveMemory | undefined
}

// A usage object is a few hundred bytes; one of this size is an error of the upstream.
const MAX_USAGE_BYTES = 64 * 1024
const MAX_ERROR_BYTES = 64 * 1024
// A tier's name is a word or two.
const MAX_TIER_BYTES = 64
const INVALID_USAGE = Buffer.from('"nonsense"')
const NO_TIER = Buffer.alloc(0)
const LOWER_N = 0x6e
const QUOTE = 0x22
const NINE = 0x39
const NUMBERS = /\d+/g
/** Events in a row that are remembered without a repetition. A repetition starts the count again. */
const MAX_ATTEMPTS = 8

/** Base of the meters of all known protocols. */
export abstract class ProtocolMeter implements StreamMeter {
  sawError = false
  errorEvent: string | null = null
  sawContent = false
  uncountable = false
  abstract readonly terminated: boolean | null
  protected readonly cursor = new JsonCursor()
  /** The meter recognises repeated events. Only for meters that count nothing but text and usage. */
  protected readonly remembersEvents: boolean = true
  /** The last event; null = none is remembered. */
  #repeated: RepeatedEvent | null = null
  /** Places that may differ in the event being parsed; null = the event will not be remembered. */
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

  /** Takes the event if it repeats the last one. false = parse it, and then call `remember`. */
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

  /** Reads generated text, if the value at the cursor is a string. */
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

  /** Notes output that is not text, or is unreadable. */
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

  /** The last skipped value, as a usage object; NaN if it is too large. */
  protected parsedUsage(): unknown {
    return this.cursor.valueEnd - this.cursor.valueStart <= MAX_USAGE_BYTES ? this.cursor.parsed() : NaN
  }

  /** The reported output includes everything generated so far. Call it after the whole event is read. */
  protected markOutputReported(): void {
    this.#reports = true
    this.#reportedUpTo = this.#totalBytes
    this.uncountable = false
  }

  /** undefined = none was kept. */
  protected lastUsage(): unknown {
    return this.#usage.length === 0 ? undefined : parseJsonRange(this.#usage.bytes, 0, this.#usage.length)
  }

  /** Keeps the data of the first error. Call it with each event that was read. */
  protected keepError({ buf, dataStart, dataEnd }: StreamEvent): void {
    if (!this.sawError || this.errorEvent !== null || dataEnd - dataStart > MAX_ERROR_BYTES) return
    this.errorEvent = buf.toString('utf8', dataStart, dataEnd)
  }

  /** Notes an error if the value at the cursor is not null. */
  protected errorMember(buf: Buffer): void {
    if (this.cursor.skip() && buf[this.cursor.valueStart] !== LOWER_N) this.sawError = true
  }

  /** Reads the value at the cursor as a small count, such as a choice's index; 0 = not a count. */
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
