import type { IncomingMessage, ServerResponse } from 'node:http'
import { constants, type Http2ServerRequest, type Http2ServerResponse, type ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import type { Clock } from '../../base/clock.ts'
import { trimTrailingSpace } from '../../base/trailing-space.ts'
import { LAST_CHUNK, isFramed, write } from '../http/chunks.ts'
import { groupHeaders, isNamed } from '../http/raw-headers.ts'

/** A request and its response, over HTTP/1.1 or HTTP/2. */
export type ClientRequest = IncomingMessage | Http2ServerRequest
export type ClientResponse = ServerResponse | Http2ServerResponse

/** The gateway's address on the connection of a request; empty = disconnected, or not an IP connection. */
export function localAddressOf(req: ClientRequest): string {
  if (!('stream' in req)) return req.socket.localAddress ?? ''
  // Node throws when the session is already destroyed.
  const { session } = req.stream
  return session && !session.destroyed ? session.socket.localAddress ?? '' : ''
}

/** Milliseconds in which the last bytes of a broken response must be sent. */
const ABORT_FLUSH = 5_000

/** HTTP/1.1 headers for which node throws over HTTP/2 (RFC 9113 section 8.2.2). */
const HTTP1_ONLY = new Set(['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade'])

/** Statuses without a body. Over HTTP/2, such a response is malformed with a Content-Length (RFC 9113 section 8.1.1). */
const EMPTY = new Set([204, 205])

/** @param headers flat; a name may occur more than once */
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
  // The HTTP/2 API accepts each name only once.
  res.writeHead(status, groupHeaders(fit))
}

const DISPOSITION = 'content-disposition'

/** Puts Content-Length last: node would read a Content-Disposition after it as UTF-8, and send other bytes or throw. */
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

/** Sends the head as Latin-1. Node's `flushHeaders` would send bytes above 0x7f as UTF-8. */
export function flushHead(res: ServerResponse): void {
  res.write('', 'latin1')
}

/** Bytes. A chunk up to this size is written as text together with the head, because that is faster than a separate write. */
const SENT_WITH_HEAD = 16 * 1024

/** Like `write`, but sends the first bytes of a body together with the head if possible. */
export function writeFirst(res: ClientResponse, chunk: Buffer): boolean {
  if (isHttp2(res) || isFramed(res) || chunk.length > SENT_WITH_HEAD) return write(res, chunk)
  return res.write(chunk.toString('latin1'), 'latin1')
}

/** Ends the response properly, after the last `write`. */
export function end(res: ClientResponse): void {
  const h1 = res as ServerResponse
  if (isFramed(h1)) h1.end(LAST_CHUNK, 'latin1')
  else h1.end()
}

/**
 * Ends a response without the marks of a proper end (last chunk, END_STREAM), so that the client detects that the response is incomplete.
 * The client still gets the bytes that were written before. @param finalBytes more bytes to send before the end; null = none
 */
export function abort(res: ClientResponse, clock: Clock, finalBytes: string | null): void {
  // A client that does not read must not keep the connection open forever.
  const force = clock.setTimeout(() => destroyNow(res), ABORT_FLUSH)
  res.once('close', () => force.cancel())
  const leave = () => breakOff(res)
  if (finalBytes !== null) write(res, Buffer.from(finalBytes), leave)
  // Wait until the bytes are sent, because node sends RST_STREAM before waiting bytes. Use `setImmediate`, because the callback of an empty
  // write runs while node sends, and closing the stream at that moment aborts the process (nodejs/node#41458).
  else if (isHttp2(res) && res.stream.writableLength > 0) res.stream.write('', () => setImmediate(leave))
  else leave()
}

/** Ends the connection or stream at once; bytes that were not sent are lost. */
export function destroyNow(res: ClientResponse): void {
  if (isHttp2(res)) resetStream(res.stream, constants.NGHTTP2_CANCEL)
  else if (res.socket) res.socket.destroy()
  else res.destroy()
}

function breakOff(res: ClientResponse): void {
  if (isHttp2(res)) return resetStream(res.stream, constants.NGHTTP2_INTERNAL_ERROR)
  const { socket } = res
  if (!socket) {
    res.destroy()
  } else if (isFramed(res) || res.chunkedEncoding) {
    // The missing last chunk shows that the body is incomplete.
    socket.destroySoon()
  } else {
    // Reset the connection: without Content-Length, a close would look like a proper end, and with it node-fetch 2 would wait forever.
    socket.write('', () => underlyingSocket(socket).resetAndDestroy())
  }
}

const RESET_HERE = Symbol('reset here')

interface MarkedStream extends ServerHttp2Stream { [RESET_HERE]?: true }

function resetStream(stream: ServerHttp2Stream | undefined, code: number): void {
  if (stream === undefined) return
  ;(stream as MarkedStream)[RESET_HERE] = true
  stream.close(code)
}

/** @returns true = the client ended this closed stream, by resetting it or by closing its connection */
export function wasAbandoned(stream: ServerHttp2Stream): boolean {
  const isReset = stream.aborted || stream.rstCode !== constants.NGHTTP2_NO_ERROR
  return isReset && (stream as MarkedStream)[RESET_HERE] !== true
}

/** @returns the TCP socket below TLS, because node throws if a TLS socket is reset. Node has no public name for it */
function underlyingSocket(socket: Socket): Socket {
  return (socket as { _parent?: Socket })._parent ?? socket
}

export function isHttp2(res: ClientResponse): res is Http2ServerResponse {
  return 'stream' in res
}
