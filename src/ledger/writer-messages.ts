import type { LedgerFailure } from './ledger-failure.ts'
import type { Batch } from './ledger-store.ts'
import type { StoredRow } from './stored-values.ts'

/** What the writing thread is started with. */
export interface WriterOptions {
  readonly file: string
  readonly instance: string
  /** ms that rows are kept; null = for ever. */
  readonly keep: number | null
  /** Rows go to PostgreSQL: none is deleted before it is there. */
  readonly isShipped: boolean
}

/** A batch to write, or that no more will come. */
export type ToWriter = Batch | 'close'

export type FromWriter =
  /** A batch is safe from kill -9. `refused` is why `lost` of its rows are not in it. */
  | {
      readonly kind: 'written'
      readonly seq: number
      readonly lost: number
      readonly refused: LedgerFailure | null
    }
  /** Requests of processes that died are in the ledger, as their drafts tell them. */
  | { readonly kind: 'interrupted'; readonly rows: readonly StoredRow[] }
  /** Nothing is written for now; the thread keeps trying. */
  | { readonly kind: 'trouble'; readonly trouble: LedgerFailure }
  /** The file can be written: after the start, and when trouble is over. */
  | { readonly kind: 'well' }
