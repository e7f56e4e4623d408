import type { LedgerFailure } from '../ledger-failure.ts'
import type { Batch } from './ledger-store.ts'
import type { StoredRow } from '../stored-values.ts'

export interface WriterOptions {
  readonly file: string
  readonly instance: string
  /** Milliseconds that rows are kept; null = forever. */
  readonly keep: number | null
  /** true = a row is deleted only after PostgreSQL has it. */
  readonly isShipped: boolean
}

export type ToWriter = Batch | 'close'

export type FromWriter =
  /** The batch is in the file, even if the process is killed now. `lost` of its rows are not stored because of `refused`. */
  | { readonly kind: 'written'; readonly seq: number; readonly lost: number; readonly refused: LedgerFailure | null }
  /** Checkpoints of dead processes' requests were written as rows. */
  | { readonly kind: 'interrupted'; readonly rows: readonly StoredRow[] }
  /** Nothing can be written. The thread tries again. */
  | { readonly kind: 'trouble'; readonly trouble: LedgerFailure }
  /** The file can be written. Sent after the start, and when a failure is over. */
  | { readonly kind: 'healthy' }
