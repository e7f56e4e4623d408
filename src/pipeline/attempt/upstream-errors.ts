import { GatewayError, credentialRejected } from '../../base/errors.ts'
import type { UpstreamAttempt } from '../../context/upstream-attempt.ts'
import { decompressedOrRaw } from '../../protocols/shared/decompress.ts'
import type { ClientFormat } from '../../protocols/shared/protocol.ts'
import { retryDelay } from '../../protocols/shared/refusal.ts'
import type { RefusalReason } from '../../protocols/shared/refusal.ts'
import { translateError } from '../../protocols/translate.ts'
import type { RawHeaders } from '../../proxy/headers.ts'
import { responseHead, isEventStream } from '../../proxy/response-head.ts'
import { retryAfter } from '../../proxy/retry-after.ts'
import { isCredentialRefused } from '../../routing/failure.ts'
import type { HeldResponse } from '../respond/response-gate.ts'

/** The body of a held response, decompressed. */
export function decompressedBody({ status, headers, body }: HeldResponse): Buffer {
  return decompressedOrRaw(body, responseHead(status, headers).coding)
}

/** An upstream's own error as an event of the client's stream; null = it is no JSON object with an error. */
export function upstreamErrorEvent(
  { response, attempt: { translated } }: { readonly response: HeldResponse, readonly attempt: UpstreamAttempt },
  format: ClientFormat, requestId: string,
): string | null {
  if (isEventStream(responseHead(response.status, response.headers))) return null
  if (translated) return format.errorEvent(translateError(translated, response.status, decompressedBody(response), requestId))
  try {
    const value = JSON.parse(decompressedBody(response).toString('utf8')) as unknown
    const isError = typeof value === 'object' && value !== null && 'error' in value
    return isError ? format.errorEvent(JSON.stringify(value)) : null
  } catch {
    // It is no JSON.
    return null
  }
}

/**
 * The error for the client where it does not get the upstream's own as it came: not all of that came, a stream had
 * begun, or the operator's credential was rejected.
 *
 * @param reason why the request was refused for its content; null = it was not
 */
export function undeliveredError(status: number | null, reason: RefusalReason | null = null): GatewayError {
  if (reason !== null) {
    return new GatewayError('upstream_invalid', `the upstream refused the request: ${reason}`)
  }
  if (status === null || !isCredentialRefused(status)) {
    return new GatewayError('upstream_invalid', `the upstream responded with the status ${status} and no readable error`)
  }
  return credentialRejected(status)
}

/**
 * How long the upstream asks to wait, in its headers or in its error.
 *
 * @param said the error, decompressed; null where not all of it came
 * @param nowMs milliseconds since 1970
 * @returns milliseconds, or null where it does not say
 */
export function requestedRetryDelay(headers: RawHeaders, said: Buffer | null, nowMs: number): number | null {
  return retryAfter(headers, nowMs) ?? (said && retryDelay(said))
}
