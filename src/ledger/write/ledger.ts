import type { RowValues } from '../columns.ts'
import type { LedgerEntry } from '../entry.ts'
import type { LedgerFailure } from '../ledger-failure.ts'
import type { LedgerRow } from '../row.ts'

export interface LedgerStats {
  /** Number of rows of ended requests in the file. */
  readonly written: number
  /** Number of rows and checkpoints that are not in the file yet. */
  readonly waiting: number
  /** Number of ended requests whose rows are lost. */
  readonly lost: number
  /** Number of requests of dead processes that got rows from their checkpoints. */
  readonly interrupted: number
  /** Number of failed writes. */
  readonly failures: number
  /** false = rows cannot be written now. */
  readonly healthy: boolean
  /** The last failure, which may be over, with its time (ms since 1970); null = none. */
  readonly lastError: (LedgerFailure & { readonly at: number }) | null
}

/**
 * The ledger for requests. No call blocks or throws: `stats` and callbacks report failures. Rows are written in the order of the calls of
 * `close`. If the process is killed, usually the rows of the last 30 ms are lost, or more if the writing thread or the disk is slow.
 */
export interface Ledger {
  /**
   * Call this when a request was admitted. A refused request needs no checkpoint.
   * @param draft creates a checkpoint: the row, with estimated usage, that remains if the process dies. The row's end is `interrupted`,
   * unless only the count of tokens is missing. Called when the checkpoint is written, and after each `updateDraft`, but not after `close`.
   */
  open(draft: () => LedgerRow): LedgerEntry
  /** Writes a new checkpoint. Call this when the upstream is known, about once a second in a stream, and before tokens are counted. */
  updateDraft(entry: LedgerEntry): void
  /** Call this when the request has ended. @param row must not change afterwards @param entry absent = `open` was not called */
  close(row: LedgerRow, entry?: LedgerEntry | null): void
  stats(): LedgerStats
  /** @returns rows and checkpoints that may not be in the file yet. Of each request, the last one counts */
  unwritten(): RowValues[]
  /** Resolves when the file is open, or after the first attempt to open it has failed. */
  ready(): Promise<void>
  /** Resolves when all rows are written or counted as lost. */
  flush(): Promise<void>
  /**
   * Writes waiting rows and closes the file. If writing failed before, tries once more. Counts unwritten and later rows as lost.
   * @param timeoutMs maximum ms; default 5000
   */
  shutdown(timeoutMs?: number): Promise<void>
}

export interface LedgerOptions {
  /** Path of the file. The directory is created if it is missing. */
  readonly file: string
  /** Milliseconds that rows are kept; null = forever. */
  readonly keep: number | null
  /** true = a row is deleted only after PostgreSQL has it; default false. */
  readonly isShipped?: boolean
  /** Maximum rows that wait in memory, of about 1 kB each; default 100,000. */
  readonly maxWaiting?: number
  /** Called when rows cannot be written: when the cause changes, and once a minute. */
  readonly onFailure: (failure: LedgerFailure, stats: LedgerStats) => void
  readonly onRecovered: (stats: LedgerStats) => void
  /** Called with the rows of dead processes' requests, which were created from their checkpoints. */
  readonly onInterrupted?: (rows: readonly LedgerRow[]) => void
}
