/** @param month - such as `2026-11`. @returns the start of the month, and the start of the next month, in UTC */
export function monthBounds(month: string): { from: string; to: string } {
  const from = new Date(`${month}-01T00:00:00Z`)
  return { from: from.toISOString(), to: startOf(from.getTime(), 1).toISOString() }
}

/** The previous month: `2026-11` -> `2026-10`. */
export function monthBefore(month: string): string {
  return startOf(Date.parse(`${month}-01T00:00:00Z`), -1).toISOString().slice(0, 7)
}

/** The current month and the months before it, such as `2026-11`; the newest first. */
export function monthsUpTo(now: number, many: number): string[] {
  return Array.from({ length: many }, (_, back) => startOf(now, -back).toISOString().slice(0, 7))
}

function startOf(at: number, away: number): Date {
  const date = new Date(at)
  return new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + away, 1))
}
