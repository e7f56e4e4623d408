import type { Limits } from '../../../src/config/key-types.ts'
import type { ScopeLimits } from '../../../src/limits/types.ts'

const NONE: ScopeLimits = { requestsPerMinute: null, tokensPerMinute: null, concurrent: null, budget: null }

/** Limits with the given fields set and no others. */
export function limits(
  set: Partial<ScopeLimits> & { models?: Readonly<Record<string, Partial<ScopeLimits>>> },
): Limits {
  const { models = {}, ...own } = set
  const entries = Object.entries(models).map(([glob, fields]) => [glob, { ...NONE, ...fields }] as const)
  return { ...NONE, ...own, models: new Map(entries) }
}
