import type { LedgerRow } from '../row.ts'
import type { RowGroup, UsageSum } from './usage-sum.ts'

/** Selects requests that match all present members. */
export interface Filter {
  /** Requests that started at or after this time, ms since 1970. */
  readonly since?: number
  /** Requests that started before this time, ms since 1970. */
  readonly until?: number
  /** The key's name, or a glob: `*` matches any characters. */
  readonly key?: string
  /** The model as the client sent it, or a glob. */
  readonly model?: string
  /** The upstream of the last attempt, or a glob. */
  readonly upstream?: string
  /** The end user, or a glob. */
  readonly user?: string
  /** By name of a tag: its value, or a glob. */
  readonly tags?: Readonly<Record<string, string>>
}

/** A request with its row. The row of a running request is a checkpoint. */
export interface FoundRequest {
  readonly row: LedgerRow
  readonly running: boolean
}

export interface LedgerReader {
  /** Ended requests, oldest first. Reads by pages, so that a slow consumer does not block checkpoints of the log. */
  rows(filter: Filter): Generator<LedgerRow, void, undefined>
  /** The last `count` items of `rows`, oldest first. */
  latest(filter: Filter, count: number): LedgerRow[]
  /** One sum for each group, ordered by name; a single sum if `by` is empty. */
  sums(filter: Filter, by: readonly RowGroup[]): UsageSum[]
  /** Finds a request. There can be several, because a trusted proxy can reuse an id. */
  find(requestId: string): FoundRequest[]
  [Symbol.dispose](): void
}
