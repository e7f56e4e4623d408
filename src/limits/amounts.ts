import { MAX_PER_MINUTE } from './bucket.ts'
import type { Estimate, ActualUsage } from './types.ts'

/** A count that a bucket can take, from any number; what is no number at all counts as too much. */
export function toCount(count: number): number {
  return Number.isNaN(count) ? MAX_PER_MINUTE : Math.min(Math.max(0, Math.ceil(count)), MAX_PER_MINUTE)
}

export function notNegative(pico: bigint): bigint {
  return pico < 0n ? 0n : pico
}

/** The same in numbers that limits can take; what is no number at all is too much. */
export function normalizeEstimate({ tokens, pico }: Estimate): Estimate {
  return { tokens: toCount(tokens), pico: pico === null ? null : notNegative(pico) }
}

/** The same in numbers that limits can take; what is no number at all is unknown. */
export function normalizeUsage({ tokens, pico }: ActualUsage): ActualUsage {
  return {
    tokens: tokens === null || Number.isNaN(tokens) ? null : toCount(tokens),
    pico: pico === null ? null : notNegative(pico),
  }
}
