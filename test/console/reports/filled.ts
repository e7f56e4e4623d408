import { join } from 'node:path'
import { openReports } from '../../../src/console/reports/reports.ts'
import type { Reports, ReportsOptions } from '../../../src/console/reports/reports.ts'
import { encode } from '../../../src/ledger/columns.ts'
import { LedgerStore } from '../../../src/ledger/write/ledger-store.ts'
import type { LedgerRow } from '../../../src/ledger/row.ts'

/** 2026-11-21T12:34:56.789Z */
export const NOW = Date.UTC(2026, 10, 21, 12, 34, 56, 789)
export const HOUR = 3_600_000
export const DAY = 24 * HOUR

export const iso = (ms: number): string => new Date(ms).toISOString()

/** Writes a ledger file with these rows; only the first `summed` rows are in the sums. */
export function filled(directory: string, rows: readonly LedgerRow[], summed = rows.length): string {
  const file = join(directory, 'gateway.db')
  const store = new LedgerStore(file, 'test')
  store.write({ seq: 1, drafts: [], closed: rows.slice(0, summed).map(encode) })
  while (store.sum());
  store.write({ seq: 2, drafts: [], closed: rows.slice(summed).map(encode) })
  store.close()
  return file
}

/** Reports of a file, at NOW by default. */
export async function withReports<T>(
  file: string, work: (reports: Reports) => Promise<T>, options: Partial<ReportsOptions> = {},
): Promise<T> {
  const reports = openReports({ file, now: () => NOW, deadline: 60_000, ...options })
  try {
    return await work(reports)
  } finally {
    await reports.close()
  }
}
