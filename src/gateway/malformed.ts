import { STATUS_CODES } from 'node:http'
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { GatewayError } from '../base/errors.ts'
import type { Gateway } from '../context/gateway.ts'
import { PROTOCOLS } from '../protocols/index.ts'
import { appendVia, gatewayHeaders } from '../proxy/headers.ts'
import { peerOf } from './new-exchange.ts'
import { pendingResponse } from './pending-response.ts'

/**
 * Answers bytes that are no HTTP request. There is no request object to answer
 * to, and no telling which protocol was meant: the connection gets one answer
 * in the chat family's shape, and ends.
 *
 * @param error node's; its code tells what was wrong
 */
export function respondToMalformed(gateway: Gateway, error: NodeJS.ErrnoException, socket: Duplex): void {
  // What ends in the middle of a request is a client that has left.
  if (!socket.writable || error.code === 'ECONNRESET' || error.code === 'HPE_INVALID_EOF_STATE') {
    socket.destroy()
    return
  }
  const refusal = malformedRequestError(error)
  const pending = pendingResponse(socket)
  if (pending) {
    // The body that an exchange reads is at fault: it answers. Anything else is behind what it has read, and
    // nobody's: an answer to that would be taken for a part of the one under way, which is the last. Most
    // often it is the rest of a body whose length was counted in characters, and that answer tells of it.
    const isReading = !pending.headersSent && !pending.req.complete && pending.req.listenerCount('error') > 0
    if (isReading) pending.req.emit('error', refusal)
    else closeAfterResponse(pending)
    return
  }
  sendRawResponse(gateway, refusal, socket, error.code)
  // What is still on its way is not read.
  socket.once('finish', () => socket.destroy())
}

/** What was asked is answered, and then the connection ends; node has no public name for the second. */
function closeAfterResponse(pending: ServerResponse): void {
  if (!pending.headersSent) pending.shouldKeepAlive = false
  Object.assign(pending, { _last: true })
}

/**
 * Answers on a connection of which no request was read: in the chat family's shape, and as the last answer.
 */
export function sendRawResponse(gateway: Gateway, refusal: GatewayError, socket: Duplex, cause?: string): void {
  const requestId = gateway.newId()
  const body = PROTOCOLS.chat.errorBody(refusal, requestId)
  const headers = [
    'content-type', 'application/json',
    'content-length', String(Buffer.byteLength(body)),
    'connection', 'close',
    ...Object.entries(refusal.headers).flat(),
    ...gatewayHeaders({ version: gateway.version, requestId, limits: [] }),
    'via', appendVia('', '1.1'),
  ]
  let head = `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}\r\n`
  for (let i = 0; i < headers.length; i += 2) head += `${headers[i]}: ${headers[i + 1]}\r\n`
  const client = peerOf(socket as Socket)
  const { status, code } = refusal
  gateway.log.info({ request: requestId, client, status, error: code, cause }, 'turned away')
  socket.end(`${head}\r\n${body}`)
}

/**
 * Notes that a client and the gateway did not come to speak TLS: it can be told nothing, and says no more
 * than that it cannot connect.
 *
 * @param error node's; its code tells what was wrong
 */
export function logHandshakeFailure(gateway: Gateway, error: NodeJS.ErrnoException, socket: Socket): void {
  // It has left, as balancers do that look whether somebody listens.
  if (error.code === 'ECONNRESET') return
  const cause = error.code ?? error.message
  gateway.log.info({ client: peerOf(socket), error: 'tls', cause }, 'turned away')
}

function malformedRequestError(error: NodeJS.ErrnoException): GatewayError {
  switch (error.code) {
    case 'HPE_HEADER_OVERFLOW':
      return new GatewayError('headers_too_large', 'the request headers are too large')
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new GatewayError('headers_timeout', 'the request headers did not arrive in time')
    default:
      return new GatewayError('bad_framing', 'the request is not well-formed HTTP')
  }
}
