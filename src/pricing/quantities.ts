import type { Usage } from '../protocols/usage/usage.ts'

export type Per = 1 | 1_000_000

/** The billed items. `per`: number of units to which a price applies. An item without a rate has the rate of a related item. */
export const ITEMS = [
  { item: 'cached_input', per: 1_000_000 }, { item: 'cache_write_5m', per: 1_000_000 }, { item: 'cache_write_1h', per: 1_000_000 },
  { item: 'input_audio', per: 1_000_000 }, { item: 'input_image', per: 1_000_000 }, { item: 'input', per: 1_000_000 },
  { item: 'reasoning', per: 1_000_000 }, { item: 'output_audio', per: 1_000_000 }, { item: 'output_image', per: 1_000_000 },
  { item: 'output', per: 1_000_000 },
  { item: 'second', per: 1 }, { item: 'character', per: 1 }, { item: 'image', per: 1 }, { item: 'request', per: 1 },
] as const satisfies readonly { item: string; per: Per }[]

export type Item = (typeof ITEMS)[number]['item']

/** @returns quantities in the order of ITEMS, which do not overlap; null = unknown */
export function quantities(usage: Usage): (number | null)[] {
  const known: (number | null)[] = []
  addParts(known, usage.inputTokens, [
    usage.cachedInputTokens, usage.cacheWrite5mTokens, usage.cacheWrite1hTokens, usage.inputAudioTokens, usage.inputImageTokens,
  ])
  addParts(known, usage.outputTokens, [usage.reasoningTokens, usage.outputAudioTokens, usage.outputImageTokens])
  known.push(usage.seconds, usage.characters, usage.images, 1)
  return known
}

/** Adds the parts of a total, then the rest of the total. The sum of the parts is limited to the total if the total is known. */
function addParts(known: (number | null)[], total: number | null, parts: readonly (number | null)[]): void {
  let left = total
  for (const part of parts) {
    const taken = part === null || left === null ? part : Math.min(part, left)
    if (left !== null) left -= taken ?? 0
    known.push(taken)
  }
  known.push(left)
}
