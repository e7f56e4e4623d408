import type { Price } from '../config/types.ts'
import { readBodyTier } from './body.ts'
import { ceiling } from './cost.ts'
import type { QuotedPrice } from './prices.ts'
import type { Answer } from './settle.ts'
import type { Usage } from './usage.ts'

/** The price of an answer: that of the tier which its upstream says it was served in, if one is set. */
export function priceFor(quoted: QuotedPrice | null, answer: Answer | null): QuotedPrice | null {
  if (!quoted?.serviceTiers || answer === null) return quoted
  const tier = toldTier(answer)
  return (tier === null ? undefined : quoted.serviceTiers.get(tier)) ?? quoted
}

function toldTier(answer: Answer): string | null {
  if (answer.kind === 'stream') return answer.meter.serviceTier
  return answer.kind === 'body' ? readBodyTier(answer.body) : null
}

/** Has what is written to the cache a rate of its own, in whichever tier? */
export function pricesWrites(quoted: QuotedPrice): boolean {
  return pricesOf(quoted).some(price =>
    hasWriteRate(price) || (price.tiers?.some(tier => hasWriteRate(tier.price)) ?? false))
}

/** Of every service tier. */
function pricesOf({ price, serviceTiers }: QuotedPrice): Price[] {
  return [price, ...Array.from(serviceTiers?.values() ?? [], tier => tier.price)]
}

function hasWriteRate({ cacheWrite5m, cacheWrite1h }: Price): boolean {
  return (cacheWrite5m ?? cacheWrite1h) !== undefined
}

/**
 * What it costs at most, in picodollars, whichever of these it is going to use, and in whichever
 * tier it is going to be served; null = nobody knows.
 */
export function dearest(usages: readonly Usage[], quoted: QuotedPrice): bigint | null {
  const prices = pricesOf(quoted)
  const costs = usages.flatMap(usage => prices.map(price => ceiling(usage, price)))
  return costs.reduce((a, b) => (a === null || b === null || b <= a ? a : b))
}
