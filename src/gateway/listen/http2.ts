import * as http2 from 'node:http2'
import { MAX_HEADER_BYTES } from '../../base/server-limits.ts'
import { wasAbandoned } from '../../proxy/client/client.ts'
import type { Http1Handlers } from './http1.ts'
import { peerOf } from './new-exchange.ts'
import type { ResetLimit } from './reset-limit.ts'

const MAX_STREAMS = 1_000
/**
 * Number of streams of one connection that a client may reset at once, and after that per second. If a client resets more, node ends the
 * connection.
 */
const RESET_BURST = 1_000
const RESETS_PER_SECOND = 33
/** Memory that node counts for one stream: one write of the relay, and the stream itself. */
const STREAM_BYTES = 80 * 1024

/** Creates a server that does not listen: the listener passes connections to it. */
export function createHttp2Server(handlers: Pick<Http1Handlers, 'onRequest'>): http2.Http2Server {
  const server = http2.createServer({
    settings: { maxConcurrentStreams: MAX_STREAMS, maxHeaderListSize: MAX_HEADER_BYTES },
    streamResetBurst: RESET_BURST,
    streamResetRate: RESETS_PER_SECOND,
    // Each stream may have a response that waits for a slow client. Node's default would allow only about 150 such streams.
    maxSessionMemory: Math.ceil((MAX_STREAMS * STREAM_BYTES) / 2 ** 20),
    // Only the size limits the headers, as over HTTP/1.1. Node's default is a maximum of 128 headers.
    maxHeaderListPairs: MAX_HEADER_BYTES / 32,
    // An upstream may repeat a header that should occur once. Over HTTP/1.1 such a response passes; over HTTP/2 node would throw.
    strictSingleValueFields: false,
  })
  server.on('request', (req, res) => handlers.onRequest(req, res, false))
  server.on('checkContinue', (req, res) => handlers.onRequest(req, res, true))
  // Handle other expectations too, because otherwise node responds without the gateway's headers. Node recognises `100-continue` only in
  // lower case.
  server.on('checkExpectation', (req, res) => {
    handlers.onRequest(req, res, req.headers.expect?.toLowerCase() === '100-continue')
  })
  server.on('connect', (req, res) => handlers.onRequest(req, res, false))
  server.on('sessionError', ignore)
  return server
}

/**
 * Drains a session. At the next request the session sends GOAWAY, which names that request as the last one, so that the client sends later
 * requests elsewhere (RFC 9113 section 6.8). The RFC suggests a first GOAWAY that refuses no request. That is not possible, because nghttp2
 * accepts no stream after any GOAWAY that node can send.
 * @param timeout ms after which an idle session closes
 */
export function drainSession(session: http2.ServerHttp2Session, timeout: number): void {
  const timer = setTimeout(() => session.close(), timeout)
  session.once('stream', () => session.close())
  session.once('close', () => clearTimeout(timer))
}

/**
 * Closes a session without open requests `headersTimeout` ms after its start, or `keepAlive` ms after its last request. Node does this only
 * for HTTP/1.1. Frames do not extend the time, because a client could send a head in many small frames.
 */
export function closeWhenIdle(session: http2.ServerHttp2Session, headersTimeout: number, keepAlive: number): void {
  const close = () => session.close()
  let timer = setTimeout(close, headersTimeout)
  let open = 0
  session.on('stream', stream => {
    open++
    clearTimeout(timer)
    stream.once('close', () => {
      open--
      if (open > 0 || session.closed) return
      clearTimeout(timer)
      timer = setTimeout(close, keepAlive)
    })
  })
  session.once('close', () => clearTimeout(timer))
}

/** Ends a session whose client resets more streams than the limit for its address allows. */
export function limitResets(session: http2.ServerHttp2Session, limit: ResetLimit): void {
  const address = peerOf(session.socket)
  let isEnded = false
  const onClose = function (this: http2.ServerHttp2Stream) {
    if (isEnded || !wasAbandoned(this) || limit.allows(address)) return
    isEnded = true
    session.destroy(new Error('too many streams were abandoned'), http2.constants.NGHTTP2_ENHANCE_YOUR_CALM)
  }
  session.on('stream', stream => stream.once('close', onClose))
}

function ignore(): void {}
