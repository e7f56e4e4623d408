import type { LedgerRow } from './row.ts'

/** A request on its way into the ledger. The caller only passes it back. */
export class LedgerEntry {
  /** Returns the row to keep if the process dies now; null = there is no draft, or the request has ended. */
  draft: (() => LedgerRow) | null
  /** The final row; null while the request runs. */
  row: LedgerRow | null = null
  /** Its position in the queue; null = it does not wait. */
  place: number | null = null
  /** Its draft is in the file or being written. */
  isDrafted = false

  constructor(draft: (() => LedgerRow) | null) {
    this.draft = draft
  }
}
