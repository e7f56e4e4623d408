import { bytesEqual } from '../json/cursor.ts'
import type { TextKind } from '../events/generated-text.ts'
import { readUsage } from '../usage/reported-usage.ts'
import type { ReportedUsage } from '../usage/reported-usage.ts'
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

/** `interaction.complete` is the older name, from before Google introduced steps. */
const END_TYPES = [Buffer.from('interaction.completed'), Buffer.from('interaction.complete')]

/**
 * Streams of Gemini's interactions: steps, each with a start and deltas, then the interaction with its usage. A
 * following `[DONE]` adds nothing.
 *
 * Source: Gemini's API reference, "InteractionSSEEvent".
 */
export class InteractionMeter extends EventMeter {
  // State of the event that is being read.
  #index = 0
  #part: { readonly start: number; readonly end: number } | null = null
  #sawUsage = false

  reading(): ReportedUsage | null {
    return readUsage(INTERACTION_USAGE, this.lastUsage(), this.terminated === true)
  }

  protected read(event: StreamEvent): void {
    const { buf } = event
    this.terminated ??= false
    this.#index = 0
    this.#part = null
    this.#sawUsage = false
    if (!this.walk(event)) return
    if (this.#part !== null) this.#generated(buf, this.#part)
    if (this.isOneOf(buf, END_TYPES)) this.terminated = true
    if (this.#sawUsage) this.markOutputReported()
  }

  /** The last event of a stream may repeat all images, so an oversize event may be the last one. */
  protected override onOversizeEvent(): void {
    this.terminated = null
  }

  protected override member(buf: Buffer): void {
    const { cursor } = this
    if (cursor.keyIs(EVENT_TYPE) && cursor.string()) {
      this.typeStart = cursor.valueStart
      this.typeEnd = cursor.valueEnd
    } else if (cursor.keyIs(INDEX)) {
      this.#index = this.index(buf)
    } else if (cursor.keyIs(INTERACTION) && cursor.beginObject()) {
      this.#interaction(buf)
    } else if (cursor.keyIs(METADATA) && cursor.beginObject()) {
      this.#metadata(buf)
    } else if (cursor.keyIs(ERROR)) {
      this.errorMember(buf)
    } else {
      const isPart = cursor.keyIs(DELTA) || cursor.keyIs(STEP) || cursor.keyIs(CONTENT)
      // The member `index` may follow, so the text is read after the walk.
      if (cursor.skip() && isPart) this.#part = { start: cursor.valueStart, end: cursor.valueEnd }
    }
  }

  #interaction(buf: Buffer): void {
    const { cursor } = this
    while (cursor.nextMember()) {
      if (cursor.keyIs(USAGE)) this.#usage(buf)
      else if (cursor.keyIs(SERVICE_TIER)) this.keepTier(buf)
      else if (cursor.keyIs(STATUS) && cursor.string()) this.#status(buf)
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

  #status(buf: Buffer): void {
    const { valueStart, valueEnd } = this.cursor
    if (bytesEqual(buf, valueStart, valueEnd, FAILED)) this.sawError = true
  }

  #generated(buf: Buffer, { start, end }: { readonly start: number; readonly end: number }): void {
    const { cursor } = this
    cursor.reset(buf, start, end)
    if (cursor.beginObject()) this.#texts('content', buf)
  }

  /** The members of a delta, of a step at its start, or of a value inside them. */
  #texts(kind: TextKind, buf: Buffer): void {
    const { cursor } = this
    while (cursor.nextMember()) {
      if (cursor.keyIs(TEXT)) this.text(kind, this.#index, buf)
      else if (cursor.keyIs(ARGUMENTS)) this.#arguments(buf)
      else if (cursor.keyIs(SUMMARY) && cursor.beginArray()) this.#list('reasoning', buf)
      else if (cursor.keyIs(CONTENT) && cursor.beginArray()) this.#list(kind, buf)
      // A thought's summary arrives in pieces, each with its own content.
      else if (cursor.keyIs(CONTENT) && cursor.beginObject()) this.#texts('reasoning', buf)
      else {
        // A name is the beginning of a tool call.
        if (cursor.keyIs(NAME)) this.sawContent = true
        // `data` is an image or audio.
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

  /** Reads arguments: text in pieces, or an object, which is empty if pieces follow. */
  #arguments(buf: Buffer): void {
    const { cursor } = this
    if (!cursor.isObject()) return this.text('tool', this.#index, buf)
    if (!cursor.skip()) return
    const { valueStart: start, valueEnd: end } = cursor
    if (end - start > '{}'.length) this.textAt('tool', this.#index, false, buf, start, end)
  }
}
