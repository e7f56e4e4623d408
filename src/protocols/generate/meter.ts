import { JsonCursor, bytesEqual } from '../json/cursor.ts'
import { readUsage, type ReportedUsage } from '../usage/reported-usage.ts'
import type { EventSink, StreamEvent } from '../events/stream-event.ts'
import { ProtocolMeter, type MeterLimits } from '../events/stream-meter.ts'
import { GenerateReader } from './stream-reader.ts'
import { GENERATE_USAGE } from './usage.ts'

const CANDIDATES = Buffer.from('candidates')
const USAGE_METADATA = Buffer.from('usageMetadata')
const CANDIDATES_TOKEN_COUNT = Buffer.from('candidatesTokenCount')
const PROMPT_FEEDBACK = Buffer.from('promptFeedback')
const BLOCK_REASON = Buffer.from('blockReason')
const ERROR = Buffer.from('error')
const INDEX = Buffer.from('index')
const FINISH_REASON = Buffer.from('finishReason')
const CONTENT = Buffer.from('content')
const PARTS = Buffer.from('parts')
const TEXT = Buffer.from('text')
const THOUGHT = Buffer.from('thought')
const FUNCTION_CALL = Buffer.from('functionCall')
const ARGS = Buffer.from('args')
const EXECUTABLE_CODE = Buffer.from('executableCode')
const CODE = Buffer.from('code')
const INLINE_DATA = Buffer.from('inlineData')
const ZERO = 0x30
const NINE = 0x39
const NO_FINISH = Buffer.from('FINISH_REASON_UNSPECIFIED')
const NO_BLOCK = Buffer.from('BLOCK_REASON_UNSPECIFIED')
const LOWER_T = 0x74
/** The bit masks hold this many candidates: all later candidates share the last bit. */
const MAX_CANDIDATES = 31

/**
 * Meters streams of the generate protocol: server-sent events or one JSON array. The protocol has no end marker. A stream is complete when
 * each candidate has a `finishReason` or the prompt was blocked, and the array is closed, if there is one. A single object is complete when
 * the HTTP message ends.
 */
export class GenerateMeter extends ProtocolMeter {
  readonly #limits: MeterLimits
  #reader: GenerateReader | null = null
  /** Bit masks with one bit for each candidate: the candidates that began, and the candidates with a finish reason. */
  #seen = 0
  #finished = 0
  #blocked = false
  /** true if output other than a thought has arrived. */
  #sawOutput = false
  /** true if the last event was too long to read. */
  #lastWasOversize = false
  /** Number of tool calls so far. The arguments of each call are counted as a separate text. */
  #calls = 0
  /** A second cursor, for a value that is read after the members that surround the value. */
  readonly #inner = new JsonCursor()

  constructor(limits: MeterLimits) {
    super(limits)
    this.#limits = limits
  }

  get terminated(): boolean | null {
    if (this.#reader?.isSingleObject) return null
    const closed = this.#reader?.closed ?? true
    // The oversize event may have been the end of the response.
    if (this.#lastWasOversize && closed) return null
    return closed && (this.#blocked || (this.#seen !== 0 && this.#seen === this.#finished))
  }

  createReader(sink: EventSink): GenerateReader {
    return this.#reader = new GenerateReader(sink, this.#limits)
  }

  /** An absent count of candidate tokens means 0 only at the end of a response without output. */
  reading(): ReportedUsage | null {
    return readUsage(GENERATE_USAGE, this.lastUsage(), this.terminated === true && !this.#sawOutput)
  }

  event(event: StreamEvent): void {
    const { buf, dataStart, dataEnd, oversize, terminated } = event
    const { cursor } = this
    this.#lastWasOversize = oversize && terminated
    if (oversize) {
      this.noteUncountable()
      this.notRepeatable()
      return
    }
    if (terminated && this.repeats(event)) return
    cursor.reset(buf, dataStart, dataEnd)
    // Ignores an event that the end of the stream cuts, because no client can use the event.
    if (!terminated) {
      if (!cursor.skip()) return
      cursor.reset(buf, dataStart, dataEnd)
    }
    if (!cursor.beginObject()) return
    let counted = false
    while (cursor.nextMember()) {
      if (cursor.keyIs(CANDIDATES) && cursor.beginArray()) this.#candidates(buf)
      else if (cursor.keyIs(USAGE_METADATA)) counted = this.#metadata(buf)
      else if (cursor.keyIs(PROMPT_FEEDBACK) && cursor.beginObject()) this.#feedback(buf)
      else if (cursor.keyIs(ERROR)) this.errorMember(buf)
      else cursor.skip()
    }
    if (counted) this.markOutputReported()
    if (this.sawError) this.keepError(event)
    this.remember(event)
  }

  /** @returns true = the usage includes the candidates so far */
  #metadata(buf: Buffer): boolean {
    this.keepUsage(buf)
    const inner = this.#inner
    inner.reset(buf, this.cursor.valueStart, this.cursor.valueEnd)
    if (!inner.beginObject()) return false
    while (inner.nextMember()) {
      if (inner.keyIs(CANDIDATES_TOKEN_COUNT)) return true
      inner.skip()
    }
    return false
  }

  #feedback(buf: Buffer): void {
    const { cursor } = this
    while (cursor.nextMember()) {
      if (cursor.keyIs(BLOCK_REASON)) this.#blocked ||= this.#reason(buf, NO_BLOCK)
      else cursor.skip()
    }
  }

  #candidates(buf: Buffer): void {
    const { cursor } = this
    while (cursor.nextElement()) {
      if (cursor.beginObject()) this.#candidate(buf)
      else cursor.skip()
    }
  }

  #candidate(buf: Buffer): void {
    const { cursor } = this
    let index = 0
    let finished = false
    let contentStart = 0
    let contentEnd = 0
    while (cursor.nextMember()) {
      if (cursor.keyIs(INDEX)) index = this.index(buf)
      else if (cursor.keyIs(FINISH_REASON)) finished = this.#reason(buf, NO_FINISH)
      else {
        const isContent = cursor.keyIs(CONTENT)
        if (!cursor.skip() || !isContent) continue
        contentStart = cursor.valueStart
        contentEnd = cursor.valueEnd
      }
    }
    const bit = 1 << Math.min(index, MAX_CANDIDATES - 1)
    this.#seen |= bit
    this.#finished = finished ? this.#finished | bit : this.#finished & ~bit
    this.#inner.reset(buf, contentStart, contentEnd)
    this.#content(index, buf)
  }

  #content(index: number, buf: Buffer): void {
    const inner = this.#inner
    if (!inner.beginObject()) return
    while (inner.nextMember()) {
      if (!inner.keyIs(PARTS) || !inner.beginArray()) {
        inner.skip()
        continue
      }
      while (inner.nextElement()) {
        if (inner.beginObject()) this.#part(index, buf)
        else inner.skip()
      }
    }
  }

  /** Reads a part. The member `thought` marks the text as a thought, and may follow `text`. */
  #part(index: number, buf: Buffer): void {
    const inner = this.#inner
    let thought = false
    let textStart = 0
    let textEnd = 0
    while (inner.nextMember()) {
      if (inner.keyIs(TEXT) && inner.string()) {
        textStart = inner.valueStart
        textEnd = inner.valueEnd
      } else if (inner.keyIs(THOUGHT)) {
        thought = inner.skip() && buf[inner.valueStart] === LOWER_T
      } else if (inner.keyIs(FUNCTION_CALL) && inner.beginObject()) {
        this.#sawOutput = this.sawContent = true
        this.#member(ARGS, buf)
      } else if (inner.keyIs(EXECUTABLE_CODE) && inner.beginObject()) {
        this.#sawOutput = this.sawContent = true
        this.#member(CODE, buf)
      } else {
        if (inner.keyIs(INLINE_DATA)) {
          this.#sawOutput = true
          this.noteUncountable()
        }
        inner.skip()
      }
    }
    if (textEnd > textStart && !thought) this.#sawOutput = true
    this.textAt(thought ? 'reasoning' : 'content', index, true, buf, textStart, textEnd)
  }

  /** Counts the value of a member as generated text: the inside of a string, or any other JSON as it is. */
  #member(name: Buffer, buf: Buffer): void {
    const inner = this.#inner
    const call = this.#calls++
    this.notRepeatable()
    while (inner.nextMember()) {
      const wanted = inner.keyIs(name)
      const isText = inner.isString()
      if (isText ? !inner.string() : !inner.skip()) return
      if (wanted) this.textAt('tool', call, isText, buf, inner.valueStart, inner.valueEnd)
    }
  }

  /** Tells whether the value is a reason. @param none the reason that means "unspecified" */
  #reason(buf: Buffer, none: Buffer): boolean {
    const { cursor } = this
    if (!cursor.string()) {
      // With `enum-encoding=int` the reason is a number, and 0 means unspecified.
      return cursor.skip() && buf[cursor.valueStart]! > ZERO && buf[cursor.valueStart]! <= NINE
    }
    const { valueStart, valueEnd } = cursor
    return valueEnd > valueStart && !bytesEqual(buf, valueStart, valueEnd, none)
  }
}
