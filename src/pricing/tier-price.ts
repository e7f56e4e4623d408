import type { Price } from '../config/price-types.ts'
import { readBodyTier } from '../protocols/usage/response-body.ts'
import type { Usage } from '../protocols/usage/usage.ts'
import { cost } from './cost.ts'
import type { QuotedPrice } from './prices.ts'
import type { MeteredResponse } from './settle-usage.ts'

/** @returns the price of the service tier in the response; `quoted` if the tier has no price of its own */
export function priceFor(quoted: QuotedPrice | null, response: MeteredResponse | null): QuotedPrice | null {
  if (!quoted?.serviceTiers || response === null) return quoted
  const tier = reportedTier(response)
  return (tier === null ? undefined : quoted.serviceTiers.get(tier)) ?? quoted
}

function reportedTier(response: MeteredResponse): string | null {
  if (response.kind === 'stream') return response.meter.serviceTier
  return response.kind === 'body' ? readBodyTier(response.body) : null
}

/** @returns true = at least one tier has a separate rate for cache writes */
export function hasCacheWriteRate(quoted: QuotedPrice | null): boolean {
  return pricesOf(quoted).some(price => price !== null
    && (hasWriteRate(price) || (price.tiers?.some(tier => hasWriteRate(tier.price)) ?? false)))
}

/** The prices of all service tiers, including the default tier. */
function pricesOf(quoted: QuotedPrice | null): readonly (Price | null)[] {
  // Fast path, because each request calls this twice and few models have tiers.
  if (!quoted?.serviceTiers) return [quoted && quoted.price]
  return [quoted.price, ...Array.from(quoted.serviceTiers.values(), tier => tier.price)]
}

/** @returns true = every request costs the same; also if all rates are 0 */
export function isPricedByRequest(quoted: QuotedPrice | null): boolean {
  const isFixed = ({ tiers, ...rates }: Price): boolean =>
    Object.entries(rates).every(([name, rate]) => name === 'perRequest' || Number(rate) === 0) && (tiers ?? []).every(tier => isFixed(tier.price))
  return pricesOf(quoted).every(price => price !== null && isFixed(price))
}

function hasWriteRate({ cacheWrite5m, cacheWrite1h }: Price): boolean {
  return (cacheWrite5m ?? cacheWrite1h) !== undefined
}

/** @returns the highest cost of any of the usages at any price and service tier, picodollars; null = unknown */
export function highestCost(usages: readonly Usage[], quotes: readonly (QuotedPrice | null)[]): bigint | null {
  let most = 0n
  for (const quoted of quotes) {
    for (const price of pricesOf(quoted)) {
      for (const usage of usages) {
        const highest = cost(usage, price, 'ceiling')
        if (highest === null) return null
        if (highest > most) most = highest
      }
    }
  }
  return most
}
