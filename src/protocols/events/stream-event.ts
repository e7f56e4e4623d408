import { parseBounded } from '../../base/json-size.ts'

const NO_BYTES = Buffer.alloc(0)
const NOT_PARSED = Symbol('not parsed')

export interface EventContent {
  /** Trimmed. */
  readonly text: string
  /** The data as JSON; undefined = not JSON, or too large to parse. */
  readonly value: unknown
}

/** One unit of a streamed response, with its offsets in the whole stream. A reader reuses one object, valid only in the callback. */
export class StreamEvent implements EventContent {
  /** The data is buf[dataStart, dataEnd). */
  buf: Buffer = NO_BYTES
  dataStart = 0
  dataEnd = 0
  /** The event's name is buf[nameStart, nameEnd); empty = it has none. */
  nameStart = 0
  nameEnd = 0
  start = 0
  end = 0
  /** false = the stream ended before the event. */
  terminated = true
  /** The event is longer than the reader keeps: its data is empty here. */
  oversize = false
  #text: string | null = null
  #value: unknown = NOT_PARSED

  /** An event outside a stream, such as a message of a WebSocket. */
  static of(data: Buffer): StreamEvent {
    const event = new StreamEvent()
    event.buf = data
    event.dataEnd = event.end = data.length
    return event
  }

  get text(): string {
    return this.#text ??= this.buf.toString('utf8', this.dataStart, this.dataEnd).trim()
  }

  get value(): unknown {
    if (this.#value === NOT_PARSED) this.#value = parseJsonText(this.text)
    return this.#value
  }

  clear(): void {
    this.buf = NO_BYTES
    this.#text = null
    this.#value = NOT_PARSED
  }
}

/** Takes the events of a stream in order. Must not throw, nor call the reader. */
export interface EventSink {
  event(event: StreamEvent): void
}

export interface EventReader {
  /** The chunk may be reused afterwards. */
  push(chunk: Buffer): void
  /** Ends the stream, and reports an event that the end cuts off. Call it once. */
  end(): void
  /** Bytes read so far. */
  readonly offset: number
  /** Offset of the event that has begun and not ended. */
  readonly blockStart: number
  /** The bytes so far end with a whole event, and another can follow. */
  readonly atBoundary: boolean
}

/** Reports each chunk as an event, for responses in an unknown format. */
export class ChunkReader implements EventReader {
  offset = 0
  readonly atBoundary = false
  readonly #sink: EventSink
  readonly #event = new StreamEvent()

  constructor(sink: EventSink) {
    this.#sink = sink
  }

  get blockStart(): number {
    return this.offset
  }

  push(chunk: Buffer): void {
    const event = this.#event
    event.buf = chunk
    event.start = this.offset
    event.end = this.offset += chunk.length
    event.dataEnd = chunk.length
    this.#sink.event(event)
    event.clear()
  }

  end(): void {
    // Every chunk is a whole event.
  }
}

/** `ping` only keeps the connection alive, `done` ends the chat protocol, `malformed` is a part of an event or not JSON. */
export type EventKind = 'ping' | 'error' | 'done' | 'malformed' | 'data'

/** Maximum bytes of a parsed event: no error is larger. */
const MAX_PARSED_EVENT = 16 * 1024 * 1024

/** Reads enough of an event to tell its kind. @param isWhole at most its final blank line is missing */
export function kindOf(event: StreamEvent, isWhole = event.terminated): EventKind {
  const { buf, nameStart, nameEnd, start, end, oversize } = event
  if (oversize || end - start > MAX_PARSED_EVENT) return 'data'
  if (!isWhole) return 'malformed'
  const name = buf.toString('utf8', nameStart, nameEnd)
  if (name === 'ping' || event.text === '') return 'ping'
  if (event.text === '[DONE]') return 'done'
  const { value } = event
  if (value === undefined) return 'malformed'
  const type = name === '' ? member(value, 'type') : name
  if (type === 'ping') return 'ping'
  return type === 'error' || type === 'response.failed' || isPresent(member(value, 'error')) ? 'error' : 'data'
}

const ERROR = Buffer.from('error')
const CLOSING_BRACE = 0x7d

/** true = the event is data; false = only `kindOf`, which parses, can tell. */
export function looksLikeData({ buf, dataStart, dataEnd, nameStart, nameEnd }: StreamEvent): boolean {
  if (buf[dataEnd - 1] !== CLOSING_BRACE) return false
  const inData = buf.subarray(dataStart, dataEnd).indexOf(ERROR) !== -1
  return !inData && buf.subarray(nameStart, nameEnd).indexOf(ERROR) === -1
}

/** undefined = not JSON, or too large for `parseBounded`. */
export function parseJsonText(text: string): unknown {
  try {
    return parseBounded(text)
  } catch {
    return undefined
  }
}

export function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined
}

export function isPresent(value: unknown): boolean {
  return value !== undefined && value !== null
}
