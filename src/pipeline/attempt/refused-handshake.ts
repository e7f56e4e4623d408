import { legible } from '../../protocols/shared/decompress.ts'
import { GatewayError, rejectedKey, upgradeRequired } from '../../base/errors.ts'
import { denialReason } from '../../protocols/refusal.ts'
import { answerHead } from '../../proxy/response-head.ts'
import { headerValue } from '../../proxy/headers.ts'
import { isCredentialRefused } from '../../proxy/retry.ts'
import type { Refusal } from '../../proxy/websocket.ts'
import { askedFor, untold } from './upstream-errors.ts'

/** How an upstream refused a WebSocket. */
export interface RefusedHandshake {
  /** What the client is told, unless another upstream takes it. */
  readonly error: GatewayError
  /** What the refusal says, decompressed; null where not all of it is there. */
  readonly said: Buffer | null
  /** It refuses what was asked, rather than to be asked: the client is told that as it came. */
  readonly isDenial: boolean
  /** Milliseconds for which the upstream asks to be left alone; null = it does not say. */
  readonly pause: number | null
}

/** Judges a refusal of a handshake, as one of a request is judged. */
export function judgeHandshake({ status, headers, body }: Refusal, nowMs: number): RefusedHandshake {
  const said = body && legible(body, answerHead(status, headers).coding)
  const reason = said && isCredentialRefused(status) ? denialReason(said) : null
  return {
    error: reason === null ? untaken(status, headerValue(headers, 'retry-after')) : untold(status, reason),
    said,
    isDenial: reason !== null,
    pause: askedFor(headers, said, nowMs),
  }
}

function untaken(status: number, pause: string | null): GatewayError {
  if (isCredentialRefused(status)) return rejectedKey(status)
  if (status !== 429 && status < 500) {
    return upgradeRequired('the upstream takes no WebSocket here; use plain HTTP')
  }
  return new GatewayError(
    'upstream_invalid', `the upstream answered ${status} to the WebSocket handshake`,
    pause === null ? {} : { headers: { 'retry-after': pause } },
  )
}
