import { isObject } from '../../base/is-object.ts'

/** Vertex AI names its tiers ON_DEMAND_FLEX and so on. */
const PREFIX = 'on_demand_'

/**
 * The tier that a usage object says the request was served in: Anthropic's
 * `service_tier`, or `speed` where that is fast; Google's `serviceTier` and
 * `trafficType`. OpenAI and those who follow it tell it beside the usage.
 *
 * @returns null where it says nothing
 */
export function tierIn(usage: unknown): string | null {
  if (!isObject(usage)) return null
  if (usage.speed === 'fast') return usage.speed
  return normaliseTier(usage.service_tier ?? usage.serviceTier ?? usage.trafficType)
}

/** A tier by the name that prices are set for: `flex` for FLEX and for ON_DEMAND_FLEX; null for no name. */
export function normaliseTier(value: unknown): string | null {
  if (typeof value !== 'string' || value === '') return null
  const name = value.toLowerCase()
  return name.startsWith(PREFIX) ? name.slice(PREFIX.length) : name
}
