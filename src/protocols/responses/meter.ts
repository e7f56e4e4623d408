import { bytesEqual } from '../json/cursor.ts'
import type { TextKind } from '../events/generated-text.ts'
import { readUsage, type ReportedUsage, type UsageReader } from '../usage/reported-usage.ts'
import type { StreamEvent } from '../events/stream-event.ts'
import { EventMeter } from '../events/event-meter.ts'
import type { MeterLimits } from '../events/stream-meter.ts'
import { blankUsage } from '../usage/usage.ts'

/** How to read the events of one endpoint. Events are distinguished by their `type`. */
export interface TypedEvents {
  /** Types of the events that end the stream. */
  readonly endTypes: readonly Buffer[]
  /** Types of the events that report a failure. */
  readonly errorTypes: readonly Buffer[]
  /** The member of the last event that contains `usage`; null = `usage` is at the top level of the event. */
  readonly usageMember: Buffer | null
  /** true if the last event contains one image. */
  readonly isImage: boolean
}

const DELTA = Buffer.from('delta')
const USAGE = Buffer.from('usage')
const SERVICE_TIER = Buffer.from('service_tier')
const ERROR = Buffer.from('error')
const OUTPUT_INDEX = Buffer.from('output_index')
const RESPONSE = Buffer.from('response')
const DELTA_SUFFIX = Buffer.from('.delta')
const PICTURE_SUFFIX = Buffer.from('partial_image')
const REASONING_PREFIX = Buffer.from('response.reasoning_')
const CONTENT_TYPES = bytesOf(
  'response.output_text.delta', 'response.text.delta', 'response.refusal.delta',
  'response.audio.transcript.delta', 'response.audio_transcript.delta', 'response.output_audio_transcript.delta',
)
/** Types of deltas that are not text of the model: audio, and the output of commands. */
const OTHER_DELTAS = bytesOf('response.audio.delta', 'response.output_audio.delta', 'response.shell_call_output_content.delta')

export const RESPONSE_EVENTS: TypedEvents = {
  endTypes: bytesOf('response.completed', 'response.incomplete', 'response.failed'),
  errorTypes: bytesOf('response.failed', 'error'), usageMember: RESPONSE, isImage: false,
}

/** Events of a session that belong to a response. The meter of the session reads all other events. */
export const REALTIME_EVENTS: TypedEvents = {
  endTypes: bytesOf('response.done'), errorTypes: bytesOf('error'), usageMember: RESPONSE, isImage: false,
}

export const IMAGE_EVENTS: TypedEvents = {
  endTypes: bytesOf('image_generation.completed', 'image_edit.completed'),
  errorTypes: bytesOf('error'), usageMember: null, isImage: true,
}

export const SPEECH_EVENTS: TypedEvents = {
  endTypes: bytesOf('speech.audio.done'), errorTypes: bytesOf('error'), usageMember: null, isImage: false,
}

/** Meters streams of events with a `type`, as in OpenAI's newer APIs: responses, images, speech. */
export class TypedMeter extends EventMeter {
  readonly #usageReader: UsageReader
  readonly #events: TypedEvents
  #images = 0
  // State of the current event.
  #deltaStart = 0
  #deltaEnd = 0
  #index = 0

  constructor(usage: UsageReader, events: TypedEvents, limits: MeterLimits) {
    super(limits)
    this.#usageReader = usage
    this.#events = events
  }

  reading(): ReportedUsage | null {
    const reading = readUsage(this.#usageReader, this.lastUsage())
    if (this.#images === 0) return reading
    return { usage: { ...(reading?.usage ?? blankUsage()), images: this.#images }, suspect: reading?.suspect ?? false }
  }

  protected read(event: StreamEvent): void {
    this.terminated ??= false
    this.#deltaStart = this.#deltaEnd = this.#index = 0
    if (!this.walk(event)) return
    const { buf } = event
    if (this.isOneOf(buf, this.#events.errorTypes)) this.sawError = true
    if (this.isOneOf(buf, this.#events.endTypes)) this.#onEnd(event)
    else if (endsWith(buf, this.typeStart, this.typeEnd, DELTA_SUFFIX)) this.#delta(buf)
    else if (endsWith(buf, this.typeStart, this.typeEnd, PICTURE_SUFFIX)) this.sawContent = true
  }

  /** An oversize event may be the last event, because the last event repeats all content, including images. */
  protected override onOversizeEvent(): void {
    this.terminated = null
  }

  protected override member(buf: Buffer): void {
    const { cursor } = this
    if (cursor.keyIs(DELTA) && cursor.string()) {
      this.#deltaStart = cursor.valueStart
      this.#deltaEnd = cursor.valueEnd
    } else if (cursor.keyIs(OUTPUT_INDEX)) this.#index = this.index(buf)
    else if (cursor.keyIs(ERROR)) this.errorMember(buf)
    else this.ignore(buf)
  }

  #delta(buf: Buffer): void {
    this.sawContent = true
    if (this.isOneOf(buf, OTHER_DELTAS)) return
    this.textAt(this.#kind(buf), this.#index, true, buf, this.#deltaStart, this.#deltaEnd)
  }

  #kind(buf: Buffer): TextKind {
    if (this.isOneOf(buf, CONTENT_TYPES)) return 'content'
    const start = this.typeStart
    return bytesEqual(buf, start, start + REASONING_PREFIX.length, REASONING_PREFIX) ? 'reasoning' : 'tool'
  }

  #onEnd({ buf, dataStart, dataEnd }: StreamEvent): void {
    this.terminated = true
    if (this.#events.isImage) {
      this.#images++
      this.sawContent = true
    }
    const { usageMember } = this.#events
    this.cursor.reset(buf, dataStart, dataEnd)
    if (usageMember === null) this.#usageMember(buf)
    else this.#usageInside(buf, usageMember)
    this.markOutputReported()
  }

  #usageInside(buf: Buffer, name: Buffer): void {
    const { cursor } = this
    if (!cursor.beginObject()) return
    while (cursor.nextMember()) {
      if (cursor.keyIs(name) && cursor.isObject()) this.#usageMember(buf)
      else cursor.skip()
    }
  }

  #usageMember(buf: Buffer): void {
    const { cursor } = this
    if (!cursor.beginObject()) return
    while (cursor.nextMember()) {
      if (cursor.keyIs(USAGE)) this.keepUsage(buf)
      else if (cursor.keyIs(SERVICE_TIER)) this.keepTier(buf)
      else cursor.skip()
    }
  }
}

function endsWith(buf: Buffer, start: number, end: number, suffix: Buffer): boolean {
  return end - start >= suffix.length && bytesEqual(buf, end - suffix.length, end, suffix)
}

function bytesOf(...names: string[]): Buffer[] {
  return names.map(name => Buffer.from(name))
}
