import { parseBounded } from '../../base/json-size.ts'

const NO_BYTES = Buffer.alloc(0)
/** The value was not parsed yet. */
const NOT_PARSED = Symbol('not parsed')

/** The content of an event, apart from the position of its bytes. */
export interface EventContent {
  /** The data as text, without white space around it. */
  readonly text: string
  /** The data as JSON; undefined = it is not JSON, or too large to parse. */
  readonly value: unknown
}

/**
 * One unit of a streamed response. A reader reuses one object for all events: it is valid only during the callback.
 * `start` and `end` are offsets in the whole stream. The bytes between them are the event with everything that
 * belongs to it, so that a later stage can remove it.
 *
 * The data is decoded and parsed when a stage first asks for it, and at most once.
 */
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
  /** False if the stream ended before the event did. */
  terminated = true
  /** The event is longer than the reader keeps: its data is skipped, and empty here. */
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

  /** Releases the bytes, the text and the value. */
  clear(): void {
    this.buf = NO_BYTES
    this.#text = null
    this.#value = NOT_PARSED
  }
}

/** Takes the events of a stream one after the other. Must not throw, nor call the reader. */
export interface EventSink {
  event(event: StreamEvent): void
}

/** Splits the bytes of a stream into events. */
export interface EventReader {
  /** Reads the next chunk, which may be reused afterwards. */
  push(chunk: Buffer): void
  /** Ends the stream, and reports an event that the end cuts off. Call it once. */
  end(): void
  /** How many bytes were read. */
  readonly offset: number
  /** Offset of the event that has begun and not ended: all events before it are complete. */
  readonly blockStart: number
  /** The bytes so far end with a whole event, and another can follow. */
  readonly atBoundary: boolean
}

/** Reports each chunk as an event, for responses whose format is unknown or not read. */
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

/** What an event is, in any protocol. */
export type EventKind =
  /** It is empty, and keeps the connection alive. */
  | 'ping'
  /** It reports an error. */
  | 'error'
  /** The end marker of the chat protocol. */
  | 'done'
  /** A part of an event, or not JSON. */
  | 'malformed'
  | 'data'

/** Bytes of the longest event that is parsed: no error is larger. */
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

/** Does the event look like data? true = it is data; false = only `kindOf`, which parses, can tell. */
export function looksLikeData({ buf, dataStart, dataEnd, nameStart, nameEnd }: StreamEvent): boolean {
  if (buf[dataEnd - 1] !== CLOSING_BRACE) return false
  const inData = buf.subarray(dataStart, dataEnd).indexOf(ERROR) !== -1
  return !inData && buf.subarray(nameStart, nameEnd).indexOf(ERROR) === -1
}

/** The value of a JSON text; undefined = it is not JSON, or too large for `parseBounded`. */
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
