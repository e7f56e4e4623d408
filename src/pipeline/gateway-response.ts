import { constants } from 'node:http2'
import type { Duplex } from 'node:stream'
import type { GatewayError } from '../base/errors.ts'
import type { ClientDelivery, Exchange } from './exchange/exchange.ts'
import { gatewayHeadersFor } from './respond/gateway-headers.ts'
import type { Gateway } from './parts/gateway.ts'
import { callerFormat } from '../protocols/classify-path.ts'
import { hasBody } from '../proxy/client/read-body.ts'
import { destroyNow, isHttp2, writeHead, type ClientRequest } from '../proxy/client/client.ts'
import { appendVia, clientHeaders, gatewayHeaders } from '../proxy/upstream/headers.ts'
import type { DeniedHandshake } from './attempt/forward-upgrade.ts'

/** Milliseconds in which a client must read the gateway's own response. Until then the request's head stays in memory. nginx's default. */
const CLIENT_READ_TIMEOUT = 60_000
/** If more responses are unread, the short timeout applies, because their request heads take tens of megabytes. */
const MANY_UNREAD_RESPONSES = 1_000
const SHORT_CLIENT_READ_TIMEOUT = 1_000
/** Milliseconds for which a client can send the rest of its body after the response, so that it can read the response. nginx's default. */
const LINGER_TIMEOUT = 30_000
/** Milliseconds without a byte from the client after which the connection is closed. nginx's default. */
const LINGER_IDLE_TIMEOUT = 5_000

export function sendJson(
  gateway: Gateway, exchange: Exchange, status: number, body: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  const { req, res } = exchange
  // Check `hasBody`, because node marks even a request without a body as complete only after calling its handler.
  const unread = hasBody(req) && !req.complete
  const bytes = Buffer.from(body)
  const head = [
    'content-type', 'application/json',
    'content-length', String(bytes.length),
    ...Object.entries(headers).flat(),
    ...gatewayHeaders(gatewayHeadersFor(gateway, exchange, null)),
    'via', appendVia('', req.httpVersion),
  ]
  if (!isHttp2(res) && (unread || gateway.draining)) head.push('connection', 'close')
  // This sends GOAWAY: running requests continue, and the client sends no new requests on the connection.
  if (isHttp2(res) && gateway.draining) res.stream.session?.close()
  exchange.deliverBy(ownResponse(status, req.method === 'HEAD' ? 0 : bytes.length))
  writeHead(res, status, head)
  if (unread) linger(exchange)
  enforceReadTimeout(gateway, exchange)
  if (req.method === 'HEAD') {
    res.end()
    return
  }
  if (exchange.recording) {
    exchange.recording.contentType = 'application/json'
    exchange.recording.encoding = null
    exchange.recording.push(bytes)
  }
  res.end(bytes)
}

export function sendHandshakeRefusal(
  gateway: Gateway, exchange: Exchange, { attempt: { target }, response: { head: { status, headers }, body } }: DeniedHandshake,
): void {
  const { req, res } = exchange
  exchange.deliverBy(ownResponse(status, body.length))
  const own = gatewayHeadersFor(gateway, exchange, target.upstream)
  const head = clientHeaders(headers, { own, httpVersion: req.httpVersion, dropContentLength: true })
  writeHead(res, status, [...head, 'content-length', String(body.length)])
  enforceReadTimeout(gateway, exchange)
  res.end(body)
}

function ownResponse(status: number, bytes: number): ClientDelivery {
  return { status, bytes, delivered: false, firstByteAt: 0 }
}

function enforceReadTimeout({ clock, config, sharedState }: Gateway, { res }: Exchange): void {
  const maxMs = ++sharedState.unreadResponses > MANY_UNREAD_RESPONSES ? SHORT_CLIENT_READ_TIMEOUT : CLIENT_READ_TIMEOUT
  let isOver = false
  const over = (): void => {
    timer.cancel()
    if (!isOver) sharedState.unreadResponses--
    isOver = true
  }
  const timer = clock.setTimeout(() => {
    over()
    destroyNow(res)
  }, Math.min(config.timeouts.idle, maxMs))
  // Over HTTP/2, watch the stream, because node marks the response as finished only after the whole request has arrived.
  const out = isHttp2(res) ? res.stream : res
  out.once('finish', over).once('close', over)
}

/** Sends an error in the format of the client's protocol. It never throws. */
export function sendError(gateway: Gateway, exchange: Exchange, error: GatewayError): void {
  const { res } = exchange
  exchange.deliverBy(ownResponse(error.status, 0))
  if (error.code === 'client_gone' || res.headersSent || res.destroyed) return
  const format = callerFormat(exchange.classified.endpoint, exchange.req.headers, exchange.target.isGoogles)
  try {
    sendJson(gateway, exchange, error.status, format.errorBody(error, exchange.id), {
      ...error.headers, ...format.requestIdHeader !== null && { [format.requestIdHeader]: exchange.id },
    })
  } catch {
    destroyNow(res)
  }
}

/**
 * Receives and drops the rest of the request for some time: closing at once resets the connection, and the client could get the reset
 * before the response. Over HTTP/2, Python's httpx reads the response only after sending its body, and hangs after a reset.
 */
function linger({ req, res }: Exchange): void {
  if (isHttp2(res)) {
    const { stream } = res
    req.resume()
    // Close the stream only after the response was sent (RFC 9113 section 8.1): closed earlier, it would wait for the response forever.
    const drop = () => discardRequestBody(req, stream, () => stream.close(constants.NGHTTP2_NO_ERROR))
    // The stream of a response to HEAD has finished already, because the response has no body.
    if (stream.writableFinished) drop()
    else stream.once('finish', drop)
    return
  }
  const { socket } = req
  socket.destroySoon = () => {
    socket.end()
    const close = () => socket.destroy()
    socket.once('end', close)
    discardRequestBody(req, socket, close)
    socket.resume()
  }
}

/** @param close called if the client has not closed the connection within the linger timeouts */
function discardRequestBody(req: ClientRequest, connection: Duplex, close: () => void): void {
  const total = setTimeout(close, LINGER_TIMEOUT)
  const idle = setTimeout(close, LINGER_IDLE_TIMEOUT)
  connection.once('close', () => {
    clearTimeout(total)
    clearTimeout(idle)
  })
  req.on('data', () => idle.refresh())
  req.resume()
}
