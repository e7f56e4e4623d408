import { parseDecimal, shift, toUnits } from '../base/decimal.ts'
import type { Price } from '../config/price-types.ts'
import { ITEMS } from './quantities.ts'
import type { Item } from './quantities.ts'

/** USD for a million, times 10^6, are picodollars for one. */
export const MIN_SCALE = 6

/** What each item costs, brought to one unit: what is used is then multiplied and added as it is. */
export interface Rates {
  /** USD for a million of each, times 10^`scale`, in the order of ITEMS; null = nothing is said of it. */
  readonly perMillion: readonly (bigint | null)[]
  /** At least MIN_SCALE: what is added up at that scale are picodollars. */
  readonly scale: number
}

interface Tier {
  readonly rates: Rates
  /**
   * The same before it is known what was used: output at the rate of the dearest that it
   * can be, and so the input that is no text, which is to be reported as pictures.
   */
  readonly ceiling: Rates
}

/** A price made ready for counting: every decimal read, every item with the rate of its kin. */
export interface Tariff {
  /** It has a rate for tokens: one direction without any is a gap, not a gift. */
  readonly pricesTokens: boolean
  readonly base: Tier
  /** Those of larger inputs, in their order. A tier replaces what it names of the price, for the whole request. */
  readonly tiers: readonly (Tier & { readonly above: number })[]
}

/** Prices are constants: each is made ready once, and forgotten with its price. */
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

/** What cannot be distinguished beforehand, the first standing for all. */
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
