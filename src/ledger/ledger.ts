import type { RowValues } from './columns.ts'
import type { LedgerEntry } from './entry.ts'
import type { LedgerFailure } from './ledger-failure.ts'
import type { LedgerRow } from './row.ts'

/** What the ledger knows of its own state. */
export interface LedgerStats {
  /** Ended requests that are safe in the file. */
  readonly written: number
  /** Rows in memory: not yet in the file, ended or still in flight. */
  readonly waiting: number
  /** Ended requests that could not be kept, and never will be. */
  readonly lost: number
  /** Requests of processes that died, entered by this one as they were left. */
  readonly interrupted: number
  /** Attempts to write that failed. */
  readonly failures: number
  /** False while rows cannot be written. */
  readonly healthy: boolean
  /** The last failure, with its time (ms since 1970); it may be over. */
  readonly lastError: (LedgerFailure & { readonly at: number }) | null
}

/**
 * The ledger as the request path sees it. No call blocks, waits or throws;
 * failures are reported to the callbacks and counted in stats.
 *
 * Rows are written in the order in which they were closed, so that kill -9 loses
 * only the last ones: usually those of the last 30 ms, and more if the machine has
 * no time for the thread that writes, or the disk does not respond.
 */
export interface Ledger {
  /**
   * A request was admitted. A refused one needs no draft.
   *
   * @param draft returns the row that is left if the process dies: with estimates of the usage, and
   *   `interrupted` unless only the count is missing. Called when it is written, and again after each
   *   `updateDraft`; never after `close`.
   * @returns the entry, for the other calls
   */
  open(draft: () => LedgerRow): LedgerEntry
  /**
   * There is a better draft of an open request: when its upstream is known, about once a second while a
   * stream runs, and when it has ended and is still to be counted.
   */
  updateDraft(entry: LedgerEntry): void
  /**
   * The request ended. Its row is not to be changed afterwards.
   *
   * @param entry none where it was never opened
   */
  close(row: LedgerRow, entry?: LedgerEntry | null): void
  stats(): LedgerStats
  /**
   * Rows, ended or in flight, that may not be in the file yet: with them, a reader of the
   * file misses none. Of one request the last counts.
   */
  unwritten(): RowValues[]
  /** Resolves when the file is open, or when the first try has failed. */
  ready(): Promise<void>
  /** Resolves when nothing waits: all is written, or counted as lost. */
  flush(): Promise<void>
  /**
   * Writes what waits and closes the file. What cannot be written in time is lost
   * and counted; so is what is closed afterwards. A file that could not be written
   * before is tried once more, and not waited for.
   * @param timeoutMs ms, default 5000
   */
  shutdown(timeoutMs?: number): Promise<void>
}

export interface LedgerOptions {
  /** Path; the directory is made where it is missing. */
  readonly file: string
  /** ms that rows are kept; null = for ever. */
  readonly keep: number | null
  /** Rows go to PostgreSQL: none is deleted before it is there. Default: they do not. */
  readonly isShipped?: boolean
  /** Most rows that wait in memory, about 1 kB each; default 100,000. */
  readonly maxWaiting?: number
  /** Called when rows cannot be kept or written: at each change of the cause, and again each minute. */
  readonly onFailure: (failure: LedgerFailure, stats: LedgerStats) => void
  /** Called when rows are written again. */
  readonly onRecovered: (stats: LedgerStats) => void
  /** Called with the rows of requests of processes that died, when they are entered. */
  readonly onInterrupted?: (rows: readonly LedgerRow[]) => void
}
