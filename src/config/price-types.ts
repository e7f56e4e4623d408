import type { Accepts } from '../protocols/neutral/accepts.ts'

export interface Model {
  readonly name: string
  /** The model that it stands for: it has its price, unless it has its own. */
  readonly baseModel: string | null
  /** What it accepts in translated requests, where the operator says so. */
  readonly accepts: Accepts | null
  readonly price: Price | null
  /** What is paid for what the upstream served in a tier of its own, by the tier's name; whole prices. */
  readonly serviceTiers: ReadonlyMap<string, Price>
}

/**
 * USD per million tokens unless the field says otherwise, each as the decimal
 * string that the operator wrote, so that no float touches a bill. A field that
 * is absent is priced as its kin: cached_input and cache writes as input,
 * reasoning as output, audio and images as plain tokens.
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
  /** USD for each. */
  readonly perRequest?: string
  readonly perSecond?: string
  readonly perCharacter?: string
  readonly perImage?: string
  /** Prices of requests whose input is above so many tokens; ascending. */
  readonly tiers?: readonly { readonly above: number; readonly price: Omit<Price, 'tiers'> }[]
}
