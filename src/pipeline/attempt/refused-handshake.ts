import { GatewayError, credentialRejected, upgradeRequired } from '../../base/errors.ts'
import { decompressedOrRaw } from '../../protocols/shared/decompress.ts'
import { denialReason } from '../../protocols/shared/refusal-reason.ts'
import { headerValue } from '../../proxy/raw-headers.ts'
import { responseHead } from '../../proxy/response-head.ts'
import type { HandshakeRefusal } from '../../proxy/websocket.ts'
import { isCredentialRefused } from '../../routing/failure.ts'
import { requestedRetryDelay, undeliveredError } from './upstream-errors.ts'

/** How an upstream refused a WebSocket handshake. */
export interface RefusedHandshake {
  /** The client's error, unless another upstream accepts the handshake. */
  readonly error: GatewayError
  /** The body of the refusal, decompressed; null where not all of it came. */
  readonly body: Buffer | null
  /** It refuses the content of the request, not the credential: the client gets it as it came. */
  readonly isRequestRefused: boolean
  /** How long the upstream asks to wait, ms; null = it does not say. */
  readonly retryAfterMs: number | null
}

/** Classifies the refusal of a handshake, as that of a request is classified. @param nowMs ms since 1970 */
export function classifyHandshakeRefusal({ status, headers, body }: HandshakeRefusal, nowMs: number): RefusedHandshake {
  const text = body && decompressedOrRaw(body, responseHead(status, headers).coding)
  const reason = text && isCredentialRefused(status) ? denialReason(text) : null
  return {
    error: reason === null ? handshakeError(status, headerValue(headers, 'retry-after')) : undeliveredError(status, reason),
    body: text,
    isRequestRefused: reason !== null,
    retryAfterMs: requestedRetryDelay(headers, text, nowMs),
  }
}

function handshakeError(status: number, retryAfter: string | null): GatewayError {
  if (isCredentialRefused(status)) return credentialRejected(status)
  if (status !== 429 && status < 500) {
    return upgradeRequired('the upstream does not support WebSockets here; use plain HTTP')
  }
  return new GatewayError(
    'upstream_invalid', `the upstream responded with the status ${status} to the WebSocket handshake`,
    retryAfter === null ? {} : { headers: { 'retry-after': retryAfter } },
  )
}
