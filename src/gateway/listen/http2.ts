import * as http2 from 'node:http2'
import { MAX_HEADER_BYTES } from '../../base/server-limits.ts'
import { wasAbandoned } from '../../proxy/client/client.ts'
import type { Http1Handlers } from './http1.ts'
import { peerOf } from './new-exchange.ts'
import type { ResetLimit } from './reset-limit.ts'

const MAX_STREAMS = 1_000
/** Streams of one connection that a client may reset at once, and per second after that: above this, node ends the connection. */
const RESET_BURST = 1_000
const RESETS_PER_SECOND = 33
/** Node's count for one stream: one write of the relay, and the stream itself. */
const STREAM_BYTES = 80 * 1024

/** Creates a server that does not listen: the listener hands it connections. */
export function createHttp2Server(handlers: Pick<Http1Handlers, 'onRequest'>): http2.Http2Server {
  const server = http2.createServer({
    settings: { maxConcurrentStreams: MAX_STREAMS, maxHeaderListSize: MAX_HEADER_BYTES },
    streamResetBurst: RESET_BURST,
    streamResetRate: RESETS_PER_SECOND,
    // Each stream may have a response waiting for a slow client. Node's default would allow about 150 such streams.
    maxSessionMemory: Math.ceil((MAX_STREAMS * STREAM_BYTES) / 2 ** 20),
    // The size limits the headers, as over HTTP/1.1. Node's default would be 128 headers.
    maxHeaderListPairs: MAX_HEADER_BYTES / 32,
    // An upstream may repeat a header that should occur once. Over HTTP/1.1 that passes; here node would throw.
    strictSingleValueFields: false,
  })
  server.on('request', (req, res) => handlers.onRequest(req, res, false))
  server.on('checkContinue', (req, res) => handlers.onRequest(req, res, true))
  // Without a listener, node responds without the gateway's headers. Node recognizes only the lower-case expectation.
  server.on('checkExpectation', (req, res) => {
    handlers.onRequest(req, res, req.headers.expect?.toLowerCase() === '100-continue')
  })
  server.on('connect', (req, res) => handlers.onRequest(req, res, false))
  server.on('sessionError', ignore)
  return server
}

/**
 * Drains a session: at the next request it sends GOAWAY, which names that request as the last one, so the client sends later
 * ones elsewhere (RFC 9113 section 6.8). The section suggests a first GOAWAY that refuses nothing, which is not possible:
 * nghttp2 accepts no stream after a GOAWAY that node can send. @param timeout ms after which an idle session closes
 */
export function drainSession(session: http2.ServerHttp2Session, timeout: number): void {
  const timer = setTimeout(() => session.close(), timeout)
  session.once('stream', () => session.close())
  session.once('close', () => clearTimeout(timer))
}

/**
 * Closes a session without open requests: `headersTimeout` ms after its start, `keepAlive` ms after its last request. Node does
 * this only for HTTP/1.1. Other frames do not count, because a head sent byte by byte arrives in frames too.
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

/** Ends a session whose client resets more streams than its address may. */
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
