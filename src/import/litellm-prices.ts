import type { Path, Source } from './source.ts'

const MILLION = 1_000_000
/** Significant digits of any decimal that a double keeps. */
const PRICE_DIGITS = 15
/** USD. For a lower price, a million units cost less than a picodollar. */
const MIN_PRICE = 1e-18
/** USD; the maximum that gateway.yaml accepts. */
const MAX_PRICE = 1_000_000_000

/** By LiteLLM's name of a price: the gateway's name, and the number of LiteLLM's units in the gateway's unit. */
const PRICES: ReadonlyMap<string, readonly [name: string, factor: number]> = new Map(Object.entries({
  input_cost_per_token: ['input', MILLION],
  output_cost_per_token: ['output', MILLION],
  cache_read_input_token_cost: ['cached_input', MILLION],
  cache_creation_input_token_cost: ['cache_write', MILLION],
  output_cost_per_reasoning_token: ['reasoning', MILLION],
  input_cost_per_audio_token: ['input_audio', MILLION],
  output_cost_per_audio_token: ['output_audio', MILLION],
  input_cost_per_second: ['per_second', 1],
  input_cost_per_character: ['per_character', 1],
  output_cost_per_image: ['per_image', 1],
}))

/**
 * The price in an entry of model_list.
 *
 * @returns USD per million tokens, except for names that say otherwise; null = the entry has no price
 */
export function readPrice(source: Source, path: Path): Readonly<Record<string, number>> | null {
  const price: Record<string, number> = {}
  for (const [setting, [name, factor]] of PRICES) {
    const own = source.number([...path, 'litellm_params', setting])
    const cost = source.number([...path, 'model_info', setting]) ?? own
    if (cost === null || cost < 0 || cost * factor > MAX_PRICE) continue
    // Keep all digits of the file, without the rounding error of the multiplication.
    price[name] = cost * factor < MIN_PRICE ? 0 : Number((cost * factor).toPrecision(PRICE_DIGITS))
  }
  return Object.keys(price).length === 0 ? null : price
}
