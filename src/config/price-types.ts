import type { Accepts } from '../protocols/neutral/accepts.ts'

export interface Model {
  readonly name: string
  /** The base model's price applies unless this model has its own; null = none. */
  readonly baseModel: string | null
  /** The operator's rules of what the model accepts in translated requests; null = none. */
  readonly accepts: Accepts | null
  readonly price: Price | null
  /** Complete prices of requests that were served in a service tier, by the tier's name. */
  readonly serviceTiers: ReadonlyMap<string, Price>
}

/**
 * USD per million tokens unless the field says otherwise, as the operator's decimal string: no float changes a cost. An absent
 * field is priced like a related one: cached_input and cache writes as input, reasoning as output, audio and images as tokens.
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
  /** USD per unit, as the next three. */
  readonly perRequest?: string
  readonly perSecond?: string
  readonly perCharacter?: string
  readonly perImage?: string
  /** Prices of requests with more input tokens than `above`; ascending. */
  readonly tiers?: readonly { readonly above: number; readonly price: Omit<Price, 'tiers'> }[]
}
