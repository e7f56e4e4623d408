import type { ModelPrice } from '@pydantic/genai-prices'
import { divide, formatDecimal, parseDecimal, shift } from '../base/decimal.ts'
import type { Price } from '../config/price-types.ts'

type RateName = Exclude<keyof Price, 'tiers'>

interface Term {
  readonly rate: RateName
  /** Converts the catalogue's unit: multiply by 10^`places`, then divide by `divisor`. */
  readonly places?: number
  readonly divisor?: bigint
}

// With 24 places, a price per hour that is divided by 3,600 is exact to the picodollar for years of audio.
const PER_SECOND_PLACES = 24

/** The price keys that are used. Others price amounts that no protocol reports in its usage, such as tool calls, pages and citations. */
const TERMS: ReadonlyMap<string, Term> = new Map(Object.entries({
  input_mtok: { rate: 'input' },
  cache_read_mtok: { rate: 'cachedInput' },
  cache_write_mtok: { rate: 'cacheWrite5m' },
  cache_write_1h_mtok: { rate: 'cacheWrite1h' },
  output_mtok: { rate: 'output' },
  output_reasoning_mtok: { rate: 'reasoning' },
  input_audio_mtok: { rate: 'inputAudio' },
  output_audio_mtok: { rate: 'outputAudio' },
  input_image_mtok: { rate: 'inputImage' },
  output_image_mtok: { rate: 'outputImage' },
  requests_kcount: { rate: 'perRequest', places: -3 },
  input_audio_hours: { rate: 'perSecond', divisor: 3600n },
  input_mchars: { rate: 'perCharacter', places: -6 },
}))

/**
 * Converts an entry of @pydantic/genai-prices. JavaScript prints the numbers as they were published, because they have few digits.
 * @returns null = the entry has no price key that is used
 */
export function fromCatalogue(listed: ModelPrice): Price | null {
  const rates: { [name in RateName]?: string } = {}
  const tiers = new Map<number, { [name in RateName]?: string }>()
  for (const [key, value] of Object.entries(listed)) {
    const term = TERMS.get(key)
    if (!term || value === undefined) continue
    if (typeof value === 'number') {
      rates[term.rate] = convert(value, term)
      continue
    }
    rates[term.rate] = convert(value.base, term)
    for (const { start, price } of value.tiers) {
      const tier = tiers.get(start) ?? {}
      tier[term.rate] = convert(price, term)
      tiers.set(start, tier)
    }
  }
  if (Object.keys(rates).length === 0) return null
  return tiers.size === 0 ? rates : { ...rates, tiers: cumulative(tiers) }
}

function convert(value: number, { places = 0, divisor }: Term): string {
  const moved = shift(parseDecimal(String(value)), places)
  return formatDecimal(divisor ? divide(moved, divisor, PER_SECOND_PLACES) : moved)
}

/** Adds the prices of lower tiers to each tier, because each price key has its own tiers, but only one tier applies to a request. */
function cumulative(tiers: ReadonlyMap<number, Omit<Price, 'tiers'>>): NonNullable<Price['tiers']> {
  let price: Omit<Price, 'tiers'> = {}
  return [...tiers].sort(([a], [b]) => a - b).map(([above, changes]) => ({ above, price: (price = { ...price, ...changes }) }))
}
