import { PICO_PLACES, ZERO, add, formatDecimal, multiply, parseDecimal, shift, toUnits } from '../base/decimal.ts'
import type { Price } from '../config/price-types.ts'
import type { Usage } from '../protocols/usage/usage.ts'
import { ITEMS, quantities, type Item, type Per } from './quantities.ts'
import { MIN_SCALE, tariffOf, type Rates } from './tariff.ts'

/** One line of a bill: quantity x price / per = cost. */
export interface CostLine {
  readonly item: Item
  readonly quantity: number
  /** USD for `per` units, exact. */
  readonly price: string
  readonly per: Per
  /** USD, not rounded. */
  readonly cost: string
}

/** The power of ten that converts a price per million units to a price per unit. */
const MILLIONTH = -6

/**
 * The cost in picodollars (1e-12 USD). Only the sum is rounded, half up. With usual prices, the sum is a whole number before rounding.
 * @param which `ceiling` = the highest possible cost if only the sums of output and of media are known
 * @returns null = unknown: there is no price, no rate for used input or output tokens, or no known usage for the rates
 */
export function cost(usage: Usage, price: Price | null, which: 'rates' | 'ceiling' = 'rates'): bigint | null {
  const bill = price && priceQuantities(usage, price, which)
  if (!bill) return null
  const { perMillion, scale } = bill.rates
  // Sum whole quantities by bigint. Only seconds can have fractions.
  let whole = 0n
  let others = ZERO
  for (let i = 0; i < ITEMS.length; i++) {
    const quantity = bill.quantities[i] as number | null
    const rate = perMillion[i] as bigint | null
    if (quantity === null || quantity <= 0 || rate === null) continue
    if (Number.isSafeInteger(quantity)) whole += rate * BigInt(quantity)
    else others = add(others, multiply({ units: rate, scale }, parseDecimal(String(quantity))))
  }
  if (others === ZERO && scale === MIN_SCALE) return whole
  const total = others === ZERO ? { units: whole, scale } : add({ units: whole, scale }, others)
  return toUnits({ units: total.units, scale: total.scale - MILLIONTH }, PICO_PLACES)
}

/** The lines of the cost, without lines of quantity 0; empty if the cost is unknown. */
export function explainCost(usage: Usage, price: Price | null): CostLine[] {
  const bill = price && priceQuantities(usage, price, 'rates')
  if (!bill) return []
  const { perMillion, scale } = bill.rates
  return ITEMS.flatMap(({ item, per }, i) => {
    const quantity = bill.quantities[i] as number | null
    const units = perMillion[i] as bigint | null
    if (quantity === null || quantity <= 0 || units === null) return []
    const rate = { units, scale }
    const price = formatDecimal(per === 1 ? shift(rate, MILLIONTH) : rate)
    const amount = shift(multiply(rate, parseDecimal(String(quantity))), MILLIONTH)
    return [{ item, quantity, price, per, cost: formatDecimal(amount) }]
  })
}

/** @returns null = the price does not cover all known usage */
function priceQuantities(
  usage: Usage, price: Price, which: 'rates' | 'ceiling',
): { readonly quantities: readonly (number | null)[]; readonly rates: Rates } | null {
  const tariff = tariffOf(price)
  const { inputTokens } = usage
  const tier = inputTokens === null || tariff.tiers.length === 0 ? null : tariff.tiers.findLast(({ above }) => inputTokens > above)
  const rates = (tier ?? tariff.base)[which]
  const used = quantities(usage)
  let applies = false
  for (let i = 0; i < ITEMS.length; i++) {
    const quantity = used[i] as number | null
    if (quantity === null) continue
    if (rates.perMillion[i] !== null) applies = true
    else if (ITEMS[i]?.per !== 1 && quantity > 0 && tariff.pricesTokens) return null
  }
  return applies ? { quantities: used, rates } : null
}
