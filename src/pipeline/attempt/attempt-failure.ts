import { GatewayError, credentialRejected } from '../../base/errors.ts'
import { parseBounded } from '../../base/json-size.ts'
import type { UpstreamAttempt } from '../exchange/upstream-attempt.ts'
import { decompressedOrRaw } from '../../protocols/http/decompress.ts'
import type { ClientFormat } from '../../protocols/endpoint/protocol.ts'
import { retryDelay } from '../../protocols/endpoint/refusal-reason.ts'
import type { RefusalReason } from '../../protocols/endpoint/refusal-reason.ts'
import { SseReader } from '../../protocols/events/sse.ts'
import { kindOf } from '../../protocols/events/stream-event.ts'
import { errorStatus, translateError } from '../../protocols/translate.ts'
import type { RawHeaders } from '../../proxy/http/raw-headers.ts'
import { isEventStream, withHeaders } from '../../proxy/upstream/response-head.ts'
import { maskBody } from '../../proxy/upstream/secret-mask.ts'
import { retryAfter } from '../../proxy/upstream/retry-after.ts'
import { isCredentialRefused } from '../../routing/failure.ts'
import type { HeldResponse, RejectedResponse } from '../respond/response-gate.ts'

/** How an attempt failed before the client got any of its response. */
export interface AttemptFailure {
  /** null = the upstream sent its own error. */
  readonly error: GatewayError | null
  /** The upstream's status; null = no head arrived. */
  readonly status: number | null
  /** The upstream's error if it is complete. */
  readonly response: HeldResponse | null
  /** The body of the upstream's error, decompressed; null = no complete error. */
  readonly said: Buffer | null
  /** Why the upstream refused the request: by 401 or 403, or for a reason for which the route names another target. */
  readonly reason: RefusalReason | null
  /** The wait that the upstream asks for, ms; null = none. */
  readonly retryAfterMs: number | null
}

/** The failure of an attempt whose response did not go to the client. @param nowMs milliseconds since 1970 */
export function failureOfResponse({ error, head, response, reason }: RejectedResponse, nowMs: number): AttemptFailure {
  const said = response && decompressedBody(response)
  return { error, status: head.status, response, said, reason, retryAfterMs: requestedRetryDelay(head.headers, said, nowMs) }
}

/** The failure of an attempt that got no response. @param nowMs milliseconds since 1970 */
export function failureWithoutResponse(error: GatewayError, nowMs: number): AttemptFailure {
  const retryAfterMs = retryAfter(Object.entries(error.headers).flat(), nowMs)
  return { error, status: null, response: null, said: null, reason: null, retryAfterMs }
}

/** The body of a held response, decompressed. */
function decompressedBody({ head, body }: HeldResponse): Buffer {
  return decompressedOrRaw(body, head.coding)
}

/** An upstream's error as an event of the client's stream; null = it is not a JSON object with an error. */
export function upstreamErrorEvent(
  { response, attempt: { translated } }: { readonly response: HeldResponse, readonly attempt: UpstreamAttempt },
  format: ClientFormat, requestId: string,
): string | null {
  if (isEventStream(response.head)) return null
  if (translated) return format.errorEvent(translateError(translated, response.head.status, decompressedBody(response), requestId))
  try {
    const value = parseBounded(decompressedBody(response).toString('utf8'))
    const isError = typeof value === 'object' && value !== null && 'error' in value
    return isError ? format.errorEvent(JSON.stringify(value)) : null
  } catch {
    // The error is not JSON.
    return null
  }
}

/**
 * An upstream can report an error with the status of a success, in a body or as a stream event. If the response is
 * translated, the client gets it as a response with the error's own status; otherwise it passes unchanged.
 */
export function withErrorStatus(response: HeldResponse, { translated }: Pick<UpstreamAttempt, 'translated'>): HeldResponse {
  const { head } = response
  if (translated === null || head.status >= 400) return response
  const whole = decompressedBody(response)
  const body = isEventStream(head) ? errorEventIn(whole) : whole
  const headers = head.headers.filter((_, i) => !BODY_HEADERS.has((head.headers[i - i % 2] as string).toLowerCase()))
  const changed = withHeaders(head, [...headers, 'content-type', 'application/json'])
  return { head: { ...changed, status: errorStatus(translated, body) }, body }
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
 * The error for a client that cannot get the upstream's own error: it is incomplete, a stream had begun, or the
 * operator's credential was rejected.
 *
 * @param reason why the upstream refused the content of the request; null = it did not
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
 * The wait that the upstream asks for, in its headers or in its error.
 *
 * @param said the error, decompressed; null = incomplete
 * @param nowMs milliseconds since 1970
 * @returns milliseconds; null = none
 */
export function requestedRetryDelay(headers: RawHeaders, said: Buffer | null, nowMs: number): number | null {
  return retryAfter(headers, nowMs) ?? (said && retryDelay(said))
}

/** Bytes of an upstream's error that are stored in the ledger. */
const MAX_TEXT_BYTES = 1024
/** Control characters except line break and tab. */
const CONTROL_CHARACTERS = /(?![\n\t])\p{Cc}/gu
/** The rest of a character that the limit has cut. */
const CUT_CHARACTER = /\ufffd+$/

/**
 * The beginning of an upstream's error, for the operator.
 *
 * @param body decompressed
 * @param secrets of the credential that was sent: they are masked
 * @returns at most 1024 bytes; null = empty
 */
export function errorText(body: Buffer, secrets: readonly string[]): string | null {
  // Mask first: cutting first could leave the beginning of a secret.
  const masked = maskBody(body, null, secrets) ?? body
  const text = masked.toString('utf8', 0, MAX_TEXT_BYTES).replace(CONTROL_CHARACTERS, ' ')
  return (masked.length > MAX_TEXT_BYTES ? text.replace(CUT_CHARACTER, '') : text).trim() || null
}
