import type { Price } from '../config/types.ts'
import { ZERO, add, formatDecimal, multiply, parseDecimal, shift, toUnits } from './decimal.ts'
import type { Decimal } from './decimal.ts'
import { ITEMS, quantities } from './quantities.ts'
import type { Item, Per } from './quantities.ts'
import { tariffOf } from './tariff.ts'
import type { Rates } from './tariff.ts'
import type { Usage } from './usage.ts'

/** One line of a bill: quantity x price / per = cost. */
export interface CostLine {
  /** What is paid for: `input`, `cached_input`, `cache_write_5m`, `output`, `second`, `request`, ... */
  readonly item: Item
  readonly quantity: number
  /** USD for `per` of them, exact. */
  readonly price: string
  readonly per: Per
  /** USD, exact, not rounded. */
  readonly cost: string
}

const PICO = 12

/**
 * What the usage costs, in picodollars (10^-12 USD). Exact: the sum is rounded
 * once, at the end, halves up; at usual prices there is nothing to round.
 *
 * @returns null, not 0, when the price does not tell: no price at all, none for a
 *   direction in which tokens were used, or nothing known that it applies to
 */
export function cost(usage: Usage, price: Price | null): bigint | null {
  const bill = price && billOf(usage, price)
  if (!bill) return null
  let sum = ZERO
  for (let i = 0; i < ITEMS.length; i++) {
    const amount = amountOf(bill, i)
    if (amount !== null) sum = add(sum, amount)
  }
  return toUnits(sum, PICO)
}

/** The lines whose amounts add up to the cost, without those of quantity 0; empty where the cost is null. */
export function explainCost(usage: Usage, price: Price | null): CostLine[] {
  const bill = price && billOf(usage, price)
  if (!bill) return []
  return ITEMS.flatMap(({ item, per }, i) => {
    const amount = amountOf(bill, i)
    if (amount === null) return []
    const quantity = bill.quantities[i] as number
    const price = formatDecimal(bill.rates[i] as Decimal)
    return [{ item, quantity, price, per, cost: formatDecimal(amount) }]
  })
}

/** Picodollars as exact decimal USD: 1_250_000_000n is `0.00125`. */
export function formatUsd(pico: bigint): string {
  return formatDecimal({ units: pico, scale: PICO })
}

/** What was used beside what it is billed at, item by item. */
interface Bill {
  readonly quantities: readonly (number | null)[]
  readonly rates: Rates
}

/** null when the price does not cover what is known to be used. */
function billOf(usage: Usage, price: Price): Bill | null {
  const tariff = tariffOf(price)
  const rates = tariff.ratesFor(usage.inputTokens)
  const used = quantities(usage)
  let applies = false
  for (let i = 0; i < ITEMS.length; i++) {
    const quantity = used[i] as number | null
    if (quantity === null) continue
    if (rates[i] !== null) applies = true
    else if (ITEMS[i]?.per !== 1 && quantity > 0 && tariff.pricesTokens) return null
  }
  return applies ? { quantities: used, rates } : null
}

/** USD, exact; null where nothing was used, or nothing is asked for it. */
function amountOf({ quantities: used, rates }: Bill, i: number): Decimal | null {
  const quantity = used[i] as number | null
  const rate = rates[i] as Decimal | null
  if (quantity === null || quantity <= 0 || rate === null) return null
  const amount = multiply(rate, decimal(quantity))
  return ITEMS[i]?.per === 1 ? amount : shift(amount, -6)
}

function decimal(quantity: number): Decimal {
  if (!Number.isSafeInteger(quantity)) return parseDecimal(String(quantity))
  return { units: BigInt(quantity), scale: 0 }
}
