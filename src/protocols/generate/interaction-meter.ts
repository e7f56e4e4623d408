import { bytesEqual } from '../json/cursor.ts'
import type { TextKind } from '../events/generated-text.ts'
import { readUsage, type ReportedUsage } from '../usage/reported-usage.ts'
import type { StreamEvent } from '../events/stream-event.ts'
import { EventMeter } from '../events/event-meter.ts'
import { INTERACTION_USAGE } from './usage.ts'

const EVENT_TYPE = Buffer.from('event_type')
const INDEX = Buffer.from('index')
const DELTA = Buffer.from('delta')
const STEP = Buffer.from('step')
const INTERACTION = Buffer.from('interaction')
const METADATA = Buffer.from('metadata')
const ERROR = Buffer.from('error')
const TEXT = Buffer.from('text')
const CONTENT = Buffer.from('content')
const SUMMARY = Buffer.from('summary')
const ARGUMENTS = Buffer.from('arguments')
const NAME = Buffer.from('name')
const DATA = Buffer.from('data')
const USAGE = Buffer.from('usage')
const TOTAL_USAGE = Buffer.from('total_usage')
const SERVICE_TIER = Buffer.from('service_tier')
const STATUS = Buffer.from('status')
const FAILED = Buffer.from('failed')

/** `interaction.complete` is the older name of `interaction.completed`. */
const END_TYPES = [Buffer.from('interaction.completed'), Buffer.from('interaction.complete')]

/**
 * Meters streams of Gemini's interactions. A stream has steps, each with a start and deltas; then the interaction with the usage; then
 * `[DONE]` (Gemini's API reference, "InteractionSSEEvent").
 */
export class InteractionMeter extends EventMeter {
  // State of the current event.
  #index = 0
  #partStart = 0
  #partEnd = 0
  #sawUsage = false

  reading(): ReportedUsage | null {
    return readUsage(INTERACTION_USAGE, this.lastUsage(), this.terminated === true)
  }

  protected read(event: StreamEvent): void {
    const { buf } = event
    this.terminated ??= false
    this.#index = this.#partStart = this.#partEnd = 0
    this.#sawUsage = false
    if (!this.walk(event)) return
    this.cursor.reset(buf, this.#partStart, this.#partEnd)
    if (this.cursor.beginObject()) this.#texts('content', buf)
    if (this.isOneOf(buf, END_TYPES)) this.terminated = true
    if (this.#sawUsage) this.markOutputReported()
  }

  /** An oversize event may be the last event, because the last event may repeat all images. */
  protected override onOversizeEvent(): void {
    this.terminated = null
  }

  protected override member(buf: Buffer): void {
    const { cursor } = this
    if (cursor.keyIs(EVENT_TYPE) && cursor.string()) {
      this.typeStart = cursor.valueStart
      this.typeEnd = cursor.valueEnd
    } else if (cursor.keyIs(INDEX)) this.#index = this.index(buf)
    else if (cursor.keyIs(INTERACTION) && cursor.beginObject()) this.#interaction(buf)
    else if (cursor.keyIs(METADATA) && cursor.beginObject()) this.#metadata(buf)
    else if (cursor.keyIs(ERROR)) this.errorMember(buf)
    else {
      const isPart = cursor.keyIs(DELTA) || cursor.keyIs(STEP) || cursor.keyIs(CONTENT)
      // Read the text after the walk, because `index` may follow the text.
      if (!cursor.skip() || !isPart) return
      this.#partStart = cursor.valueStart
      this.#partEnd = cursor.valueEnd
    }
  }

  #interaction(buf: Buffer): void {
    const { cursor } = this
    while (cursor.nextMember()) {
      if (cursor.keyIs(USAGE)) this.#usage(buf)
      else if (cursor.keyIs(SERVICE_TIER)) this.keepTier(buf)
      else if (cursor.keyIs(STATUS) && cursor.string()) this.sawError ||= bytesEqual(buf, cursor.valueStart, cursor.valueEnd, FAILED)
      else cursor.skip()
    }
  }

  #metadata(buf: Buffer): void {
    const { cursor } = this
    while (cursor.nextMember()) {
      if (cursor.keyIs(TOTAL_USAGE)) this.#usage(buf)
      else cursor.skip()
    }
  }

  #usage(buf: Buffer): void {
    this.keepUsage(buf)
    this.#sawUsage = true
  }

  /** Reads the members of a delta or of a started step, including nested values. */
  #texts(kind: TextKind, buf: Buffer): void {
    const { cursor } = this
    while (cursor.nextMember()) {
      if (cursor.keyIs(TEXT)) this.text(kind, this.#index, buf)
      else if (cursor.keyIs(ARGUMENTS)) this.#arguments(buf)
      else if (cursor.keyIs(SUMMARY) && cursor.beginArray()) this.#list('reasoning', buf)
      else if (cursor.keyIs(CONTENT) && cursor.beginArray()) this.#list(kind, buf)
      // The summary of a thought arrives in pieces, each a `content` object.
      else if (cursor.keyIs(CONTENT) && cursor.beginObject()) this.#texts('reasoning', buf)
      else {
        // `name` belongs to a tool call; `data` belongs to an image or audio.
        if (cursor.keyIs(NAME)) this.sawContent = true
        else if (cursor.keyIs(DATA)) this.noteUncountable()
        cursor.skip()
      }
    }
  }

  #list(kind: TextKind, buf: Buffer): void {
    const { cursor } = this
    while (cursor.nextElement()) {
      if (cursor.beginObject()) this.#texts(kind, buf)
      else cursor.skip()
    }
  }

  /** Reads arguments: pieces of text, or one object. The object is empty if pieces follow. */
  #arguments(buf: Buffer): void {
    const { cursor } = this
    if (!cursor.isObject()) return this.text('tool', this.#index, buf)
    if (!cursor.skip()) return
    const { valueStart: start, valueEnd: end } = cursor
    if (end - start > '{}'.length) this.textAt('tool', this.#index, false, buf, start, end)
  }
}
