import type { RowValues } from '../columns.ts'
import type { LedgerEntry } from '../entry.ts'
import type { LedgerFailure } from '../ledger-failure.ts'
import type { LedgerRow } from '../row.ts'

/** The state of the ledger. */
export interface LedgerStats {
  /** Ended requests whose rows are in the file. */
  readonly written: number
  /** Rows in memory, ended or running, that are not in the file yet. */
  readonly waiting: number
  /** Ended requests whose rows are lost. */
  readonly lost: number
  /** Requests of dead processes that this one recovered. */
  readonly interrupted: number
  /** Number of failed writes. */
  readonly failures: number
  /** False while rows cannot be written. */
  readonly healthy: boolean
  /** The last failure, with its time (ms since 1970); it may be over. */
  readonly lastError: (LedgerFailure & { readonly at: number }) | null
}

/**
 * The ledger as the request path uses it. No call blocks, waits or throws;
 * failures are reported to the callbacks and counted in stats.
 *
 * Rows are written in the order in which they were closed, so that kill -9 loses
 * only the last ones: usually those of the last 30 ms, and more if the machine has
 * no time for the thread that writes, or the disk does not respond.
 */
export interface Ledger {
  /**
   * A request was admitted. Refused requests need no draft.
   *
   * @param draft returns the row that is left if the process dies: with estimates of the usage, and
   *   `interrupted` unless only the count is missing. Called when it is written, and again after each
   *   `updateDraft`; never after `close`.
   * @returns the entry, for the other calls
   */
  open(draft: () => LedgerRow): LedgerEntry
  /**
   * An open request has a better draft: its upstream is known, its stream runs (about once a
   * second), or it has ended and is being counted.
   */
  updateDraft(entry: LedgerEntry): void
  /**
   * The request ended. The row must not be changed afterwards.
   *
   * @param entry absent = the request was never opened
   */
  close(row: LedgerRow, entry?: LedgerEntry | null): void
  stats(): LedgerStats
  /**
   * Rows, ended or running, that may not be in the file yet. A reader adds them to the rows
   * of the file. The last one of each request counts.
   */
  unwritten(): RowValues[]
  /** Resolves when the file is open, or after the first failed try. */
  ready(): Promise<void>
  /** Resolves when every row is written or counted as lost. */
  flush(): Promise<void>
  /**
   * Writes waiting rows and closes the file. Rows that cannot be written in time, and rows
   * that are closed later, are lost and counted. A file that could not be written before
   * is tried once more, without waiting.
   * @param timeoutMs ms, default 5000
   */
  shutdown(timeoutMs?: number): Promise<void>
}

export interface LedgerOptions {
  /** Path; its directory is created if it is missing. */
  readonly file: string
  /** ms that rows are kept; null = without limit. */
  readonly keep: number | null
  /** Rows go to PostgreSQL: none is deleted before PostgreSQL has it. Default: false. */
  readonly isShipped?: boolean
  /** Maximum number of rows that wait in memory, about 1 kB each; default 100,000. */
  readonly maxWaiting?: number
  /** Called when rows cannot be written: at each change of the cause, and once a minute. */
  readonly onFailure: (failure: LedgerFailure, stats: LedgerStats) => void
  /** Called when rows are written again. */
  readonly onRecovered: (stats: LedgerStats) => void
  /** Called with the recovered rows of dead processes. */
  readonly onInterrupted?: (rows: readonly LedgerRow[]) => void
}
