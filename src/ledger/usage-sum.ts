/** What requests can be summed by; days, hours and minutes are UTC. */
export const GROUPINGS = [
  'key', 'group', 'owner', 'model', 'upstream', 'protocol', 'status', 'day', 'hour', 'minute',
] as const
export type GroupBy = (typeof GROUPINGS)[number]
/** What rows say themselves; owners are those of their keys. */
export type RowGroup = Exclude<GroupBy, 'owner'>

/** What a group of requests used. */
export interface UsageSum {
  /**
   * What the requests have in common, in the order in which it was asked for: names, a status, a day (2026-11-21), an
   * hour or a minute (2026-11-21T09:30Z). null for requests without one; empty for the sum of all.
   */
  readonly groups: readonly (string | null)[]
  readonly requests: number
  readonly inputTokens: bigint
  readonly cachedInputTokens: bigint
  readonly cacheWriteTokens: bigint
  readonly outputTokens: bigint
  readonly reasoningTokens: bigint
  /** Of the requests that have a cost; null when none has. */
  readonly costPico: bigint | null
  /** Requests whose cost is not known. */
  readonly unpriced: number
}

/** By the first of their groups that differ. */
export function byGroups({ groups: a }: UsageSum, { groups: b }: UsageSum): number {
  const at = a.findIndex((group, n) => group !== b[n])
  return at === -1 ? 0 : (a[at] ?? '') < (b[at] ?? '') ? -1 : 1
}

/** The sum of both; the groups are those of the first. */
export function add(a: UsageSum, b: UsageSum): UsageSum {
  return {
    groups: a.groups,
    requests: a.requests + b.requests,
    inputTokens: a.inputTokens + b.inputTokens,
    cachedInputTokens: a.cachedInputTokens + b.cachedInputTokens,
    cacheWriteTokens: a.cacheWriteTokens + b.cacheWriteTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    reasoningTokens: a.reasoningTokens + b.reasoningTokens,
    costPico: a.costPico === null || b.costPico === null
      ? a.costPico ?? b.costPico
      : a.costPico + b.costPico,
    unpriced: a.unpriced + b.unpriced,
  }
}
