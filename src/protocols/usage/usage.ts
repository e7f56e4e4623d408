/**
 * Usage of one request, with the same names for all protocols. null = unknown, because the usage was neither reported nor counted. 0 is a
 * known value.
 */
export interface Usage {
  /** All input tokens, including tokens that are read from the cache or written to it. */
  inputTokens: number | null
  /** The part of `inputTokens` that was read from the prompt cache. */
  cachedInputTokens: number | null
  /** The parts of `inputTokens` that were written to the prompt cache, by lifetime. Other lifetimes count as 5m (short) or 1h (long). */
  cacheWrite5mTokens: number | null
  cacheWrite1hTokens: number | null
  /** All output tokens, including reasoning. */
  outputTokens: number | null
  /** The part of `outputTokens` that is reasoning. */
  reasoningTokens: number | null
  /** Audio and image parts of `inputTokens` and `outputTokens`. Cached tokens count only as cached, so no token is in two parts. */
  inputAudioTokens: number | null
  outputAudioTokens: number | null
  inputImageTokens: number | null
  outputImageTokens: number | null
  /** Seconds of transcribed audio. */
  seconds: number | null
  /** Characters of spoken text. */
  characters: number | null
  /** Number of generated images. */
  images: number | null
}

export function blankUsage(): Usage {
  return {
    inputTokens: null, cachedInputTokens: null, cacheWrite5mTokens: null, cacheWrite1hTokens: null,
    outputTokens: null, reasoningTokens: null,
    inputAudioTokens: null, outputAudioTokens: null, inputImageTokens: null, outputImageTokens: null,
    seconds: null, characters: null, images: null,
  }
}

/** A lower bound of `inputTokens`: the sum of the parts that are known. */
export function minInputTokens(usage: Usage): number {
  return (usage.cachedInputTokens ?? 0) + (usage.cacheWrite5mTokens ?? 0) + (usage.cacheWrite1hTokens ?? 0)
    + (usage.inputAudioTokens ?? 0) + (usage.inputImageTokens ?? 0)
}

/** A lower bound of `outputTokens`: the sum of the parts that are known. */
export function minOutputTokens({ reasoningTokens, outputAudioTokens, outputImageTokens }: Usage): number {
  return (reasoningTokens ?? 0) + (outputAudioTokens ?? 0) + (outputImageTokens ?? 0)
}
