import { parseBounded } from '../../base/json-size.ts'

const NO_BYTES = Buffer.alloc(0)
/** No JSON value, as the value was not asked for yet. */
const NOT_PARSED = Symbol('not parsed')

/** What an event says, apart from where its bytes stand. */
export interface EventContent {
  /** The data as text, without white space around it. */
  readonly text: string
  /** The data as JSON; undefined = it is none, or too large to be parsed. */
  readonly value: unknown
}

/**
 * One unit of a streamed response. A reader has one of these and reports it again and again: it is valid
 * during the callback alone. `start` and `end` count the bytes of the whole stream, from 0. What lies
 * between is the event with all that belongs to it, so that a later stage can leave it out.
 *
 * Its data is decoded and parsed when a stage first asks for it, and at most once.
 */
export class StreamEvent implements EventContent {
  /** The data is buf[dataStart, dataEnd). */
  buf: Buffer = NO_BYTES
  dataStart = 0
  dataEnd = 0
  /** The event's name is buf[nameStart, nameEnd); empty where it has none. */
  nameStart = 0
  nameEnd = 0
  start = 0
  end = 0
  /** False when the stream ended before the event did. */
  terminated = true
  /** It is longer than the reader keeps: its data is skipped, and empty here. */
  oversize = false
  #text: string | null = null
  #value: unknown = NOT_PARSED

  /** An event that is not part of a stream, as a message of a WebSocket is. */
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
    if (this.#value === NOT_PARSED) this.#value = parseJson(this.text)
    return this.#value
  }

  /** Releases the bytes and what was read of them. */
  clear(): void {
    this.buf = NO_BYTES
    this.#text = null
    this.#value = NOT_PARSED
  }
}

/** Takes the events of a stream, one after the other. Must not throw, nor call the reader. */
export interface EventSink {
  event(event: StreamEvent): void
}

/** Splits the bytes of a stream into events. */
export interface EventReader {
  /** Reads the next chunk, which may be reused afterwards. */
  push(chunk: Buffer): void
  /** Ends the stream, and reports the event that the end cuts off, if any. To be called once. */
  end(): void
  /** Bytes that were read. */
  readonly offset: number
  /** Where in the stream the event begins that has not ended yet: all before it is settled. */
  readonly blockStart: number
  /** What was read ends with a whole event, and another event can follow. */
  readonly atBoundary: boolean
}

/** For responses whose format is not known, or not read: each chunk is an event. */
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

/** What one event of a stream is, whatever the protocol. */
export type EventKind =
  /** It is empty, and keeps the connection alive. */
  | 'ping'
  /** It reports an error. */
  | 'error'
  /** The end marker of the chat protocol. */
  | 'done'
  /** Half of an event, or no JSON. */
  | 'malformed'
  | 'data'

/** Bytes of the longest event that is parsed: an error is never that large. */
const MAX_PARSED_EVENT = 16 * 1024 * 1024

/** Reads enough of an event to tell what it is. @param isWhole it lacks at most the blank line at its end */
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

/** Does it look like data? Then it is; otherwise `kindOf` tells, which parses. */
export function looksLikeData({ buf, dataStart, dataEnd, nameStart, nameEnd }: StreamEvent): boolean {
  if (buf[dataEnd - 1] !== CLOSING_BRACE) return false
  const inData = buf.subarray(dataStart, dataEnd).indexOf(ERROR) !== -1
  return !inData && buf.subarray(nameStart, nameEnd).indexOf(ERROR) === -1
}

/** A JSON text's value; undefined, which no JSON text has, where it is not one, or too large for `parseBounded`. */
export function parseJson(text: string): unknown {
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
