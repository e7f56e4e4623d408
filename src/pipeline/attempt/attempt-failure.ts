import { GatewayError, credentialRejected } from '../../base/errors.ts'
import { parseBounded } from '../../base/json-size.ts'
import type { UpstreamAttempt } from '../exchange/upstream-attempt.ts'
import { decompressedOrRaw } from '../../protocols/http/decompress.ts'
import type { ClientFormat } from '../../protocols/endpoint/protocol.ts'
import { retryDelay, type RefusalReason } from '../../protocols/endpoint/refusal-reason.ts'
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
  /** null = the upstream itself sent the error. */
  readonly error: GatewayError | null
  /** null = no response head arrived. */
  readonly status: number | null
  /** The upstream's error; null = none, or incomplete. */
  readonly response: HeldResponse | null
  /** The body of the upstream's error, decompressed; null = incomplete. */
  readonly said: Buffer | null
  /** Why the upstream refused the request's content, if the status is 401 or 403, or if the route has a target for the reason. */
  readonly reason: RefusalReason | null
  readonly retryAfterMs: number | null
}

/** @param nowMs milliseconds since 1970 */
export function failureOfResponse({ error, head, response, reason }: RejectedResponse, nowMs: number): AttemptFailure {
  const said = response && decompressedOrRaw(response.body, response.head.coding)
  return { error, status: head.status, response, said, reason, retryAfterMs: requestedRetryDelay(head.headers, said, nowMs) }
}

/** @param nowMs milliseconds since 1970 */
export function failureWithoutResponse(error: GatewayError, nowMs: number): AttemptFailure {
  const retryAfterMs = retryAfter(Object.entries(error.headers).flat(), nowMs)
  return { error, status: null, response: null, said: null, reason: null, retryAfterMs }
}

/** @returns the error as an event of the client's stream; null = the response is not a JSON object with an error */
export function upstreamErrorEvent(
  { response, attempt: { translated } }: { readonly response: HeldResponse, readonly attempt: UpstreamAttempt },
  format: ClientFormat, requestId: string,
): string | null {
  if (isEventStream(response.head)) return null
  if (translated) return format.errorEvent(translateError(translated, response.head.status, decompressedOrRaw(response.body, response.head.coding), requestId))
  try {
    const value = parseBounded(decompressedOrRaw(response.body, response.head.coding).toString('utf8'))
    const isError = typeof value === 'object' && value !== null && 'error' in value
    return isError ? format.errorEvent(JSON.stringify(value)) : null
  } catch {
    // The error is not JSON.
    return null
  }
}

/** A translated error gets an error status, because an upstream can report an error with the status of a success. */
export function withErrorStatus(response: HeldResponse, { translated }: Pick<UpstreamAttempt, 'translated'>): HeldResponse {
  const { head } = response
  if (translated === null || head.status >= 400) return response
  const whole = decompressedOrRaw(response.body, response.head.coding)
  const body = isEventStream(head) ? errorEventIn(whole) : whole
  const headers = head.headers.filter((_, i) => !BODY_HEADERS.has((head.headers[i - i % 2] as string).toLowerCase()))
  const changed = withHeaders(head, [...headers, 'content-type', 'application/json'])
  return { head: { ...changed, status: errorStatus(translated, body) }, body }
}

const BODY_HEADERS = new Set(['content-type', 'content-length', 'content-encoding'])

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

/** The error that replaces the upstream's error. @param reason why the upstream refused the request's content; null = not refused */
export function undeliveredError(status: number | null, reason: RefusalReason | null = null): GatewayError {
  if (reason !== null) return new GatewayError('upstream_invalid', `the upstream refused the request: ${reason}`)
  if (status === null || !isCredentialRefused(status)) {
    return new GatewayError('upstream_invalid', `the upstream responded with the status ${status} and no readable error`)
  }
  return credentialRejected(status)
}

/** @param said the body of the error, decompressed; null = incomplete @param nowMs ms since 1970 @returns milliseconds; null = none */
export function requestedRetryDelay(headers: RawHeaders, said: Buffer | null, nowMs: number): number | null {
  return retryAfter(headers, nowMs) ?? (said && retryDelay(said))
}

/** Maximum bytes in `errorText`. */
const MAX_TEXT_BYTES = 1024
const CONTROL_CHARACTERS = /(?![\n\t])\p{Cc}/gu
/** Replacement characters for a last character that `MAX_TEXT_BYTES` cuts. */
const CUT_CHARACTER = /\ufffd+$/

/** The beginning of an upstream's error, for the ledger. @param secrets values of the sent credential, which are masked */
export function errorText(body: Buffer, secrets: readonly string[]): string | null {
  // Mask first: cutting first could leave the beginning of a secret.
  const masked = maskBody(body, null, secrets) ?? body
  const text = masked.toString('utf8', 0, MAX_TEXT_BYTES).replace(CONTROL_CHARACTERS, ' ')
  return (masked.length > MAX_TEXT_BYTES ? text.replace(CUT_CHARACTER, '') : text).trim() || null
}
