/** Statuses that tell of something which went wrong this once, rather than of a lack of room. */
const TRANSIENT_STATUSES = new Set([500, 502])

/**
 * Is the candidate that failed worth another attempt before anybody else is asked?
 * Only by its first failure in a row: when it fails them all, nobody is to wait for it,
 * nor to ask it twice as often.
 *
 * @param status of its answer, or null where none came
 * @param retryAfterMs how long it asked to be left alone, or null
 * @param failuresInARow of the candidate, this one included
 */
export function isTransientFailure(
  status: number | null, retryAfterMs: number | null, failuresInARow: number,
): boolean {
  if (failuresInARow > 1) return false
  return retryAfterMs !== null || (status !== null && TRANSIENT_STATUSES.has(status))
}
