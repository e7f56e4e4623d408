import type { ErrorCode, GatewayError } from '../base/errors.ts'

/** Statuses below 500 after which another attempt may succeed. Bedrock sends 424 for a fault of the model, Groq 498 for no capacity. */
const RETRYABLE_STATUSES = new Set([401, 402, 403, 408, 424, 429, 498])
/** Statuses about the credential or the account. The same upstream would send them again. */
const OPERATOR_ERROR_STATUSES = new Set([401, 402, 403])
/** Statuses of a fault that may not occur again at once, other than a lack of capacity. */
const TRANSIENT_STATUSES = new Set([500, 502])
/** Errors after which the same target is not tried again, because the upstream did not respond in time. */
const TIMEOUT_CODES: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['first_byte_timeout', 'idle_timeout', 'connect_timeout'])

export function isRetryableStatus(status: number): boolean {
  return status >= 500 || RETRYABLE_STATUSES.has(status)
}

/** @returns true = an error response with this status counts as a failure of the upstream. Below 300, the error is in the body */
export function isFailure(status: number): boolean {
  return status < 300 || isRetryableStatus(status)
}

/** @returns true = the status is about the operator's credential or account */
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
 * Decides which attempts may follow a failure of which the client got nothing. @param status null = no response
 * @returns `retryable`: another attempt may succeed; `sameTargetAllowed`: an attempt at the same target may succeed too
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
 * @returns true = try the failed target once more before other targets. Only after its first consecutive failure, so that a target that
 * keeps failing does not delay requests. @param retryAfterMs requested by the upstream @param consecutiveFailures including the new failure
 */
export function isTransientFailure(status: number | null, retryAfterMs: number | null, consecutiveFailures: number): boolean {
  if (consecutiveFailures > 1) return false
  return retryAfterMs !== null || (status !== null && TRANSIENT_STATUSES.has(status))
}
