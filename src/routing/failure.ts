import type { ErrorCode, GatewayError } from '../base/errors.ts'

/** Another attempt may succeed, as after 5xx. 424 is Bedrock's for a fault of the model, 498 Groq's for no capacity. */
const RETRYABLE_STATUSES = new Set([401, 402, 403, 408, 424, 429, 498])
/** The credential or account is at fault: the same upstream would repeat the status. */
const OPERATOR_ERROR_STATUSES = new Set([401, 402, 403])
/** A one-time fault, not a lack of capacity. */
const TRANSIENT_STATUSES = new Set([500, 502])
/** An upstream that did not respond in time is not tried twice. */
const TIMEOUT_CODES: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['first_byte_timeout', 'idle_timeout', 'connect_timeout'])

export function isRetryableStatus(status: number): boolean {
  return status >= 500 || RETRYABLE_STATUSES.has(status)
}

/** Is an error response with this status a failure of the upstream? (A status below 300 has an error in its body.) */
export function isFailure(status: number): boolean {
  return status < 300 || isRetryableStatus(status)
}

/** Is the status about the operator's credential or account? */
export function isOperatorError(status: number): boolean {
  return OPERATOR_ERROR_STATUSES.has(status)
}

export function isCredentialRefused(status: number): boolean {
  return status === 401 || status === 403
}

/** Another target may speak the client's protocol, or need no credential of the client. */
const UNSUITED_CODES: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['not_translatable', 'translation_lossy', 'own_credential_required'])

/** Can the request not be made for the target, although another target may serve it? */
export function isUnsuited(code: ErrorCode): boolean {
  return UNSUITED_CODES.has(code)
}

/**
 * Which attempts may follow a failure that the client has not seen? @param status null = no response
 * @returns `retryable`: another attempt may succeed; `sameTargetAllowed`: also one at the same target
 */
export function retryability(error: GatewayError | null, status: number | null): { retryable: boolean; sameTargetAllowed: boolean } {
  const isPermanent = status !== null && isOperatorError(status)
  if (error === null || isPermanent) return { retryable: status !== null && isFailure(status), sameTargetAllowed: !isPermanent }
  // The upstream refused the credential in an earlier request, and the gateway remembers the refusal.
  if (error.code === 'upstream_rejected_key') return { retryable: true, sameTargetAllowed: false }
  if (isUnsuited(error.code)) return { retryable: true, sameTargetAllowed: false }
  return { retryable: error.source === 'upstream' && error.retryable, sameTargetAllowed: !TIMEOUT_CODES.has(error.code) }
}

/**
 * May the failed target be tried once more before any other? Only after its first failure in a row, so that a target that keeps failing
 * does not delay requests. @param retryAfterMs requested by the upstream @param consecutiveFailures including this one
 */
export function isTransientFailure(status: number | null, retryAfterMs: number | null, consecutiveFailures: number): boolean {
  if (consecutiveFailures > 1) return false
  return retryAfterMs !== null || (status !== null && TRANSIENT_STATUSES.has(status))
}
