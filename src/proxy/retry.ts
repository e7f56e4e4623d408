import type { ErrorCode, GatewayError } from '../base/errors.ts'
import { headerValue } from './headers.ts'
import type { RawHeaders } from './headers.ts'

/** Statuses below 500 after which another attempt may fare better; 498 is Groq's for no capacity. */
const RETRYABLE = new Set([401, 402, 403, 408, 429, 498])
/** Those that the same upstream would only repeat: its credential or its account is at fault. */
const OPERATOR_ERROR_STATUSES = new Set([401, 402, 403])
/** An upstream that was silent is not asked twice. */
const TIMEOUT_CODES: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'first_byte_timeout', 'idle_timeout', 'connect_timeout',
])

/** Is this status a failure that another candidate could mend? */
export function isRetryableStatus(status: number): boolean {
  return status >= 500 || RETRYABLE.has(status)
}

/** Is an answer with this status a failure, if what it says is an error? */
export function isFailure(status: number): boolean {
  return status < 300 || isRetryableStatus(status)
}

/** Does the status tell of the operator's credential or account, whose owner has to hear of it? */
export function isOperatorError(status: number): boolean {
  return OPERATOR_ERROR_STATUSES.has(status)
}

/** Did the upstream refuse the credential that it was given? */
export function isCredentialRefused(status: number): boolean {
  return status === 401 || status === 403
}

/**
 * What a failure of which the client has seen nothing is good for.
 *
 * @param error the row of the error table, or null where the upstream answered with an error of its own
 * @param status the upstream's HTTP status, or null where none came
 * @returns whether another attempt may fare better, and whether one at the same candidate may
 */
export function retryability(
  error: GatewayError | null, status: number | null,
): { retryable: boolean; again: boolean } {
  const hopeless = status !== null && isOperatorError(status)
  if (error === null || hopeless) return { retryable: status !== null && isFailure(status), again: !hopeless }
  return { retryable: error.source === 'upstream' && error.retryable, again: !TIMEOUT_CODES.has(error.code) }
}

/**
 * What an answer asks for: `retry-after-ms`, or `retry-after` in seconds or as a
 * date (RFC 9110 section 10.2.3).
 *
 * @param nowMs milliseconds since 1970
 * @returns milliseconds, or null where nothing usable is said
 */
export function retryAfter(headers: RawHeaders, nowMs: number): number | null {
  const ms = number(headerValue(headers, 'retry-after-ms'))
  if (ms !== null) return ms
  const text = headerValue(headers, 'retry-after')
  const seconds = number(text)
  if (seconds !== null) return seconds * 1000
  const date = dateOf(text)
  return date === null ? null : Math.max(0, date - nowMs)
}

/** A date in one of the forms of RFC 9110 section 5.6.7; `Date.parse` takes much else, even `-5`, for one. */
const HTTP_DATE = /^[A-Z][A-Za-z]{2,8},? [A-Za-z\d -]{6,13} \d\d:\d\d:\d\d( GMT| \d{4})$/

/** @returns milliseconds since 1970, or null where it is none */
function dateOf(text: string | null): number | null {
  if (text === null || !HTTP_DATE.test(text)) return null
  // The oldest form does not say that it is UTC.
  const date = Date.parse(text.endsWith('GMT') ? text : `${text} GMT`)
  return Number.isNaN(date) ? null : date
}

function number(text: string | null): number | null {
  return text !== null && /^\s*\d{1,15}(\.\d+)?\s*$/.test(text) ? Number(text) : null
}
