import type { LedgerRow } from './row.ts'

/** A request on its way into the ledger; opaque for the caller, who passes it back. */
export class LedgerEntry {
  /** Returns the row if the process died now; null when there is no draft, or the request has ended. */
  draft: (() => LedgerRow) | null
  /** How it is billed; null while it runs. */
  row: LedgerRow | null = null
  /** Where it waits to be written; null = it does not. */
  place: number | null = null
  /** Its draft is in the file, or on its way there. */
  isDrafted = false

  constructor(draft: (() => LedgerRow) | null) {
    this.draft = draft
  }
}
