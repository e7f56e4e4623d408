import type { Limits } from '../config/key-types.ts'
import type { ScopeLimits } from './types.ts'

/** The limits of one key, as a whole and by glob of models. */
export interface EffectiveLimits {
  readonly whole: ScopeLimits
  readonly models: ReadonlyMap<string, ScopeLimits>
}

/**
 * Lays a key's own limits over the defaults, field by field, for the key as a
 * whole and for each glob that either of the two names.
 */
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
