import { parseBounded } from '../../base/json-size.ts'

const NO_BYTES = Buffer.alloc(0)
const NOT_PARSED = Symbol('not parsed')

export interface EventContent {
  /** The data as text, without white space around it. */
  readonly text: string
  /** The data as JSON; undefined = not JSON, or too large to parse. */
  readonly value: unknown
}

/**
 * One unit of a streamed response, with its offsets in the stream. A reader reuses one object for all events: it is valid only in the
 * callback.
 */
export class StreamEvent implements EventContent {
  /** The data of the event is buf[dataStart, dataEnd). */
  buf: Buffer = NO_BYTES
  dataStart = 0
  dataEnd = 0
  /** The name of the event is buf[nameStart, nameEnd); empty = the event has no name. */
  nameStart = 0
  nameEnd = 0
  start = 0
  end = 0
  /** false = the stream ended inside the event. */
  terminated = true
  /** true if the event is longer than the reader's limit. Then the data is empty. */
  oversize = false
  #text: string | null = null
  #value: unknown = NOT_PARSED

  /** Creates an event from data that is not part of a stream, such as a message of a WebSocket. */
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

/** Receives the events of a stream in order. Must not throw, and must not call the reader. */
export interface EventSink {
  event(event: StreamEvent): void
}

export interface EventReader {
  /** Reads a chunk. The caller may reuse the chunk's memory afterwards. */
  push(chunk: Buffer): void
  /** Ends the stream, and reports the event that the end cuts off, if any. Must be called once. */
  end(): void
  /** Number of bytes read so far. */
  readonly offset: number
  /** Offset of the event that has begun but not ended. */
  readonly blockStart: number
  /** true if the last byte so far ended an event, and another event can follow. */
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
    // `push` has reported every chunk as a whole event.
  }
}

/** `ping` only keeps the connection alive. `done` ends the chat protocol. `malformed` is an incomplete event, or not JSON. */
export type EventKind = 'ping' | 'error' | 'done' | 'malformed' | 'data'

/** Longer events are not parsed: they are data, because no error is that long. */
const MAX_PARSED_EVENT = 16 * 1024 * 1024

/** Parses an event only as far as its kind requires. @param isWhole true if no more than the final blank line is missing */
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

/** @returns true = the event is data; false = unknown, and `kindOf` must parse the event */
export function looksLikeData({ buf, dataStart, dataEnd, nameStart, nameEnd }: StreamEvent): boolean {
  if (buf[dataEnd - 1] !== CLOSING_BRACE) return false
  const inData = buf.subarray(dataStart, dataEnd).indexOf(ERROR) !== -1
  return !inData && buf.subarray(nameStart, nameEnd).indexOf(ERROR) === -1
}

/** Parses JSON text; undefined = not JSON, or too large for `parseBounded`. */
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
