import { STATUS_CODES, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { GatewayError } from '../../base/errors.ts'
import type { Gateway } from '../../pipeline/parts/gateway.ts'
import { DEFAULT_FORMAT } from '../../protocols/classify-path.ts'
import { appendVia, gatewayHeaders } from '../../proxy/upstream/headers.ts'
import { peerOf } from './new-exchange.ts'
import { pendingResponse } from './pending-response.ts'

/**
 * Responds to bytes that are not an HTTP request, and ends the connection. The response is an error in the format of the chat protocol.
 * @param own node's response object for the malformed request; absent if node has created none
 */
export function respondToMalformed(gateway: Gateway, error: NodeJS.ErrnoException, socket: Duplex, own?: ServerResponse): void {
  // The client disconnected during a request.
  if (!socket.writable || error.code === 'ECONNRESET' || error.code === 'HPE_INVALID_EOF_STATE') return void socket.destroy()
  const refusal = malformedRequestError(error)
  const pending = pendingResponse(socket)
  if (!pending || pending === own) return endWithRefusal(gateway, refusal, socket, error.code)
  // If an exchange still reads the body, the exchange responds with the error. Otherwise the malformed bytes follow a complete request.
  const isReading = !pending.headersSent && !pending.req.complete && pending.req.listenerCount('error') > 0
  if (isReading) pending.req.emit('error', refusal)
  else afterPendingResponses(socket, () => endWithRefusal(gateway, refusal, socket, error.code))
}

function endWithRefusal(gateway: Gateway, refusal: GatewayError, socket: Duplex, cause?: string): void {
  sendRawResponse(gateway, refusal, socket, cause)
  // The remaining input is not read.
  socket.once('finish', () => socket.destroy())
}

/** Calls `then` after all responses of a connection. Not called if the connection ends with the last response. */
function afterPendingResponses(socket: Duplex, then: () => void): void {
  const pending = pendingResponse(socket)
  if (pending) pending.once('finish', () => afterPendingResponses(socket, then))
  else if (socket.writable) then()
}

/** Ends a connection that has no request with an error in the format of the chat protocol. */
export function sendRawResponse(gateway: Gateway, refusal: GatewayError, socket: Duplex, cause?: string): void {
  const requestId = gateway.newId()
  const body = DEFAULT_FORMAT.errorBody(refusal, requestId)
  const headers = [
    'content-type', 'application/json', 'content-length', String(Buffer.byteLength(body)), 'connection', 'close',
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

/** Logs a failed TLS handshake. The client gets no response, only a connection error. */
export function logHandshakeFailure(gateway: Gateway, error: NodeJS.ErrnoException, socket: Socket): void {
  // Health probes of load balancers connect and disconnect: do not log them.
  if (error.code === 'ECONNRESET') return
  const cause = error.code ?? error.message
  gateway.log.info({ client: peerOf(socket), error: 'tls', cause }, 'turned away')
}

function malformedRequestError(error: NodeJS.ErrnoException): GatewayError {
  switch (error.code) {
    case 'HPE_HEADER_OVERFLOW': return new GatewayError('headers_too_large', 'the request headers are too large')
    case 'ERR_HTTP_REQUEST_TIMEOUT': return new GatewayError('headers_timeout', 'the request headers did not arrive in time')
    default: return new GatewayError('bad_framing', 'the request is not well-formed HTTP')
  }
}
