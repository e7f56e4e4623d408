import type { LedgerRow } from './row.ts'

/** A request for the ledger. Callers only pass it back. */
export class LedgerEntry {
  /** Makes the row to keep if the process dies now; null = no draft, or the request has ended. */
  draft: (() => LedgerRow) | null
  /** null while the request runs. */
  row: LedgerRow | null = null
  /** Position in the queue; null = does not wait. */
  place: number | null = null
  /** The draft is in the file, or is being written. */
  isDrafted = false

  constructor(draft: (() => LedgerRow) | null) {
    this.draft = draft
  }
}
