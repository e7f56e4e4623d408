import { GatewayError, credentialRejected } from '../../base/errors.ts'
import { decompressedOrRaw } from '../../protocols/shared/decompress.ts'
import type { ClientFormat } from '../../protocols/shared/protocol.ts'
import { retryDelay } from '../../protocols/shared/refusal.ts'
import type { RefusalReason } from '../../protocols/shared/refusal.ts'
import type { RawHeaders } from '../../proxy/headers.ts'
import { responseHead, isEventStream } from '../../proxy/response-head.ts'
import { retryAfter } from '../../proxy/retry-after.ts'
import { isCredentialRefused } from '../../routing/failure.ts'
import type { HeldResponse } from '../respond/response-gate.ts'

/** What an answer of an upstream's own says, decompressed. */
export function decompressedBody({ status, headers, body }: HeldResponse): Buffer {
  return decompressedOrRaw(body, responseHead(status, headers).coding)
}

/** An upstream's own error as an event; null where it cannot be one. */
export function upstreamErrorEvent(answer: HeldResponse, format: ClientFormat): string | null {
  if (isEventStream(responseHead(answer.status, answer.headers))) return null
  try {
    const value = JSON.parse(decompressedBody(answer).toString('utf8')) as unknown
    const isError = typeof value === 'object' && value !== null && 'error' in value
    return isError ? format.errorEvent(JSON.stringify(value)) : null
  } catch {
    // No JSON, no event.
    return null
  }
}

/**
 * An upstream's error that the client does not get, or not as it came: not all of it is there, a stream
 * had begun, or the operator's credential was refused.
 *
 * @param reason what the request itself was refused for; null = for nothing in it
 */
export function undeliveredError(status: number | null, reason: RefusalReason | null = null): GatewayError {
  if (reason !== null) {
    return new GatewayError('upstream_invalid', `the upstream refused what was asked: ${reason}`)
  }
  if (status === null || !isCredentialRefused(status)) {
    return new GatewayError('upstream_invalid', `the upstream answered ${status} and did not say why`)
  }
  return credentialRejected(status)
}

/**
 * How long the upstream asks to be left alone, in its headers or in its words.
 *
 * @param said decompressed; null where not all of it is there
 * @param nowMs milliseconds since 1970
 * @returns milliseconds, or null where it does not say
 */
export function requestedRetryDelay(headers: RawHeaders, said: Buffer | null, nowMs: number): number | null {
  return retryAfter(headers, nowMs) ?? (said && retryDelay(said))
}
