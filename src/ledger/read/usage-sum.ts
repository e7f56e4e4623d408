/** The groups by which requests can be summed; days, hours and minutes are UTC. */
export const GROUPINGS = [
  'key', 'group', 'owner', 'model', 'upstream', 'protocol', 'status', 'day', 'hour', 'minute',
] as const
export type GroupBy = (typeof GROUPINGS)[number]
/** Groups that rows contain; owners are those of the keys. */
export type RowGroup = Exclude<GroupBy, 'owner'>

/** The usage of a group of requests. */
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
  /** Number of requests with an unknown cost. */
  readonly unpriced: number
}

/** Orders by the first group that differs. */
export function byGroups({ groups: a }: UsageSum, { groups: b }: UsageSum): number {
  const at = a.findIndex((group, n) => group !== b[n])
  return at === -1 ? 0 : (a[at] ?? '') < (b[at] ?? '') ? -1 : 1
}

/** Adds both sums; the groups are those of the first. */
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
