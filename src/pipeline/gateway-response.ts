import { constants } from 'node:http2'
import type { Duplex } from 'node:stream'
import type { GatewayError } from '../base/errors.ts'
import type { Upstream } from '../config/types.ts'
import type { ClientDelivery, Exchange } from '../context/exchange.ts'
import { gatewayHeadersFor } from '../context/gateway-headers.ts'
import type { Gateway } from '../context/gateway.ts'
import { callerFormat } from '../protocols/endpoint.ts'
import { hasBody } from '../proxy/body.ts'
import { destroyNow, isHttp2, writeHead } from '../proxy/client.ts'
import type { ClientRequest } from '../proxy/client.ts'
import { appendVia, clientHeaders, gatewayHeaders } from '../proxy/headers.ts'
import type { RawHeaders } from '../proxy/headers.ts'

/**
 * Milliseconds in which a client has to take an answer of the gateway's own: of whom there is no telling who
 * they are, each keeps the head of its request in memory for so long. nginx's figure.
 */
const CLIENT_READ_TIMEOUT = 60_000
/** The same where so many wait that their heads come to tens of megabytes. */
const MANY_UNREAD_RESPONSES = 1_000
const SHORT_CLIENT_READ_TIMEOUT = 1_000
/** Milliseconds that a refused client may go on sending, so that it gets to read why; nginx's figures. */
const LINGER_TIMEOUT = 30_000
/** Milliseconds that it may pause meanwhile. */
const LINGER_IDLE_TIMEOUT = 5_000

/** An answer of the gateway's own, in JSON. */
export function sendJson(
  gateway: Gateway, exchange: Exchange, status: number, body: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  const { req, res } = exchange
  // Where no body comes, node calls the request complete only after it was handed over.
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
  // GOAWAY: what runs on the session goes on, and nothing new comes.
  if (isHttp2(res) && gateway.draining) res.stream.session?.close()
  exchange.delivery = ownResponse(status, req.method === 'HEAD' ? 0 : bytes.length)
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

/** An upstream's answer to a WebSocket's handshake, as it came. @param upstream who gave it */
export function sendHandshakeRefusal(
  gateway: Gateway, exchange: Exchange, upstream: Upstream,
  { status, headers, body }: { status: number; headers: RawHeaders; body: Buffer },
): void {
  const { req, res } = exchange
  exchange.delivery = ownResponse(status, body.length)
  const own = gatewayHeadersFor(gateway, exchange, upstream)
  const head = clientHeaders(headers, { own, httpVersion: req.httpVersion, dropContentLength: true })
  writeHead(res, status, [...head, 'content-length', String(body.length)])
  enforceReadTimeout(gateway, exchange)
  res.end(body)
}

function ownResponse(status: number, bytes: number): ClientDelivery {
  return { status, bytes, delivered: false, firstByteAt: 0 }
}

function enforceReadTimeout({ clock, config, sharedState: lasting }: Gateway, { res }: Exchange): void {
  const most = ++lasting.unreadResponses > MANY_UNREAD_RESPONSES ? SHORT_CLIENT_READ_TIMEOUT : CLIENT_READ_TIMEOUT
  let isOver = false
  const over = (): void => {
    force.cancel()
    if (!isOver) lasting.unreadResponses--
    isOver = true
  }
  const force = clock.setTimeout(() => {
    over()
    destroyNow(res)
  }, Math.min(config.timeouts.idle, most))
  // Over HTTP/2 node calls a response finished when all of the request has come too.
  const out = isHttp2(res) ? res.stream : res
  out.once('finish', over).once('close', over)
}

/**
 * Tells the client of an error, in its protocol's shape; the
 * exchange takes the error's status. It never throws.
 */
export function sendError(gateway: Gateway, exchange: Exchange, error: GatewayError): void {
  const { res } = exchange
  exchange.delivery = ownResponse(error.status, 0)
  if (error.code === 'client_gone' || res.headersSent || res.destroyed) return
  const body = callerFormat(exchange.classified.endpoint, exchange.req.headers, exchange.target.isGoogles)
    .errorBody(error, exchange.id)
  try {
    sendJson(gateway, exchange, error.status, body, error.headers)
  } catch {
    // The connection may go at any moment, and what cannot be told is not worth more than it.
    destroyNow(res)
  }
}

/**
 * The client is still sending, and what comes is read and dropped, for a while. If its connection
 * were closed now, the reset that its unread bytes cause could overtake the answer: so our side of
 * it is closed first. Over HTTP/2 some clients (Python's httpx) look at no answer before all of
 * their body has gone, and wait for room on the stream even when that has been reset.
 */
function linger({ req, res }: Exchange): void {
  if (isHttp2(res)) {
    const { stream } = res
    req.resume()
    // With the answer out, half a request is not needed any more (RFC 9113 section 8.1). Closed before, the
    // stream would wait for that, and nothing else could end it.
    const drop = () => discardRequestBody(req, stream, () => stream.close(constants.NGHTTP2_NO_ERROR))
    // To HEAD all is out with the head.
    if (stream.writableFinished) drop()
    else stream.once('finish', drop)
    return
  }
  const { socket } = req
  socket.destroySoon = () => {
    socket.end()
    const cut = () => socket.destroy()
    socket.once('end', cut)
    discardRequestBody(req, socket, cut)
    socket.resume()
  }
}

/** @param cut called when `connection` has not closed by itself in time */
function discardRequestBody(req: ClientRequest, connection: Duplex, cut: () => void): void {
  const total = setTimeout(cut, LINGER_TIMEOUT)
  const idle = setTimeout(cut, LINGER_IDLE_TIMEOUT)
  connection.once('close', () => {
    clearTimeout(total)
    clearTimeout(idle)
  })
  req.on('data', () => idle.refresh())
  req.resume()
}
