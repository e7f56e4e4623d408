import type { Behaviour } from './behaviour.ts'

/** The usage of a response, in tokens, with the same names for all protocols. */
export interface Counts {
  /** All input tokens, including tokens that are read from the cache or written to it. */
  readonly input: number
  readonly cached: number
  readonly cacheWrite5m: number
  readonly cacheWrite1h: number
  /** All output tokens, including reasoning. */
  readonly output: number
  readonly reasoning: number
}

/**
 * The usage to report: the actual usage, unless behaviours set other numbers.
 *
 * @param input tokens of the prompt
 * @param text tokens of the response's text, without reasoning
 * @param reasoning tokens of the reasoning
 */
export function countUsage(behaviour: Behaviour, input: number, text: number, reasoning: number): Counts {
  const cached = behaviour.cached ?? 0
  const cacheWrite5m = behaviour.cache_write ?? 0
  const cacheWrite1h = behaviour.cache_write_1h ?? 0
  return {
    // Cached tokens are a part of the input, so the input cannot be smaller.
    input: behaviour.input ?? Math.max(input, cached + cacheWrite5m + cacheWrite1h),
    cached,
    cacheWrite5m,
    cacheWrite1h,
    output: behaviour.output ?? text + reasoning,
    reasoning,
  }
}

/** A count to report: the count itself, or the invalid value that `usage` selects. */
export function figure(behaviour: Behaviour, tokens: number): unknown {
  switch (behaviour.usage) {
    case 'none': return undefined
    case 'null': return null
    case 'negative': return -tokens - 1
    case 'fraction': return tokens + 0.5
    case 'huge': return 1e21
    case 'string': return String(tokens)
    default: return tokens
  }
}
