/** Days, hours and minutes are UTC. */
export const GROUPINGS = ['key', 'group', 'owner', 'model', 'upstream', 'protocol', 'status', 'user', 'day', 'hour', 'minute'] as const
/** `tag:project` groups by the value of a tag. */
export type GroupBy = (typeof GROUPINGS)[number] | TagGroup
export type TagGroup = `tag:${string}`
/** Groups that rows contain; an owner is that of the key. */
export type RowGroup = Exclude<GroupBy, 'owner'>

/** The tag of a group; null = the group is not a tag. */
export function tagOf(group: GroupBy): string | null {
  return group.startsWith('tag:') ? group.slice('tag:'.length) : null
}

export interface UsageSum {
  /** In the requested order: name, status, day (2026-11-21), hour or minute (2026-11-21T09:30Z); null = none. Empty = not grouped. */
  readonly groups: readonly (string | null)[]
  readonly requests: number
  readonly inputTokens: bigint
  readonly cachedInputTokens: bigint
  readonly cacheWriteTokens: bigint
  readonly outputTokens: bigint
  readonly reasoningTokens: bigint
  /** Sum of the known costs, picodollars; null = the cost of all requests is unknown. */
  readonly costPico: bigint | null
  /** Number of requests with an unknown cost. */
  readonly unpriced: number
}

export function byGroups({ groups: a }: UsageSum, { groups: b }: UsageSum): number {
  const at = a.findIndex((group, n) => group !== b[n])
  return at === -1 ? 0 : (a[at] ?? '') < (b[at] ?? '') ? -1 : 1
}

/** @returns the sum of both, with the groups of `a` */
export function add(a: UsageSum, b: UsageSum): UsageSum {
  return {
    groups: a.groups,
    requests: a.requests + b.requests,
    inputTokens: a.inputTokens + b.inputTokens,
    cachedInputTokens: a.cachedInputTokens + b.cachedInputTokens,
    cacheWriteTokens: a.cacheWriteTokens + b.cacheWriteTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    reasoningTokens: a.reasoningTokens + b.reasoningTokens,
    costPico: a.costPico === null || b.costPico === null ? a.costPico ?? b.costPico : a.costPico + b.costPico,
    unpriced: a.unpriced + b.unpriced,
  }
}
