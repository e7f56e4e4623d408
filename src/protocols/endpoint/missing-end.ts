import { isObject } from '../../base/is-object.ts'
import type { Endpoint } from './protocol.ts'
import { readRequestOptions } from './request-options.ts'
import { SseReader, missingLineEnds } from '../events/sse.ts'

/** A response that lacks no more than its end. */
export interface MissingEnd {
  /** How many bytes of it are whole events. */
  readonly completeBytes: number
  /** What it lacks behind them; empty where that is the end of HTTP's message alone. */
  readonly suffix: Buffer
}

/**
 * What a stream lacks that broke before its client has seen any of it.
 *
 * @param request the client's body, decompressed JSON
 * @param stream all that came of the events, none of them an error
 * @returns null where more is missing than the protocol's end, or where that is not certain
 */
export function missingEndOf({ streams }: Endpoint, request: Buffer, stream: Buffer): MissingEnd | null {
  const asked = readRequestOptions(request)
  // One of several may be all there, and the others not.
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
  // What the stream ended in may only be a piece of what is missing.
  const piece = stream.toString('latin1', whole).replaceAll('\r\n', '\n').trim()
  const isAll = () => isClear && dialect.finished && dialect.missing === null
  if (isAll() && dialect.endMarker.startsWith(piece)) return { completeBytes: whole, suffix: Buffer.from(dialect.endMarker) }
  // Or the last event that is needed, which lacks the ends of its lines.
  isLast = false
  reader.end()
  if (!isLast || !isAll()) return null
  const rest = Buffer.concat([missingLineEnds(stream.subarray(whole)), Buffer.from(dialect.endMarker)])
  return { completeBytes: stream.length, suffix: rest }
}
