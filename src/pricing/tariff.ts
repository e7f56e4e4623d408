import { parseDecimal, shift, toUnits } from '../base/decimal.ts'
import type { Price } from '../config/price-types.ts'
import { ITEMS } from './quantities.ts'
import type { Item } from './quantities.ts'

/** USD per million times 10^6 = picodollars per unit. */
export const MIN_SCALE = 6

/** The rates of all items in one unit, so that a cost is a sum of products. */
export interface Rates {
  /** USD per million of each item, times 10^`scale`, in the order of ITEMS; null = no rate. */
  readonly perMillion: readonly (bigint | null)[]
  /** At least MIN_SCALE: sums with that scale are in picodollars. */
  readonly scale: number
}

interface Tier {
  readonly rates: Rates
  /**
   * The rates for a reservation, before the usage is known: output has its highest possible
   * rate. Input that is not text also has its highest rate, and must be reported as images.
   */
  readonly ceiling: Rates
}

/** A price with parsed decimals, in which items without a rate have that of a related item. */
export interface Tariff {
  /** The price has a rate for tokens: a direction without a rate is then unpriced, not free. */
  readonly pricesTokens: boolean
  readonly base: Tier
  /** Tiers for larger inputs, ascending. A tier replaces the rates that it names, for the whole request. */
  readonly tiers: readonly (Tier & { readonly above: number })[]
}

/** Prices are constants: each is converted once. */
const tariffs = new WeakMap<Price, Tariff>()

/** @throws RangeError when a rate is not a decimal */
export function tariffOf(price: Price): Tariff {
  let tariff = tariffs.get(price)
  if (tariff === undefined) tariffs.set(price, (tariff = prepare(price)))
  return tariff
}

function prepare(price: Price): Tariff {
  const { tiers = [], ...own } = price
  const base = tierOf(own)
  return {
    pricesTokens: price.input !== undefined || price.output !== undefined,
    base,
    tiers: tiers.map(tier => ({ above: tier.above, ...tierOf({ ...own, ...tier.price }) })),
  }
}

function tierOf(price: Omit<Price, 'tiers'>): Tier {
  const rates = ratesOf(price)
  const ceiling = [OUTPUTS, MEDIA].reduce(withHighestRate, rates)
  return { rates, ceiling }
}

/** Items that cannot be distinguished before the response; the first one counts for all. */
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
    cached_input: price.cachedInput ?? price.input,
    cache_write_5m: write5m,
    cache_write_1h: price.cacheWrite1h ?? write5m,
    input_audio: price.inputAudio ?? price.input,
    input_image: price.inputImage ?? price.input,
    input: price.input,
    reasoning: price.reasoning ?? price.output,
    output_audio: price.outputAudio ?? price.output,
    output_image: price.outputImage ?? price.output,
    output: price.output,
    second: price.perSecond,
    character: price.perCharacter,
    image: price.perImage,
    request: price.perRequest,
  }
  const perMillion = ITEMS.map(({ item, per }) => {
    const rate = rates[item]
    return rate === undefined ? null : shift(parseDecimal(rate), per === 1 ? 6 : 0)
  })
  const scale = Math.max(MIN_SCALE, ...perMillion.map(rate => rate?.scale ?? 0))
  return { perMillion: perMillion.map(rate => rate && toUnits(rate, scale)), scale }
}
