import type { IncomingMessage, ServerResponse } from 'node:http'
import { constants } from 'node:http2'
import type { Http2ServerRequest, Http2ServerResponse, ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import type { Clock } from '../base/clock.ts'
import { trimTrailingSpace } from '../base/trailing-space.ts'
import { LAST_CHUNK, isFramed, write } from './chunks.ts'
import { groupHeaders, isNamed } from './raw-headers.ts'

/** A request and its response, over HTTP/1.1 or HTTP/2. */
export type ClientRequest = IncomingMessage | Http2ServerRequest
export type ClientResponse = ServerResponse | Http2ServerResponse

/** The gateway's end of a request's connection; empty = it is disconnected, or no IP connection. */
export function localAddressOf(req: ClientRequest): string {
  if (!('stream' in req)) return req.socket.localAddress ?? ''
  // Node throws when the session is already destroyed.
  const { session } = req.stream
  return session && !session.destroyed ? session.socket.localAddress ?? '' : ''
}

/** Milliseconds that the last bytes of a broken answer may take to leave. */
const ABORT_FLUSH = 5_000

/** Node throws where one of these is sent over HTTP/2 (RFC 9113 section 8.2.2). */
const HTTP1_ONLY = new Set(['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade'])

/** Node ends these with their head: with a length told, that would be malformed (RFC 9113 section 8.1.1). */
const EMPTY = new Set([204, 205])

/**
 * Writes the head of a response.
 *
 * @param headers flat names and values; each may occur more than once
 */
export function writeHead(res: ClientResponse, status: number, headers: string[]): void {
  if (!isHttp2(res)) {
    res.writeHead(status, lengthBehindDisposition(headers))
    return
  }
  const fit: string[] = []
  for (let i = 0; i < headers.length; i += 2) {
    const name = (headers[i] as string).toLowerCase()
    if (HTTP1_ONLY.has(name) || (name === 'content-length' && EMPTY.has(status))) continue
    fit.push(name, trimTrailingSpace(headers[i + 1] as string))
  }
  // The HTTP/2 API takes each name once.
  res.writeHead(status, groupHeaders(fit))
}

const DISPOSITION = 'content-disposition'

/**
 * Node takes a Content-Disposition that stands behind a length for UTF-8, and sends what it makes of that as
 * Latin-1, or throws where it cannot: file names are mostly in UTF-8.
 */
function lengthBehindDisposition(headers: string[]): string[] {
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] as string
    if (name.length !== DISPOSITION.length || name.toLowerCase() !== DISPOSITION) continue
    if (!/[^\0-\x7f]/.test(headers[i + 1] as string)) continue
    const isLength = (part: number) => isNamed(headers[part - (part % 2)] as string, 'content-length')
    return [...headers.filter((_, part) => !isLength(part)), ...headers.filter((_, part) => isLength(part))]
  }
  return headers
}

/** Sends the head alone. Node's own way, `flushHeaders`, sends bytes above 0x7f as UTF-8. */
export function flushHead(res: ServerResponse): void {
  res.write('', 'latin1')
}

/** Bytes that cost less as text in one piece with the head than as a piece of their own. */
const SENT_WITH_HEAD = 16 * 1024

/** As `write`, for the first bytes of a body, which usually leave together with the head. */
export function writeFirst(res: ClientResponse, chunk: Buffer): boolean {
  if (isHttp2(res) || isFramed(res) || chunk.length > SENT_WITH_HEAD) return write(res, chunk)
  return res.write(chunk.toString('latin1'), 'latin1')
}

/** The proper end of either response, written with `write`. */
export function end(res: ClientResponse): void {
  const h1 = res as ServerResponse
  if (isFramed(h1)) h1.end(LAST_CHUNK, 'latin1')
  else h1.end()
}

/**
 * Ends a response that was begun, without the marks of a proper end: no last
 * chunk, no END_STREAM. The client cannot take it for complete. What was written
 * before goes out first, as far as the client takes it.
 *
 * @param finalBytes sent before the end; null = nothing
 */
export function abort(res: ClientResponse, clock: Clock, finalBytes: string | null): void {
  // A client that does not read must not keep the connection for ever.
  const force = clock.setTimeout(() => destroyNow(res), ABORT_FLUSH)
  res.once('close', () => force.cancel())
  const leave = () => breakOff(res)
  if (finalBytes !== null) write(res, Buffer.from(finalBytes), leave)
  // RST_STREAM would overtake what waits to be sent. Not at once: an empty write is reported as done in the middle
  // of sending, and a stream that is closed there ends the process (the assertion of nodejs/node#41458).
  else if (isHttp2(res) && res.stream.writableLength > 0) res.stream.write('', () => setImmediate(leave))
  else leave()
}

/** Ends the connection or stream at once; what was not sent yet is lost. */
export function destroyNow(res: ClientResponse): void {
  if (isHttp2(res)) resetStream(res.stream, constants.NGHTTP2_CANCEL)
  else if (res.socket) res.socket.destroy()
  else res.destroy()
}

function breakOff(res: ClientResponse): void {
  if (isHttp2(res)) {
    resetStream(res.stream, constants.NGHTTP2_INTERNAL_ERROR)
    return
  }
  const { socket } = res
  if (!socket) {
    res.destroy()
  } else if (isFramed(res) || res.chunkedEncoding) {
    // What was written goes out first; then the framing itself tells that more was due.
    socket.destroySoon()
  } else {
    // Where the end of the connection is the end of the body, only a reset tells. Where a length was sent, node-fetch 2
    // (of openai 4 and its time) takes no notice of a connection that is closed, and waits for ever.
    socket.write('', () => underlyingSocket(socket).resetAndDestroy())
  }
}

const RESET_HERE = Symbol('reset here')

interface MarkedStream extends ServerHttp2Stream {
  [RESET_HERE]?: true
}

function resetStream(stream: ServerHttp2Stream | undefined, code: number): void {
  if (stream === undefined) return
  ;(stream as MarkedStream)[RESET_HERE] = true
  stream.close(code)
}

/** Did the client end a stream that is closed, by a reset or with its connection, and not this side? */
export function wasAbandoned(stream: ServerHttp2Stream): boolean {
  const isReset = stream.aborted || stream.rstCode !== constants.NGHTTP2_NO_ERROR
  return isReset && (stream as MarkedStream)[RESET_HERE] !== true
}

/** Node throws where TLS is to be reset, and has no public name for what is below it. */
function underlyingSocket(socket: Socket): Socket {
  return (socket as { _parent?: Socket })._parent ?? socket
}

export function isHttp2(res: ClientResponse): res is Http2ServerResponse {
  return 'stream' in res
}
