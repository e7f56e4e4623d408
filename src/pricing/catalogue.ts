import type { ModelPrice } from '@pydantic/genai-prices'
import { divide, formatDecimal, parseDecimal, shift } from '../base/decimal.ts'
import type { Price } from '../config/price-types.ts'

type RateName = Exclude<keyof Price, 'tiers'>

interface Term {
  readonly rate: RateName
  /** Converts the catalogue's unit: a power of ten, then a divisor. */
  readonly places?: number
  readonly divisor?: bigint
}

// A price per hour divided by 3,600 is then exact to the picodollar over years of audio.
const PER_SECOND_PLACES = 24

/** Missing price keys are for amounts that no protocol reports in its usage: tool calls, pages, citations, video, cached media. */
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
 * Translates an entry of @pydantic/genai-prices. Its numbers have few digits, so JavaScript prints them as published.
 * @returns null = nothing in the entry can be billed here
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

/** Each price key has its own tiers, but one tier bills a request: a tier also gets the changes of lower tiers. */
function cumulative(tiers: ReadonlyMap<number, Omit<Price, 'tiers'>>): NonNullable<Price['tiers']> {
  let price: Omit<Price, 'tiers'> = {}
  return [...tiers].sort(([a], [b]) => a - b).map(([above, changes]) => ({ above, price: (price = { ...price, ...changes }) }))
}
