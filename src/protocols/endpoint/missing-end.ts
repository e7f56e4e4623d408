import { isObject } from '../../base/is-object.ts'
import type { Endpoint } from './protocol.ts'
import { readRequestOptions } from './request-options.ts'
import { SseReader, missingLineEnds } from '../events/sse.ts'

/** What to send to the client if only the end of a response is missing. */
export interface MissingEnd {
  /** Number of bytes of the response up to the end of the last whole event. */
  readonly completeBytes: number
  /** The bytes to send after the complete events; empty if only the end of the HTTP body is missing. */
  readonly suffix: Buffer
}

/**
 * @returns the missing end of a stream that broke before the client received any of the stream
 * @param request the client's body, decompressed JSON
 * @param stream all bytes of the events that arrived, none of them an error
 * @returns null = something else than the protocol's end is missing, or the gateway cannot be sure
 */
export function missingEndOf({ streams }: Endpoint, request: Buffer, stream: Buffer): MissingEnd | null {
  const asked = readRequestOptions(request)
  // If one stream has several responses, some can be complete while others are incomplete.
  if (streams === null || typeof asked === 'string' || streams.asksForSeveral(asked)) return null
  const dialect = streams.createProtocol(asked)
  let isClear = true
  let isLast = false
  const reader = new SseReader({ event: event => {
    const { text, value, oversize } = event
    isLast = isObject(value) && dialect.completes(value)
    if (isObject(value)) dialect.read(value)
    else if (oversize || text !== '') isClear = false
  } })
  reader.push(stream)
  const whole = reader.blockStart
  // The bytes after the last whole event may be the first part of the missing end.
  const piece = stream.toString('latin1', whole).replaceAll('\r\n', '\n').trim()
  const isAll = () => isClear && dialect.finished && dialect.missing === null
  if (isAll() && dialect.endMarker.startsWith(piece)) return { completeBytes: whole, suffix: Buffer.from(dialect.endMarker) }
  // The bytes may instead be the last needed event without the line ends that end the event.
  isLast = false
  reader.end()
  if (!isLast || !isAll()) return null
  const rest = Buffer.concat([missingLineEnds(stream.subarray(whole)), Buffer.from(dialect.endMarker)])
  return { completeBytes: stream.length, suffix: rest }
}
