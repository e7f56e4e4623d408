import type { Accepts } from '../protocols/neutral/accepts.ts'

export interface Model {
  readonly name: string
  /** The model whose price applies if this model has no price; null = none. */
  readonly baseModel: string | null
  /** The operator's rules for what the model accepts in translated requests; null = none. */
  readonly accepts: Accepts | null
  /** Tokens that the prompt and the output can have together; null = the catalogue says. */
  readonly context: number | null
  /** Maximum number of output tokens; null = unknown. */
  readonly output: number | null
  readonly price: Price | null
  /** Prices for requests that were served in a service tier, by the tier's name. Each price is complete. */
  readonly serviceTiers: ReadonlyMap<string, Price>
}

/**
 * Prices are USD per million tokens, except where a field says otherwise. Each is the operator's decimal string, so that no float changes a
 * cost. If a field is absent, another price applies: that of input for cached_input and cache writes, that of output for reasoning, and
 * that of text tokens for audio and images.
 */
export interface Price {
  readonly input?: string
  readonly cachedInput?: string
  readonly cacheWrite5m?: string
  readonly cacheWrite1h?: string
  readonly output?: string
  readonly reasoning?: string
  readonly inputAudio?: string
  readonly outputAudio?: string
  readonly inputImage?: string
  readonly outputImage?: string
  /** USD per unit. The following three prices are per unit too. */
  readonly perRequest?: string
  readonly perSecond?: string
  readonly perCharacter?: string
  readonly perImage?: string
  /** Prices of requests with more than `above` input tokens; ascending. */
  readonly tiers?: readonly { readonly above: number; readonly price: Omit<Price, 'tiers'> }[]
}
