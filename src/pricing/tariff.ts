import { parseDecimal, shift, toUnits } from '../base/decimal.ts'
import type { Price } from '../config/price-types.ts'
import { ITEMS, type Item } from './quantities.ts'

/** With this scale, a rate in USD per million is in picodollars per unit. */
export const MIN_SCALE = 6

/** The rates of all items, with the same scale, so that a cost is a sum of products. */
export interface Rates {
  /** USD per million of each item, times 10^`scale`, in the order of ITEMS; null = no rate. */
  readonly perMillion: readonly (bigint | null)[]
  /** At least MIN_SCALE. */
  readonly scale: number
}

interface Tier {
  readonly rates: Rates
  /**
   * Rates for reservations, before the usage is known. All output has the highest rate of the outputs. Input that is not text counts as
   * images, which have the highest rate of text and media.
   */
  readonly ceiling: Rates
}

/** A parsed price, in which items without a rate have the rate of a related item. */
export interface Tariff {
  /** true = the price has a rate for input or output tokens, so that the other one is unpriced and not free if it has no rate. */
  readonly pricesTokens: boolean
  readonly base: Tier
  /** Tiers for larger inputs, ascending. A tier applies to the whole request. The rates in a tier replace the base rates. */
  readonly tiers: readonly (Tier & { readonly above: number })[]
}

/** Caches parsed prices, because a price does not change. */
const tariffs = new WeakMap<Price, Tariff>()

/** @throws RangeError if a rate is not a decimal */
export function tariffOf(price: Price): Tariff {
  const known = tariffs.get(price)
  if (known !== undefined) return known
  const { tiers = [], ...own } = price
  const tariff: Tariff = {
    pricesTokens: price.input !== undefined || price.output !== undefined,
    base: tierOf(own),
    tiers: tiers.map(tier => ({ above: tier.above, ...tierOf({ ...own, ...tier.price }) })),
  }
  tariffs.set(price, tariff)
  return tariff
}

function tierOf(price: Omit<Price, 'tiers'>): Tier {
  const rates = ratesOf(price)
  return { rates, ceiling: [OUTPUTS, MEDIA].reduce(withHighestRate, rates) }
}

/** Items that cannot be distinguished before the response. The first item gets the highest rate of them. */
const OUTPUTS: readonly Item[] = ['output', 'reasoning', 'output_audio', 'output_image']
const MEDIA: readonly Item[] = ['input_image', 'input_audio', 'input']

function withHighestRate({ perMillion, scale }: Rates, items: readonly Item[]): Rates {
  const rates = perMillion.filter((rate, i) => rate !== null && items.includes(ITEMS[i]!.item)) as bigint[]
  if (rates.length === 0) return { perMillion, scale }
  const first = ITEMS.findIndex(({ item }) => item === items[0])
  return { perMillion: perMillion.with(first, rates.reduce((a, b) => (a > b ? a : b))), scale }
}

function ratesOf(price: Omit<Price, 'tiers'>): Rates {
  const write5m = price.cacheWrite5m ?? price.input
  const rates: Record<Item, string | undefined> = {
    cached_input: price.cachedInput ?? price.input, cache_write_5m: write5m, cache_write_1h: price.cacheWrite1h ?? write5m,
    input_audio: price.inputAudio ?? price.input, input_image: price.inputImage ?? price.input, input: price.input,
    reasoning: price.reasoning ?? price.output, output_audio: price.outputAudio ?? price.output,
    output_image: price.outputImage ?? price.output, output: price.output,
    second: price.perSecond, character: price.perCharacter, image: price.perImage, request: price.perRequest,
  }
  const perMillion = ITEMS.map(({ item, per }) => {
    const rate = rates[item]
    return rate === undefined ? null : shift(parseDecimal(rate), per === 1 ? 6 : 0)
  })
  const scale = Math.max(MIN_SCALE, ...perMillion.map(rate => rate?.scale ?? 0))
  return { perMillion: perMillion.map(rate => rate && toUnits(rate, scale)), scale }
}
