import type { LedgerFailure } from '../ledger-failure.ts'
import type { Batch } from './ledger-store.ts'
import type { StoredRow } from '../stored-values.ts'

/** The options of the writing thread. */
export interface WriterOptions {
  readonly file: string
  readonly instance: string
  /** ms that rows are kept; null = for ever. */
  readonly keep: number | null
  /** Rows go to PostgreSQL: none is deleted before PostgreSQL has it. */
  readonly isShipped: boolean
}

/** A batch to write, or the end. */
export type ToWriter = Batch | 'close'

export type FromWriter =
  /** A batch survives kill -9. `refused` is why `lost` of its rows are not stored. */
  | {
      readonly kind: 'written'
      readonly seq: number
      readonly lost: number
      readonly refused: LedgerFailure | null
    }
  /** Requests of dead processes were recovered from their drafts. */
  | { readonly kind: 'interrupted'; readonly rows: readonly StoredRow[] }
  /** Nothing can be written; the thread keeps trying. */
  | { readonly kind: 'trouble'; readonly trouble: LedgerFailure }
  /** The file can be written: after the start, and after trouble. */
  | { readonly kind: 'well' }
