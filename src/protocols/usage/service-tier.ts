import { isObject } from '../../base/is-object.ts'

/** Prefix of Vertex AI's tiers, such as ON_DEMAND_FLEX. */
const PREFIX = 'on_demand_'

/** The tier in Anthropic's `service_tier` (or `speed` if it is `fast`), or in Google's `serviceTier` or `trafficType`; null = none. */
export function tierIn(usage: unknown): string | null {
  if (!isObject(usage)) return null
  if (usage.speed === 'fast') return usage.speed
  return normaliseTier(usage.service_tier ?? usage.serviceTier ?? usage.trafficType)
}

/** The tier's name in the price list, such as `flex` for FLEX and for ON_DEMAND_FLEX; null = the value is not a name. */
export function normaliseTier(value: unknown): string | null {
  if (typeof value !== 'string' || value === '') return null
  const name = value.toLowerCase()
  return name.startsWith(PREFIX) ? name.slice(PREFIX.length) : name
}
