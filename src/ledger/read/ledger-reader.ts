import type { LedgerRow } from '../row.ts'
import type { RowGroup, UsageSum } from './usage-sum.ts'

/** Selects requests; an absent member selects all. */
export interface Filter {
  /** Started at or after, ms since 1970. */
  readonly since?: number
  /** Started before, ms since 1970. */
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

/** The row of a running request is a draft. */
export interface FoundRequest {
  readonly row: LedgerRow
  readonly running: boolean
}

export interface LedgerReader {
  /** Ended requests, oldest first, read by pages: a slow consumer does not block checkpoints. */
  rows(filter: Filter): Generator<LedgerRow, void, undefined>
  /** The last `count` of `rows`, oldest first. */
  latest(filter: Filter, count: number): LedgerRow[]
  /** One sum for each group, ordered by name; a single sum if `by` is empty. */
  sums(filter: Filter, by: readonly RowGroup[]): UsageSum[]
  /** One request, unless a trusted proxy reused the id. */
  find(requestId: string): FoundRequest[]
  [Symbol.dispose](): void
}
