import type { RowValues } from '../columns.ts'
import type { LedgerEntry } from '../entry.ts'
import type { LedgerFailure } from '../ledger-failure.ts'
import type { LedgerRow } from '../row.ts'

export interface LedgerStats {
  /** Ended requests in the file. */
  readonly written: number
  /** Rows, ended or running, that are not in the file yet. */
  readonly waiting: number
  /** Ended requests whose rows are lost. */
  readonly lost: number
  /** Recovered requests of dead processes. */
  readonly interrupted: number
  /** Failed writes. */
  readonly failures: number
  /** False while rows cannot be written. */
  readonly healthy: boolean
  /** With its time (ms since 1970); it may be over. */
  readonly lastError: (LedgerFailure & { readonly at: number }) | null
}

/**
 * For the request path. No call blocks, waits or throws; `stats` and callbacks report failures. Rows are written in the order of `close`:
 * kill -9 usually loses the rows of the last 30 ms, and more if the writing thread or the disk is slow.
 */
export interface Ledger {
  /**
   * A request was admitted (refused ones need no draft).
   * @param draft makes the row that remains if the process dies: estimated usage, `interrupted` unless only the count is missing. Called
   * when it is written, and after each `updateDraft`; never after `close`.
   */
  open(draft: () => LedgerRow): LedgerEntry
  /** The draft has become better: upstream known, stream running (about once a second), or ended and being counted. */
  updateDraft(entry: LedgerEntry): void
  /** The request ended. The row must not change afterwards. @param entry absent = the request was never opened */
  close(row: LedgerRow, entry?: LedgerEntry | null): void
  stats(): LedgerStats
  /** Rows, ended or running, that may not be in the file yet. The last of each request counts. */
  unwritten(): RowValues[]
  /** Resolves when the file is open, or after the first failed try. */
  ready(): Promise<void>
  /** Resolves when every row is written or counted as lost. */
  flush(): Promise<void>
  /**
   * Writes waiting rows and closes the file, which gets one more try if it failed before. Later and unwritten rows are lost and counted.
   * @param timeoutMs ms, default 5000
   */
  shutdown(timeoutMs?: number): Promise<void>
}

export interface LedgerOptions {
  /** Path; its directory is created if it is missing. */
  readonly file: string
  /** ms that rows are kept; null = no limit. */
  readonly keep: number | null
  /** PostgreSQL gets each row before it is deleted. Default: false. */
  readonly isShipped?: boolean
  /** Maximum rows that wait in memory, about 1 kB each; default 100,000. */
  readonly maxWaiting?: number
  /** Called when rows cannot be written: at each change of the cause, and once a minute. */
  readonly onFailure: (failure: LedgerFailure, stats: LedgerStats) => void
  readonly onRecovered: (stats: LedgerStats) => void
  /** Gets the recovered rows of dead processes. */
  readonly onInterrupted?: (rows: readonly LedgerRow[]) => void
}
