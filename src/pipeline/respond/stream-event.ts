import { eventData } from '../../protocols/shared/sse.ts'
import type { SseEvent } from '../../protocols/shared/sse.ts'

/** What one event of a stream is, whatever the protocol. */
export type EventKind =
  /** It says nothing, and is there to keep the connection alive. */
  | 'ping'
  /** It tells of an error. */
  | 'error'
  /** The chat family's word for the end. */
  | 'done'
  /** Half of an event, or no JSON. */
  | 'malformed'
  | 'data'

/** Reads enough of an event to tell what it is. */
export function kindOf(event: SseEvent): EventKind {
  const { buf, nameStart, nameEnd, terminated, oversize } = event
  // Nothing that is so large is an error.
  if (oversize) return 'data'
  if (!terminated) return 'malformed'
  const name = buf.toString('utf8', nameStart, nameEnd)
  const data = eventData(event)
  if (name === 'ping' || data === '') return 'ping'
  if (data === '[DONE]') return 'done'
  const value = parseJson(data)
  if (value === undefined) return 'malformed'
  const type = name === '' ? member(value, 'type') : name
  if (type === 'ping') return 'ping'
  return type === 'error' || type === 'response.failed' || isPresent(member(value, 'error')) ? 'error' : 'data'
}

const ERROR = Buffer.from('error')
const CLOSING_BRACE = 0x7d

/** Does it look like data? Then it is; otherwise `kindOf` knows, which parses. */
export function looksLikeData({ buf, dataStart, dataEnd, nameStart, nameEnd }: SseEvent): boolean {
  if (buf[dataEnd - 1] !== CLOSING_BRACE) return false
  const inData = buf.subarray(dataStart, dataEnd).indexOf(ERROR) !== -1
  return !inData && buf.subarray(nameStart, nameEnd).indexOf(ERROR) === -1
}

/** A JSON text's value; undefined, which is none, where it is not one. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
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
