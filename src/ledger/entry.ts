import type { LedgerRow } from './row.ts'

/** A request in the ledger. Callers pass the entry back to the ledger, and do not use its members. */
export class LedgerEntry {
  /** Creates the row to keep if the process dies now; null = there is no checkpoint, or the request has ended. */
  draft: (() => LedgerRow) | null
  /** The final row; null = the request is running. */
  row: LedgerRow | null = null
  /** Position in the queue; null = the entry is not in the queue. */
  place: number | null = null
  /** true = a checkpoint of the request is in the file, or is being written. */
  isDrafted = false

  constructor(draft: (() => LedgerRow) | null) {
    this.draft = draft
  }
}
