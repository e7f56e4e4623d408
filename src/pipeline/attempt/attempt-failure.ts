import { GatewayError, credentialRejected } from '../../base/errors.ts'
import { parseBounded } from '../../base/json-size.ts'
import type { UpstreamAttempt } from '../../context/upstream-attempt.ts'
import { decompressedOrRaw } from '../../protocols/shared/decompress.ts'
import type { ClientFormat } from '../../protocols/shared/protocol.ts'
import { retryDelay } from '../../protocols/shared/refusal-reason.ts'
import type { RefusalReason } from '../../protocols/shared/refusal-reason.ts'
import { SseReader } from '../../protocols/shared/sse.ts'
import { kindOf } from '../../protocols/shared/stream-event.ts'
import { errorStatus, translateError } from '../../protocols/translate.ts'
import type { RawHeaders } from '../../proxy/raw-headers.ts'
import { isEventStream, withHeaders } from '../../proxy/response-head.ts'
import { maskBody } from '../../proxy/secret-mask.ts'
import { retryAfter } from '../../proxy/retry-after.ts'
import { isCredentialRefused } from '../../routing/failure.ts'
import type { HeldResponse, RejectedResponse } from '../respond/response-gate.ts'

/** How an attempt failed before the client got any of its response. */
export interface AttemptFailure {
  /** null = the upstream sent an error of its own. */
  readonly error: GatewayError | null
  /** The upstream's status; null = no head came. */
  readonly status: number | null
  /** The upstream's error, where all of it came. */
  readonly response: HeldResponse | null
  /** The body of that, decompressed. */
  readonly said: Buffer | null
  /** Why it refused the request: with 401 or 403, or where the route names another target for that. */
  readonly reason: RefusalReason | null
  /** How long the upstream asks to wait, ms; null = it does not say. */
  readonly retryAfterMs: number | null
}

/** The failure of an attempt whose response did not go to the client. @param nowMs milliseconds since 1970 */
export function failureOfResponse({ error, head, response, reason }: RejectedResponse, nowMs: number): AttemptFailure {
  const said = response && decompressedBody(response)
  return { error, status: head.status, response, said, reason, retryAfterMs: requestedRetryDelay(head.headers, said, nowMs) }
}

/** The failure of an attempt to which no response came. @param nowMs milliseconds since 1970 */
export function failureWithoutResponse(error: GatewayError, nowMs: number): AttemptFailure {
  const retryAfterMs = retryAfter(Object.entries(error.headers).flat(), nowMs)
  return { error, status: null, response: null, said: null, reason: null, retryAfterMs }
}

/** The body of a held response, decompressed. */
function decompressedBody({ head, body }: HeldResponse): Buffer {
  return decompressedOrRaw(body, head.coding)
}

/** An upstream's own error as an event of the client's stream; null = it is no JSON object with an error. */
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
    // It is no JSON.
    return null
  }
}

/**
 * An error that came with the status of a success, in a body or as an event of a stream, as a response with its own status.
 * Where nothing is translated, it passes as it came.
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

/** Bytes of an upstream's error that the ledger keeps. */
const MAX_TEXT_BYTES = 1024
/** Those that text has no use for; a line break and a tab stay. */
const CONTROL_CHARACTERS = /(?![\n\t])\p{Cc}/gu
/** What a cut leaves of a character. */
const CUT_CHARACTER = /\ufffd+$/

/**
 * The beginning of an upstream's error, for the operator.
 *
 * @param body decompressed
 * @param secrets of the credential that was sent: they are masked
 * @returns 1024 bytes at most; null = it says nothing
 */
export function errorText(body: Buffer, secrets: readonly string[]): string | null {
  // The mask first: a cut could leave the beginning of a secret.
  const masked = maskBody(body, null, secrets) ?? body
  const text = masked.toString('utf8', 0, MAX_TEXT_BYTES).replace(CONTROL_CHARACTERS, ' ')
  return (masked.length > MAX_TEXT_BYTES ? text.replace(CUT_CHARACTER, '') : text).trim() || null
}
