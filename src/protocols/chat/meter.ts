import { bytesEqual } from '../json/cursor.ts'
import type { TextKind } from '../events/generated-text.ts'
import { readUsage, type ReportedUsage, type UsageReader } from '../usage/reported-usage.ts'
import type { StreamEvent } from '../events/stream-event.ts'
import { EventMeter } from '../events/event-meter.ts'
import type { MeterLimits } from '../events/stream-meter.ts'

const DONE = Buffer.from('[DONE]')
const DONE_EVENT = Buffer.from('data: [DONE]\n\n')
const FINISH_REASON = Buffer.from('finish_reason')
const USAGE = Buffer.from('usage')
const X_GROQ = Buffer.from('x_groq')
const SERVICE_TIER = Buffer.from('service_tier')
const ERROR = Buffer.from('error')
const CHOICES = Buffer.from('choices')
const INDEX = Buffer.from('index')
const DELTA = Buffer.from('delta')
const TEXT = Buffer.from('text')
const CONTENT = Buffer.from('content')
const REFUSAL = Buffer.from('refusal')
const REASONING_CONTENT = Buffer.from('reasoning_content')
const REASONING = Buffer.from('reasoning')
const REASONING_TEXT = Buffer.from('reasoning_text')
const THINKING = Buffer.from('thinking')
const TOOL_CALLS = Buffer.from('tool_calls')
const FUNCTION_CALL = Buffer.from('function_call')
const FUNCTION = Buffer.from('function')
const CUSTOM = Buffer.from('custom')
const INPUT = Buffer.from('input')
const ARGUMENTS = Buffer.from('arguments')
const AUDIO = Buffer.from('audio')
const IMAGES = Buffer.from('images')
const DATA = Buffer.from('data')
const TRANSCRIPT = Buffer.from('transcript')
const SPACE = 0x20
/** The bit masks hold this many choices: all later choices share the last bit. */
const MAX_CHOICES = 31
/** Each choice has this many numbers for its tool calls: all later calls share the last number. */
const CALLS_PER_CHOICE = 32

/** Meters streams of chat completions and legacy completions: chunks, then `data: [DONE]`. */
export class ChunkMeter extends EventMeter {
  readonly #usageReader: UsageReader
  /** The current event reports usage. */
  #reported = false
  /** Bit masks with one bit for each choice: the choices that began, and the choices with a `finish_reason`. */
  #seen = 0
  #finished = 0

  constructor(usage: UsageReader, limits: MeterLimits) {
    super(limits)
    this.#usageReader = usage
  }

  reading(): ReportedUsage | null {
    return readUsage(this.#usageReader, this.lastUsage())
  }

  /** The end that Perplexity and GPUStack do not send: without `[DONE]`, clients treat a stream as interrupted. */
  override get missingEnd(): Buffer | null {
    return this.terminated === false && this.#seen !== 0 && this.#seen === this.#finished ? DONE_EVENT : null
  }

  protected read({ buf, dataStart, dataEnd }: StreamEvent): void {
    if (isDone(buf, dataStart, dataEnd)) {
      this.terminated = true
      return
    }
    const { cursor } = this
    cursor.reset(buf, dataStart, dataEnd)
    if (!cursor.beginObject()) return
    this.#reported = false
    while (cursor.nextMember()) {
      if (cursor.keyIs(CHOICES) && cursor.beginArray()) this.#choices(buf)
      else if (cursor.keyIs(USAGE)) this.#usage(buf)
      else if (cursor.keyIs(X_GROQ) && cursor.beginObject()) this.#groqUsage(buf)
      else if (cursor.keyIs(SERVICE_TIER)) this.keepTier(buf)
      else if (cursor.keyIs(ERROR)) this.errorMember(buf)
      else this.ignore(buf)
    }
    if (this.#reported) this.markOutputReported()
  }

  #usage(buf: Buffer): void {
    if (this.cursor.isObject()) this.#reported = true
    this.keepUsage(buf)
  }

  /** Reads the usage from `x_groq`, where Groq reports it if the request lacks `include_usage`. */
  #groqUsage(buf: Buffer): void {
    const { cursor } = this
    while (cursor.nextMember()) {
      if (cursor.keyIs(USAGE)) this.#usage(buf)
      else cursor.skip()
    }
  }

  #choices(buf: Buffer): void {
    const { cursor } = this
    while (cursor.nextElement()) {
      if (cursor.beginObject()) this.#choice(buf)
      else cursor.skip()
    }
  }

  #choice(buf: Buffer): void {
    const { cursor } = this
    let choice = 0
    let finished = false
    while (cursor.nextMember()) {
      if (cursor.keyIs(INDEX)) choice = this.index(buf)
      else if (cursor.keyIs(FINISH_REASON) && cursor.isString()) finished = cursor.string() && cursor.valueEnd > cursor.valueStart
      else if (cursor.keyIs(TEXT)) this.#texts('content', choice, buf)
      else if (cursor.keyIs(DELTA) && cursor.beginObject()) this.#delta(choice, buf)
      // Moonshot reports usage in the choice if the request lacks `include_usage`.
      else if (cursor.keyIs(USAGE)) this.#usage(buf)
      else this.ignore(buf)
    }
    const bit = 1 << Math.min(choice, MAX_CHOICES - 1)
    this.#seen |= bit
    if (finished) this.#finished |= bit
  }

  #delta(choice: number, buf: Buffer): void {
    const { cursor } = this
    // Some upstreams send the same reasoning under two names: count it once.
    let reasoned = false
    while (cursor.nextMember()) {
      if (cursor.keyIs(CONTENT) || cursor.keyIs(REFUSAL)) {
        this.#texts('content', choice, buf)
      } else if (cursor.keyIs(REASONING_CONTENT) || cursor.keyIs(REASONING) || cursor.keyIs(REASONING_TEXT)) {
        if (reasoned) cursor.skip()
        else reasoned = this.#texts('reasoning', choice, buf)
      } else if (cursor.keyIs(TOOL_CALLS) && cursor.beginArray()) {
        this.#toolCalls(choice, buf)
      } else if (cursor.keyIs(FUNCTION_CALL) && cursor.beginObject()) {
        this.sawContent = true
        this.#function(choice * CALLS_PER_CHOICE, buf)
      } else if (cursor.keyIs(AUDIO) && cursor.beginObject()) {
        this.sawContent = true
        this.#audio(choice, buf)
      } else if (cursor.keyIs(IMAGES) && cursor.beginArray()) this.#images()
      else this.ignore(buf)
    }
  }

  /** A string, or a list of parts with `text` or, from Mistral, `thinking`. */
  #texts(kind: TextKind, choice: number, buf: Buffer): boolean {
    const { cursor } = this
    if (cursor.isString()) {
      this.text(kind, choice, buf)
      return cursor.valueEnd > cursor.valueStart
    }
    if (!cursor.beginArray()) {
      cursor.skip()
      return false
    }
    while (cursor.nextElement()) {
      if (!cursor.beginObject()) {
        cursor.skip()
        continue
      }
      while (cursor.nextMember()) {
        if (cursor.keyIs(TEXT)) this.text(kind, choice, buf)
        else if (cursor.keyIs(THINKING) && kind === 'content') this.#texts('reasoning', choice, buf)
        else cursor.skip()
      }
    }
    return true
  }

  #toolCalls(choice: number, buf: Buffer): void {
    const { cursor } = this
    while (cursor.nextElement()) {
      this.sawContent = true
      if (!cursor.beginObject()) {
        cursor.skip()
        continue
      }
      let call = 0
      while (cursor.nextMember()) {
        if (cursor.keyIs(INDEX)) call = this.index(buf)
        else if ((cursor.keyIs(FUNCTION) || cursor.keyIs(CUSTOM)) && cursor.beginObject()) {
          this.#function(choice * CALLS_PER_CHOICE + Math.min(call, CALLS_PER_CHOICE - 1), buf)
        } else cursor.skip()
      }
    }
  }

  #function(lane: number, buf: Buffer): void {
    const { cursor } = this
    while (cursor.nextMember()) {
      if (cursor.keyIs(ARGUMENTS) || cursor.keyIs(INPUT)) this.text('tool', lane, buf)
      else cursor.skip()
    }
  }

  /** Images from OpenRouter: the gateway cannot count their tokens. */
  #images(): void {
    while (this.cursor.nextElement()) {
      this.noteUncountable()
      this.cursor.skip()
    }
  }

  #audio(choice: number, buf: Buffer): void {
    const { cursor } = this
    while (cursor.nextMember()) {
      if (cursor.keyIs(TRANSCRIPT)) this.text('content', choice, buf)
      else {
        if (cursor.keyIs(DATA)) this.noteUncountable()
        cursor.skip()
      }
    }
  }
}

/** Tells whether the data is `[DONE]`, with or without white space around it. */
function isDone(buf: Buffer, start: number, end: number): boolean {
  let first = start
  let last = end
  while (first < last && buf[first]! <= SPACE) first++
  while (last > first && buf[last - 1]! <= SPACE) last--
  return bytesEqual(buf, first, last, DONE)
}
