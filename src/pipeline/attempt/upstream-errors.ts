import { GatewayError, credentialRejected } from '../../base/errors.ts'
import type { UpstreamAttempt } from '../../context/upstream-attempt.ts'
import { decompressedOrRaw } from '../../protocols/shared/decompress.ts'
import type { ClientFormat } from '../../protocols/shared/protocol.ts'
import { parseBounded } from '../../base/json-size.ts'
import { retryDelay } from '../../protocols/shared/refusal-reason.ts'
import type { RefusalReason } from '../../protocols/shared/refusal-reason.ts'
import { SseReader } from '../../protocols/shared/sse.ts'
import { kindOf } from '../../protocols/shared/stream-event.ts'
import { errorStatus, translateError } from '../../protocols/translate.ts'
import type { RawHeaders } from '../../proxy/raw-headers.ts'
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
    const value = parseBounded(decompressedBody(response).toString('utf8'))
    const isError = typeof value === 'object' && value !== null && 'error' in value
    return isError ? format.errorEvent(JSON.stringify(value)) : null
  } catch {
    // It is no JSON.
    return null
  }
}

/**
 * An error that came with the status of a success, in a body or as an event of a stream, as a response with its own status.
 * Where nothing is translated, it passes as it came.
 */
export function withErrorStatus(response: HeldResponse, { translated }: UpstreamAttempt): HeldResponse {
  if (translated === null || response.status >= 400) return response
  const whole = decompressedBody(response)
  const body = isEventStream(responseHead(response.status, response.headers)) ? errorEventIn(whole) : whole
  const headers = response.headers.filter((_, i) => !BODY_HEADERS.has((response.headers[i - i % 2] as string).toLowerCase()))
  return { ...response, status: errorStatus(translated, body), headers: [...headers, 'content-type', 'application/json'], body }
}

/** Headers that describe the bytes of a body. */
const BODY_HEADERS = new Set(['content-type', 'content-length', 'content-encoding'])

/** The data of the first event that reports an error. */
function errorEventIn(stream: Buffer): Buffer {
  let found: string | null = null
  const reader = new SseReader({
    event: event => {
      if (found === null && kindOf(event) === 'error') found = event.text
    },
  })
  reader.push(stream)
  return Buffer.from(found ?? '')
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
