import type { LedgerRow } from './row.ts'
import type { RowGroup, UsageSum } from './usage-sum.ts'

/** Which requests; what is absent does not matter. */
export interface Filter {
  /** Started at or after, ms since 1970. */
  readonly since?: number
  /** Started before, ms since 1970. */
  readonly until?: number
  /** The key's name, or a glob of it: `*` is any run of characters. */
  readonly key?: string
  /** The model as the client asked for it, or a glob. */
  readonly model?: string
  /** The upstream that the request went to last, or a glob. */
  readonly upstream?: string
}

/** A request, and whether it still runs: then the row is only a draft. */
export interface FoundRequest {
  readonly row: LedgerRow
  readonly running: boolean
}

/** The reading side of a ledger, beside the gateway that writes it or without one. */
export interface LedgerReader {
  /**
   * The requests that have ended, oldest first. Reads a page at a time, so that a
   * slow consumer does not hold up the writer's checkpoints.
   */
  rows(filter: Filter): Generator<LedgerRow, void, undefined>
  /** The last ones of rows(filter), oldest first. */
  latest(filter: Filter, count: number): LedgerRow[]
  /** One sum for each group, in the order of their names; one in all where `by` is empty. */
  sums(filter: Filter, by: readonly RowGroup[]): UsageSum[]
  /** All that is known of a request id: one request, unless a trusted proxy used the id again. */
  find(requestId: string): FoundRequest[]
  [Symbol.dispose](): void
}
