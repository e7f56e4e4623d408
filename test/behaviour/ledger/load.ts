import type { LedgerRow } from '../../../src/ledger/row.ts'
import { draft, MIDNIGHT, NOTHING_USED, row } from '../../ledger/rows.ts'

/** The checkpoints and the row of the nth request of a process; each figure follows from n. */
export function request(process: string, n: number): { drafts: LedgerRow[]; row: LedgerRow } {
  const id = `${process}-${String(n).padStart(8, '0')}`
  const same = { startedAt: MIDNIGHT + n, key: `key-${n % 7}`, model: `model-${n % 5}` }
  return {
    drafts: [0, 1].map(step => draft(id, { ...same, bytesOut: step, costPico: BigInt(n * 10 + step) })),
    row: row(id, {
      ...same,
      usage: { ...NOTHING_USED, inputTokens: n, outputTokens: 2 * n },
      costPico: BigInt(n) * 1_000_000n,
      bytesIn: n,
      bytesOut: 3 * n,
    }),
  }
}

/** A report of the loading process, one per line of its standard output. */
export interface Report {
  /** The reported entry: one of two checkpoints, or the row. */
  readonly what: 'draft 0' | 'draft 1' | 'row'
  readonly n: number
}
