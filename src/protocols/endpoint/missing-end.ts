import { isObject } from '../../base/is-object.ts'
import type { Endpoint } from './protocol.ts'
import { readRequestOptions } from './request-options.ts'
import { SseReader, missingLineEnds } from '../events/sse.ts'

/** The missing part of a response if only the end is missing. */
export interface MissingEnd {
  /** Bytes of the response that are whole events. */
  readonly completeBytes: number
  /** The missing bytes after these events; empty if only HTTP's end is missing. */
  readonly suffix: Buffer
}

/**
 * The missing part of a stream that broke before the client received any of it.
 * @param request the client's body, decompressed JSON
 * @param stream all bytes of the events that arrived, none of them an error
 * @returns null = more than the protocol's end is missing, or this is uncertain
 */
export function missingEndOf({ streams }: Endpoint, request: Buffer, stream: Buffer): MissingEnd | null {
  const asked = readRequestOptions(request)
  // With several responses in one stream, one can be complete while another is not.
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
  // The bytes behind the last whole event may be a part of the missing end.
  const piece = stream.toString('latin1', whole).replaceAll('\r\n', '\n').trim()
  const isAll = () => isClear && dialect.finished && dialect.missing === null
  if (isAll() && dialect.endMarker.startsWith(piece)) return { completeBytes: whole, suffix: Buffer.from(dialect.endMarker) }
  // These bytes may instead be the last needed event without its line ends.
  isLast = false
  reader.end()
  if (!isLast || !isAll()) return null
  const rest = Buffer.concat([missingLineEnds(stream.subarray(whole)), Buffer.from(dialect.endMarker)])
  return { completeBytes: stream.length, suffix: rest }
}
