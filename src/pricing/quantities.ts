import type { Usage } from '../protocols/shared/usage.ts'

/** A price is for so many of an item. */
export type Per = 1 | 1_000_000

/** What is paid for, each at a rate of its own or at that of its kin. */
export const ITEMS = [
  { item: 'cached_input', per: 1_000_000 },
  { item: 'cache_write_5m', per: 1_000_000 },
  { item: 'cache_write_1h', per: 1_000_000 },
  { item: 'input_audio', per: 1_000_000 },
  { item: 'input_image', per: 1_000_000 },
  { item: 'input', per: 1_000_000 },
  { item: 'reasoning', per: 1_000_000 },
  { item: 'output_audio', per: 1_000_000 },
  { item: 'output_image', per: 1_000_000 },
  { item: 'output', per: 1_000_000 },
  { item: 'second', per: 1 },
  { item: 'character', per: 1 },
  { item: 'image', per: 1 },
  { item: 'request', per: 1 },
] as const satisfies readonly { item: string; per: Per }[]

export type Item = (typeof ITEMS)[number]['item']

/**
 * The usage in quantities that do not overlap, in the order of ITEMS.
 *
 * @returns null where a quantity is not known
 */
export function quantities(usage: Usage): (number | null)[] {
  const input = new Remainder(usage.inputTokens)
  const output = new Remainder(usage.outputTokens)
  return [
    input.take(usage.cachedInputTokens),
    input.take(usage.cacheWrite5mTokens),
    input.take(usage.cacheWrite1hTokens),
    input.take(usage.inputAudioTokens),
    input.take(usage.inputImageTokens),
    input.left,
    output.take(usage.reasoningTokens),
    output.take(usage.outputAudioTokens),
    output.take(usage.outputImageTokens),
    output.left,
    usage.seconds,
    usage.characters,
    usage.images,
    1,
  ]
}

/** What is left of a total as its parts are taken out; an unknown total gives whatever is asked. */
class Remainder {
  left: number | null

  constructor(total: number | null) {
    this.left = total
  }

  take(part: number | null): number | null {
    const { left } = this
    if (part === null || left === null) return part
    const taken = Math.min(part, left)
    this.left = Math.max(0, left - taken)
    return taken
  }
}
