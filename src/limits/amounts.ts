import { MOST_PER_MINUTE } from './bucket.ts'
import type { Estimate, Outcome } from './types.ts'

/** A count that a bucket can take, from any number; what is no number at all counts as too much. */
export function whole(count: number): number {
  return Number.isNaN(count) ? MOST_PER_MINUTE : Math.min(Math.max(0, Math.ceil(count)), MOST_PER_MINUTE)
}

export function notNegative(pico: bigint): bigint {
  return pico < 0n ? 0n : pico
}

/** The same in numbers that limits can take; what is no number at all is too much. */
export function estimated({ tokens, pico }: Estimate): Estimate {
  return { tokens: whole(tokens), pico: pico === null ? null : notNegative(pico) }
}

/** The same in numbers that limits can take; what is no number at all is unknown. */
export function counted({ tokens, pico }: Outcome): Outcome {
  return {
    tokens: tokens === null || Number.isNaN(tokens) ? null : whole(tokens),
    pico: pico === null ? null : notNegative(pico),
  }
}
