import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import http2, { constants } from 'node:http2'
import type { ClientHttp2Session, ClientHttp2Stream, ClientSessionRequestOptions, Http2Session, OutgoingHttpHeaders } from 'node:http2'
import { trimTrailingSpace } from '../base/trailing-space.ts'

const { NGHTTP2_CANCEL, NGHTTP2_NO_ERROR } = constants
/** Codes of resets that node reports as the end of the response. */
const RESETS_REPORTED_AS_END = new Set<number>([NGHTTP2_NO_ERROR, NGHTTP2_CANCEL])
/** Node publishes each HTTP/2 stream that it creates as a client (from 24.2 on). */
const CREATED = 'http2.client.stream.created'
const { connect } = http2
const SESSION_OPTIONS = {
  /** Megabytes, never reached: server.body_memory limits what is sent upstream. */
  maxSessionMemory: 1_000_000,
  /** A header that the client sent twice is forwarded twice: the upstream decides about it. */
  strictSingleValueFields: false,
}
/** Milliseconds in which a live peer responds to a PING, after all data sent before it. */
const PING_TIMEOUT = 30_000
/** The property of a session with the timer of its running PING. */
const PROBE = Symbol('probe')

/**
 * Fixes eight faults of HTTP/2 to upstreams, for the whole process. Written for node 26.10.0 and for undici 8.12.4.
 * - undici aborts a request by closing its stream with NO_ERROR, and destroys it. If a part of the body is unsent, node then writes empty
 *   frames for ever, and blocks the process. Any other code ends the stream at once.
 * - Node reports as complete a response that the upstream resets with CANCEL, or with NO_ERROR as proxies do when their upstream breaks.
 * - After trailers, undici drops the unread data of a paused response, and reports the response as complete.
 * - A response that ends before its request leaves the stream open until the request is sent. If the peer does not read it, the stream
 *   stays in use, and the peer limits the number of streams.
 * - If more than 10 MB of bodies are unsent, node refuses all new responses (ENHANCE_YOUR_CALM); undici has no option for that limit.
 * - Node refuses a request with some headers twice (User-Agent and user-agent), and undici reports an error of the connection.
 * - undici joins the values of a header with commas. After an empty value a space remains, for which the peer drops the whole header.
 * - A connection that died silently gets requests for minutes. undici sends a PING only when its own timeouts fire, which are off here.
 */
export function fixHttp2Streams(): void {
  Object.assign(http2, { connect: connectFixed })
  unsubscribe(CREATED, fixStream)
  subscribe(CREATED, fixStream)
}

function connectFixed(...[authority, options, listener]: Parameters<typeof connect>) {
  const session = connect(authority, { ...SESSION_OPTIONS, ...options }, listener)
  session.request = requestFixed as typeof session.request
  return session
}

/** @param headers undici's own, made for this request */
function requestFixed(this: ClientHttp2Session, headers: OutgoingHttpHeaders, options?: ClientSessionRequestOptions): ClientHttp2Stream {
  const { request } = Object.getPrototypeOf(this) as ClientHttp2Session
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value === 'string') headers[name] = trimTrailingSpace(value)
  }
  return request.call(this, headers, options).once('end', closeUnfinished)
}

function fixStream(message: unknown): void {
  const { stream } = message as { stream: ClientHttp2Stream }
  stream.close = cancel
  stream.push = pushUpToEnd
  stream.on('response', ignoreTrailers)
}

function cancel(this: ClientHttp2Stream, code: number = NGHTTP2_CANCEL, callback?: () => void): void {
  const { close } = Object.getPrototypeOf(this) as ClientHttp2Stream
  close.call(this, code, callback)
  if (!this.readableEnded) probe(this.session)
}

/** After an aborted request, checks if the peer is alive: if not, later requests need another connection. */
function probe(session: (Http2Session & { [PROBE]?: NodeJS.Timeout }) | undefined): void {
  if (!session || session.closed || session.destroyed || session[PROBE]) return
  const timer = setTimeout(() => {
    // With this code undici keeps the requests that it has not sent yet.
    session.destroy(Object.assign(new Error('the peer does not answer any more'), { code: 'UND_ERR_SOCKET' }))
  }, PING_TIMEOUT).unref()
  session[PROBE] = timer
  session.ping(() => {
    clearTimeout(timer)
    delete session[PROBE]
  })
}

/** The gateway needs no trailers, and undici, which listens to them by now, must not get them. */
function ignoreTrailers(this: ClientHttp2Stream): void {
  this.removeAllListeners('trailers')
}

/** A peer can tell that it does not need the rest of the request (RFC 9113 section 8.1), but not all do. */
function closeUnfinished(this: ClientHttp2Stream): void {
  if (this.writableFinished) return
  // `close` is emitted after the end of a stream.
  setImmediate(() => {
    if (!this.closed) this.close(NGHTTP2_CANCEL)
  })
}

/** END_STREAM is reported while the stream is open: an end at its close means that it was cut (RFC 9113 section 8.1). */
function pushUpToEnd(this: ClientHttp2Stream, chunk: unknown, encoding?: BufferEncoding): boolean {
  const { push } = Object.getPrototypeOf(this) as ClientHttp2Stream
  if (chunk === null) {
    // A proper end is reported again when the stream closes.
    this.push = push
    // Before any other listener of the end.
    if (this.closed && RESETS_REPORTED_AS_END.has(this.rstCode)) this.prependListener('end', emitResetError)
  }
  return push.call(this, chunk, encoding)
}

function emitResetError(this: ClientHttp2Stream): void {
  // A caller that ended the stream itself may have removed its listener.
  if (this.listenerCount('error') === 0) return
  const error = new Error('the stream was reset in the middle of a response')
  this.emit('error', Object.assign(error, { code: 'ERR_HTTP2_STREAM_ERROR' }))
}
