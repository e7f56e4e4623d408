import * as http2 from 'node:http2'
import { MAX_HEADER_BYTES } from './http1.ts'
import type { Http1Handlers } from './http1.ts'

/** Requests under way on one connection. */
const MAX_STREAMS = 1_000
/** Bytes that node counts for one of them: what the relay writes at a time, and then the stream itself. */
const STREAM_BYTES = 80 * 1024

/** A server that listens nowhere: it is handed its connections. */
export function createHttp2Server(handlers: Pick<Http1Handlers, 'onRequest'>): http2.Http2Server {
  const server = http2.createServer({
    settings: { maxConcurrentStreams: MAX_STREAMS, maxHeaderListSize: MAX_HEADER_BYTES },
    // Every stream may have its part of an answer waiting for a slow client, and the session still takes the
    // next request; node's own limit is that of a hundred and fifty.
    maxSessionMemory: Math.ceil((MAX_STREAMS * STREAM_BYTES) / 2 ** 20),
    // As over HTTP/1.1, the size is the limit; node's own would be 128 headers.
    maxHeaderListPairs: MAX_HEADER_BYTES / 32,
    // An upstream may say twice what is to be said once: over HTTP/1.1
    // that passes, and here node would throw.
    strictSingleValueFields: false,
  })
  server.on('request', (req, res) => handlers.onRequest(req, res, false))
  server.on('checkContinue', (req, res) => handlers.onRequest(req, res, true))
  // What nobody listens for node answers itself: without a body, and without the gateway's headers. It knows
  // one spelling of the expectation alone.
  server.on('checkExpectation', (req, res) => {
    handlers.onRequest(req, res, req.headers.expect?.toLowerCase() === '100-continue')
  })
  server.on('connect', (req, res) => handlers.onRequest(req, res, false))
  server.on('sessionError', ignore)
  return server
}

/**
 * Tells a session to go when the next request has arrived on it, which is served:
 * a GOAWAY names it as the last, and so whatever is on its way behind it as not
 * looked at, to be sent again elsewhere (RFC 9113 section 6.8). The gentler way of
 * that section, a first GOAWAY that refuses nothing, is not open: nghttp2 takes no
 * stream after any that node can send. A silent session goes after `patience`.
 */
export function drainSession(session: http2.ServerHttp2Session, timeout: number): void {
  const timer = setTimeout(() => session.close(), timeout)
  session.once('stream', () => session.close())
  session.once('close', () => clearTimeout(timer))
}

/**
 * Node watches over the idle connections of HTTP/1.1 alone: a peer
 * that is gone without a word would stay for ever.
 */
export function closeWhenIdle(session: http2.ServerHttp2Session, timeout: number): void {
  let open = 0
  session.on('stream', stream => {
    open++
    stream.once('close', () => open--)
  })
  session.setTimeout(timeout)
  session.on('timeout', () => {
    if (open === 0) session.close()
  })
}

function ignore(): void {}
