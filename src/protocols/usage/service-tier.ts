import { isObject } from '../../base/is-object.ts'

/** Vertex AI names its tiers ON_DEMAND_FLEX and so on. */
const PREFIX = 'on_demand_'

/** The tier of Anthropic's `service_tier`, or `speed` if it is fast, and Google's `serviceTier` and `trafficType`; null = not said. */
export function tierIn(usage: unknown): string | null {
  if (!isObject(usage)) return null
  if (usage.speed === 'fast') return usage.speed
  return normaliseTier(usage.service_tier ?? usage.serviceTier ?? usage.trafficType)
}

/** The tier's name in the price list: `flex` for FLEX and for ON_DEMAND_FLEX; null = not a name. */
export function normaliseTier(value: unknown): string | null {
  if (typeof value !== 'string' || value === '') return null
  const name = value.toLowerCase()
  return name.startsWith(PREFIX) ? name.slice(PREFIX.length) : name
}
