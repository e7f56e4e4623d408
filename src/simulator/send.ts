import type { ServerResponse } from 'node:http'
import type { Behaviour } from './behaviour.ts'
import { responseSink } from './event-sink.ts'
import { play } from './play.ts'
import type { SimulatedResponse, EventStream, CompleteResponse } from './simulated-response.ts'

/** Number of pieces of a whole body. Behaviours can act between two pieces. */
const PIECES = 8
/** Bytes by which `wrong_length` increases the length of a body. */
const EXCESS_LENGTH = 64
/** The length that `wrong_length` announces for a stream. */
const STREAM_LENGTH = 1_000_000_000

/**
 * Sends a response, and applies the behaviours that concern the sending.
 *
 * @param deliberate called before the connection is ended irregularly
 * @returns a function that stops the sending at once
 */
export function send(
  res: ServerResponse, response: SimulatedResponse, behaviour: Behaviour, deliberate: () => void,
): () => void {
  const disturbed = needsStreaming(behaviour)
  if ('body' in response && (!disturbed || isEmpty(response.status))) {
    sendAtOnce(res, response)
    return () => {}
  }
  const [status, script, length] = 'body' in response
    ? [response.status, inPieces(response), lengthOf(response, behaviour)]
    : [200, response, null]
  const headers: Record<string, string | number> = { ...script.headers }
  if (behaviour.gzip) headers['content-encoding'] = 'gzip'
  if (behaviour.wrong_length) headers['content-length'] = length === null ? STREAM_LENGTH : length + EXCESS_LENGTH
  else if (length !== null) headers['content-length'] = length
  res.writeHead(status, headers)
  // Send the head now, because a delay or the end can come before the first byte of the body.
  if (disturbed) res.flushHeaders()
  return play(script, behaviour, responseSink(res, behaviour, script.sse, deliberate))
}

/** Sends a body without failures. */
export function sendAtOnce(res: ServerResponse, { status, headers, body }: CompleteResponse): void {
  if (isEmpty(status)) res.writeHead(status).end()
  else res.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(body) }).end(body)
}

/** Tells whether responses with this status have no content and no length (RFC 9110, section 8.6). */
function isEmpty(status: number): boolean {
  return status === 204 || status === 304
}

/** Tells whether a behaviour changes how the bytes are sent. */
function needsStreaming(b: Behaviour): boolean {
  return b.first_delay !== undefined || b.pace !== undefined || b.split !== undefined || b.gzip === true
    || b.wrong_length === true || b.malformed_after !== undefined || b.stall_after !== undefined
    || b.cut_after !== undefined || b.close_after !== undefined || b.reset_after !== undefined
}

/** Splits a whole body into pieces, so that it can be sent slowly, stalled or cut like a stream. */
function inPieces(response: CompleteResponse): EventStream {
  const bytes = Buffer.from(response.body)
  const size = Math.max(Math.ceil(bytes.length / PIECES), 1)
  const events: Buffer[] = []
  for (let at = 0; at < bytes.length; at += size) events.push(bytes.subarray(at, at + size))
  return { headers: response.headers, sse: false, events, last: null, error: null }
}

/** The content-length. null if the body ends early, so that the HTTP message ends regularly. */
function lengthOf(response: CompleteResponse, behaviour: Behaviour): number | null {
  const { gzip, cut_after: cut, malformed_after: malformed } = behaviour
  if (behaviour.wrong_length) return Buffer.byteLength(response.body)
  return gzip || cut !== undefined || malformed !== undefined ? null : Buffer.byteLength(response.body)
}
