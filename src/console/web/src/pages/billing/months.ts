/** @param month - `2026-11`. @returns its first moment, and the first of the next month, UTC */
export function monthBounds(month: string): { from: string; to: string } {
  const from = new Date(`${month}-01T00:00:00Z`)
  return { from: from.toISOString(), to: startOf(from.getTime(), 1).toISOString() }
}

/** The month before: `2026-11` -> `2026-10` */
export function monthBefore(month: string): string {
  return startOf(Date.parse(`${month}-01T00:00:00Z`), -1).toISOString().slice(0, 7)
}

/** The current month and the months before it, newest first: `2026-11`. */
export function monthsUpTo(now: number, many: number): string[] {
  return Array.from({ length: many }, (_, back) => startOf(now, -back).toISOString().slice(0, 7))
}

function startOf(at: number, away: number): Date {
  const date = new Date(at)
  return new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + away, 1))
}
