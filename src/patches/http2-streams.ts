import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import http2, { constants } from 'node:http2'
import type {
  ClientHttp2Session, ClientHttp2Stream, ClientSessionRequestOptions, Http2Session, OutgoingHttpHeaders,
} from 'node:http2'
import { trimTrailingSpace } from '../base/trailing-space.ts'

const { NGHTTP2_CANCEL, NGHTTP2_NO_ERROR } = constants
/** Codes of resets that node tells as if the response had ended. */
const RESETS_REPORTED_AS_END = new Set<number>([NGHTTP2_NO_ERROR, NGHTTP2_CANCEL])
/** Node tells of each HTTP/2 stream that it makes as a client (from 24.2 on). */
const CREATED = 'http2.client.stream.created'
const { connect } = http2
const SESSION_OPTIONS = {
  /** Megabytes: more than there ever are, as server.body_memory bounds what goes up. */
  maxSessionMemory: 1_000_000,
  /** What the client sent twice goes up twice: whether it may is the upstream's to say. */
  strictSingleValueFields: false,
}
/** Milliseconds in which a peer that is there answers a PING, behind all that is on its way to it. */
const PING_TIMEOUT = 30_000
/** Where a session has the timer of the PING that is in progress. */
const PROBE = Symbol('probe')

/**
 * Fixes eight faults of HTTP/2 to upstreams, for the whole process. Calling it again does no harm.
 * Written for node 26.10.0 and for undici 8.12.4.
 *
 *   - undici aborts a request by closing its stream with NO_ERROR, and destroys it. Where
 *     a part of the body has not gone out yet, node's native session then packs empty
 *     frames for ever, and the process with it. Any other code ends the stream at once.
 *   - An upstream that cancels its own answer ends it, for node, as if it were whole. So does one that
 *     resets it with NO_ERROR, as proxies do when what is behind them breaks off.
 *   - Once trailers have come, undici drops what a paused answer still has in front of them,
 *     and ends it as if it were whole.
 *   - A response that ends before its request leaves the stream open until the rest is sent. Where the
 *     peer takes none of that, the stream is one less for others, of as many as the peer allows.
 *   - Where more than 10 MB of bodies have not gone out yet, node refuses every response that begins on the
 *     session (ENHANCE_YOUR_CALM), whichever request it is to; undici has no option for that limit.
 *   - Node refuses a request in which a client gave some headers twice (User-Agent and user-agent): none of
 *     the upstream's doing, and undici tells it as an error of the connection.
 *   - undici joins values of one header by commas. Behind an empty one a space is left, for which the peer
 *     drops the whole header.
 *   - A connection that died without a word takes one request after the other for minutes. undici asks for
 *     signs of life when its own timeouts fire, which are off here.
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
function requestFixed(
  this: ClientHttp2Session, headers: OutgoingHttpHeaders, options?: ClientSessionRequestOptions,
): ClientHttp2Stream {
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

/** A request was given up: is anybody there at all? Otherwise the next ones need another connection. */
function probe(session: (Http2Session & { [PROBE]?: NodeJS.Timeout }) | undefined): void {
  if (!session || session.closed || session.destroyed || session[PROBE]) return
  const timer = setTimeout(() => {
    // With this code undici leaves alone what it has not sent yet.
    session.destroy(Object.assign(new Error('the peer does not answer any more'), { code: 'UND_ERR_SOCKET' }))
  }, PING_TIMEOUT).unref()
  session[PROBE] = timer
  session.ping(() => {
    clearTimeout(timer)
    delete session[PROBE]
  })
}

/** They are for nobody: undici, which listens to them by now, must not hear of them. */
function ignoreTrailers(this: ClientHttp2Stream): void {
  this.removeAllListeners('trailers')
}

/** RFC 9113 section 8.1 lets the peer say that it wants no more of the request; not all do. */
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
    // Before anybody else hears of the end.
    if (this.closed && RESETS_REPORTED_AS_END.has(this.rstCode)) this.prependListener('end', emitResetError)
  }
  return push.call(this, chunk, encoding)
}

function emitResetError(this: ClientHttp2Stream): void {
  // Who ended it himself may not listen any more.
  if (this.listenerCount('error') === 0) return
  const error = new Error('the stream was reset in the middle of a response')
  this.emit('error', Object.assign(error, { code: 'ERR_HTTP2_STREAM_ERROR' }))
}
