import type { LedgerFailure } from '../ledger-failure.ts'
import type { Batch } from './ledger-store.ts'
import type { StoredRow } from '../stored-values.ts'

export interface WriterOptions {
  readonly file: string
  readonly instance: string
  /** ms that rows are kept; null = no limit. */
  readonly keep: number | null
  /** PostgreSQL gets each row before it is deleted. */
  readonly isShipped: boolean
}

export type ToWriter = Batch | 'close'

export type FromWriter =
  /** A batch survives kill -9. `refused` is why `lost` of its rows are not stored. */
  | { readonly kind: 'written'; readonly seq: number; readonly lost: number; readonly refused: LedgerFailure | null }
  /** Requests of dead processes were recovered from their drafts. */
  | { readonly kind: 'interrupted'; readonly rows: readonly StoredRow[] }
  /** Nothing can be written; the thread keeps trying. */
  | { readonly kind: 'trouble'; readonly trouble: LedgerFailure }
  /** The file can be written: after the start, and after trouble. */
  | { readonly kind: 'healthy' }
