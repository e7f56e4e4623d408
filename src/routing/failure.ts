import type { ErrorCode, GatewayError } from '../base/errors.ts'

/** Statuses below 500 after which another attempt may succeed; 424 is Bedrock's for a fault of the model, 498 Groq's for no capacity. */
const RETRYABLE_STATUSES = new Set([401, 402, 403, 408, 424, 429, 498])
/** Statuses that the same upstream would repeat, because its credential or account is at fault. */
const OPERATOR_ERROR_STATUSES = new Set([401, 402, 403])
/** Statuses of a one-time fault, not of a lack of capacity. */
const TRANSIENT_STATUSES = new Set([500, 502])
/** Errors of an upstream that did not respond in time: it is not tried twice. */
const TIMEOUT_CODES: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'first_byte_timeout', 'idle_timeout', 'connect_timeout',
])

/** @returns whether another target may succeed after this status */
export function isRetryableStatus(status: number): boolean {
  return status >= 500 || RETRYABLE_STATUSES.has(status)
}

/** @returns whether an error response with this status is a failure of the upstream */
export function isFailure(status: number): boolean {
  return status < 300 || isRetryableStatus(status)
}

/** @returns whether the status is about the operator's credential or account */
export function isOperatorError(status: number): boolean {
  return OPERATOR_ERROR_STATUSES.has(status)
}

/** @returns whether the upstream refused the gateway's credential */
export function isCredentialRefused(status: number): boolean {
  return status === 401 || status === 403
}

/** @returns whether the error says that the request cannot be translated to the protocol of its target */
export function isUntranslatable(code: ErrorCode): boolean {
  return code === 'not_translatable' || code === 'translation_lossy'
}

/**
 * Decides which attempts may follow a failure that the client has not seen.
 *
 * @param error the row of the error table; null = the upstream sent its own error
 * @param status the upstream's HTTP status; null = no response
 * @returns `retryable`: another attempt may succeed; `again`: also one at the same target
 */
export function retryability(
  error: GatewayError | null, status: number | null,
): { retryable: boolean; again: boolean } {
  const isPermanent = status !== null && isOperatorError(status)
  if (error === null || isPermanent) {
    return { retryable: status !== null && isFailure(status), again: !isPermanent }
  }
  // The upstream refused the credential in an earlier request, and the gateway remembers the refusal.
  if (error.code === 'upstream_rejected_key') return { retryable: true, again: false }
  // Another target may speak the client's protocol.
  if (isUntranslatable(error.code)) return { retryable: true, again: false }
  return { retryable: error.source === 'upstream' && error.retryable, again: !TIMEOUT_CODES.has(error.code) }
}

/**
 * Whether to try the failed target once more before any other. Only after its first failure
 * in a row: a target that keeps failing must neither delay requests nor get twice as many.
 *
 * @param status of its response; null = no response
 * @param retryAfterMs how long the upstream asked to wait, in ms; null = it did not
 * @param consecutiveFailures of the target, this one included
 */
export function isTransientFailure(
  status: number | null, retryAfterMs: number | null, consecutiveFailures: number,
): boolean {
  if (consecutiveFailures > 1) return false
  return retryAfterMs !== null || (status !== null && TRANSIENT_STATUSES.has(status))
}
