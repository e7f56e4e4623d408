/** @param ms since 1970 */
export function isoTime(ms: number): string {
  return new Date(ms).toISOString()
}

/** As isoTime; null stays null. */
export function isoTimeOrNull(ms: number | null): string | null {
  return ms === null ? null : isoTime(ms)
}
