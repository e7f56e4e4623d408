import type { Limits } from '../config/key-types.ts'
import type { ScopeLimits } from './types.ts'

export type EffectiveLimits = { readonly whole: ScopeLimits; readonly models: ReadonlyMap<string, ScopeLimits> }

/** Merges a key's limits with the defaults, for the whole key and for each glob of models. Fields that the key sets replace the default. */
export function effectiveLimits(own: Limits | null, defaults: Limits | null): EffectiveLimits {
  const globs = new Set([...own?.models.keys() ?? [], ...defaults?.models.keys() ?? []])
  return {
    whole: mergeLimits(own, defaults),
    models: new Map([...globs].map(glob => [glob, mergeLimits(own?.models.get(glob), defaults?.models.get(glob))])),
  }
}

function mergeLimits(own?: ScopeLimits | null, defaults?: ScopeLimits | null): ScopeLimits {
  return {
    requestsPerMinute: own?.requestsPerMinute ?? defaults?.requestsPerMinute ?? null,
    tokensPerMinute: own?.tokensPerMinute ?? defaults?.tokensPerMinute ?? null,
    concurrent: own?.concurrent ?? defaults?.concurrent ?? null,
    budget: own?.budget ?? defaults?.budget ?? null,
  }
}
