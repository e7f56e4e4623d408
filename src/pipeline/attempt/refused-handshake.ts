import { GatewayError, credentialRejected, upgradeRequired } from '../../base/errors.ts'
import { decompressedOrRaw } from '../../protocols/shared/decompress.ts'
import { denialReason } from '../../protocols/shared/refusal.ts'
import { headerValue } from '../../proxy/headers.ts'
import { responseHead } from '../../proxy/response-head.ts'
import type { HandshakeRefusal } from '../../proxy/websocket.ts'
import { isCredentialRefused } from '../../routing/failure.ts'
import { requestedRetryDelay, undeliveredError } from './upstream-errors.ts'

/** How an upstream refused a WebSocket. */
export interface RefusedHandshake {
  /** What the client is told, unless another upstream takes it. */
  readonly error: GatewayError
  /** What the refusal says, decompressed; null where not all of it is there. */
  readonly body: Buffer | null
  /** It refuses what was asked, rather than to be asked: the client is told that as it came. */
  readonly isRequestRefused: boolean
  /** Milliseconds for which the upstream asks to be left alone; null = it does not say. */
  readonly retryAfterMs: number | null
}

/** Judges a refusal of a handshake, as one of a request is judged. */
export function classifyHandshakeRefusal({ status, headers, body }: HandshakeRefusal, nowMs: number): RefusedHandshake {
  const said = body && decompressedOrRaw(body, responseHead(status, headers).coding)
  const reason = said && isCredentialRefused(status) ? denialReason(said) : null
  return {
    error: reason === null ? handshakeError(status, headerValue(headers, 'retry-after')) : undeliveredError(status, reason),
    body: said,
    isRequestRefused: reason !== null,
    retryAfterMs: requestedRetryDelay(headers, said, nowMs),
  }
}

function handshakeError(status: number, pause: string | null): GatewayError {
  if (isCredentialRefused(status)) return credentialRejected(status)
  if (status !== 429 && status < 500) {
    return upgradeRequired('the upstream takes no WebSocket here; use plain HTTP')
  }
  return new GatewayError(
    'upstream_invalid', `the upstream answered ${status} to the WebSocket handshake`,
    pause === null ? {} : { headers: { 'retry-after': pause } },
  )
}
