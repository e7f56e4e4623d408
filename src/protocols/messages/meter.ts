import { isObject } from '../../base/is-object.ts'
import { bytesEqual } from '../json/cursor.ts'
import { readUsage, type ReportedUsage } from '../usage/reported-usage.ts'
import { tierIn } from '../usage/service-tier.ts'
import type { StreamEvent } from '../events/stream-event.ts'
import { EventMeter } from '../events/event-meter.ts'
import { MESSAGES_USAGE } from './usage.ts'

const MESSAGE_START = Buffer.from('message_start')
const MESSAGE_DELTA = Buffer.from('message_delta')
const MESSAGE_STOP = Buffer.from('message_stop')
const BLOCK_START = Buffer.from('content_block_start')
const BLOCK_DELTA = Buffer.from('content_block_delta')
const ERROR = Buffer.from('error')
const TYPE = Buffer.from('type')
const MESSAGE = Buffer.from('message')
const USAGE = Buffer.from('usage')
const INDEX = Buffer.from('index')
const DELTA = Buffer.from('delta')
const CONTENT_BLOCK = Buffer.from('content_block')
const TEXT = Buffer.from('text')
const THINKING = Buffer.from('thinking')
const PARTIAL_JSON = Buffer.from('partial_json')
const NAME = Buffer.from('name')
const DATA = Buffer.from('data')
/** Fields that `message_start` reports too early: they count only the first one or two tokens. */
const OUTPUT_FIELDS = new Set(['output_tokens', 'output_tokens_details'])

/**
 * Meters streams of messages: `message_start` with the usage of the input, then blocks, then `message_delta` with counts that replace
 * earlier counts.
 */
export class MessagesMeter extends EventMeter {
  #fields: Map<string, unknown> | null = null
  #suspect = false

  reading(): ReportedUsage | null {
    if (this.#fields === null) return null
    const reading = readUsage(MESSAGES_USAGE, Object.fromEntries(this.#fields), this.terminated === true)
    return reading && { ...reading, suspect: reading.suspect || this.#suspect }
  }

  override get serviceTier(): string | null {
    return this.#fields && tierIn(Object.fromEntries(this.#fields))
  }

  protected read({ buf, dataStart, dataEnd, nameStart, nameEnd }: StreamEvent): void {
    const { cursor } = this
    // The event's name decides the type, as in Anthropic's SDK. Without a name, the member `type` decides.
    if (nameEnd > nameStart) return this.#dispatch(buf, nameStart, nameEnd, dataStart, dataEnd)
    cursor.reset(buf, dataStart, dataEnd)
    if (!cursor.beginObject()) return
    while (cursor.nextMember()) {
      if (cursor.keyIs(TYPE) && cursor.string()) return this.#dispatch(buf, cursor.valueStart, cursor.valueEnd, dataStart, dataEnd)
      cursor.skip()
    }
  }

  #dispatch(buf: Buffer, typeStart: number, typeEnd: number, start: number, end: number): void {
    const { cursor } = this
    cursor.reset(buf, start, end)
    if (bytesEqual(buf, typeStart, typeEnd, BLOCK_DELTA)) this.#block(DELTA, buf)
    else if (bytesEqual(buf, typeStart, typeEnd, BLOCK_START)) this.#block(CONTENT_BLOCK, buf)
    else if (bytesEqual(buf, typeStart, typeEnd, MESSAGE_START)) this.#messageStart()
    else if (bytesEqual(buf, typeStart, typeEnd, MESSAGE_DELTA)) this.#usageMember(false)
    else if (bytesEqual(buf, typeStart, typeEnd, MESSAGE_STOP)) this.terminated = true
    else if (bytesEqual(buf, typeStart, typeEnd, ERROR)) this.sawError = true
  }

  #messageStart(): void {
    const { cursor } = this
    if (!cursor.beginObject()) return
    while (cursor.nextMember()) {
      if (cursor.keyIs(MESSAGE) && cursor.isObject()) this.#usageMember(true)
      else cursor.skip()
    }
  }

  /** Merges the `usage` of the object at the cursor into the usage so far. */
  #usageMember(start: boolean): void {
    const { cursor } = this
    if (!cursor.beginObject()) return
    while (cursor.nextMember()) {
      const wanted = cursor.keyIs(USAGE)
      if (cursor.skip() && wanted) this.#mergeUsage(this.parsedUsage(), start)
    }
  }

  #mergeUsage(usage: unknown, start: boolean): void {
    if (usage === null) return
    if (!isObject(usage)) {
      this.#suspect = true
      return
    }
    this.#fields ??= new Map()
    for (const [name, value] of Object.entries(usage)) {
      if (value !== null && !(start && OUTPUT_FIELDS.has(name))) this.#fields.set(name, value)
    }
    if (!start && usage.output_tokens !== undefined && usage.output_tokens !== null) this.markOutputReported()
  }

  /** Reads the start or a delta of a content block. */
  #block(part: Buffer, buf: Buffer): void {
    const { cursor } = this
    let index = 0
    if (!cursor.beginObject()) return
    while (cursor.nextMember()) {
      if (cursor.keyIs(INDEX)) index = this.index(buf)
      else if (cursor.keyIs(part) && cursor.beginObject()) this.#texts(index, buf)
      else cursor.skip()
    }
  }

  #texts(index: number, buf: Buffer): void {
    const { cursor } = this
    while (cursor.nextMember()) {
      if (cursor.keyIs(TEXT)) this.text('content', index, buf)
      else if (cursor.keyIs(THINKING)) this.text('reasoning', index, buf)
      else if (cursor.keyIs(PARTIAL_JSON)) this.text('tool', index, buf)
      else {
        // Only the start of a tool call has `name`, and only redacted thinking has `data`.
        if (cursor.keyIs(NAME) || cursor.keyIs(DATA)) this.sawContent = true
        cursor.skip()
      }
    }
  }
}
