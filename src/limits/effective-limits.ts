import type { Limits } from '../config/key-types.ts'
import type { ScopeLimits } from './types.ts'

export type EffectiveLimits = { readonly whole: ScopeLimits; readonly models: ReadonlyMap<string, ScopeLimits> }

/** Merges a key's limits with the defaults, for the whole key and for each glob of models. Fields that the key sets replace the default. */
export function effectiveLimits(own: Limits | null, defaults: Limits | null): EffectiveLimits {
  const globs = new Set([...own?.models.keys() ?? [], ...defaults?.models.keys() ?? []])
  const whole = mergeLimits(own, defaults)
  return {
    whole,
    models: new Map([...globs].map(glob => {
      const limits = mergeLimits(own?.models.get(glob), defaults?.models.get(glob))
      return [glob, !limits.queue && whole.queue ? { ...limits, queue: whole.queue } : limits]
    })),
  }
}

function mergeLimits(own?: ScopeLimits | null, defaults?: ScopeLimits | null): ScopeLimits {
  return {
    requestsPerMinute: own?.requestsPerMinute ?? defaults?.requestsPerMinute ?? null,
    tokensPerMinute: own?.tokensPerMinute ?? defaults?.tokensPerMinute ?? null,
    concurrent: own?.concurrent ?? defaults?.concurrent ?? null,
    budget: own?.budget ?? defaults?.budget ?? null,
    ...queueOf(own, defaults),
  }
}

function queueOf(own?: ScopeLimits | null, defaults?: ScopeLimits | null): Pick<ScopeLimits, 'queue'> {
  const queue = own?.queue ?? defaults?.queue ?? null
  return queue === null ? {} : { queue }
}
