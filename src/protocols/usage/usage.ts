/** Usage of one request, with the same names for all protocols. null = unknown: neither reported nor counted; 0 is known. */
export interface Usage {
  /** All input, with cached reads and cache writes. */
  inputTokens: number | null
  /** Part of inputTokens that was read from the prompt cache. */
  cachedInputTokens: number | null
  /** Parts of inputTokens written to the prompt cache, by lifetime. A vendor's other lifetimes count as 5m (short) or 1h (long). */
  cacheWrite5mTokens: number | null
  cacheWrite1hTokens: number | null
  /** All output, with reasoning. */
  outputTokens: number | null
  /** Part of outputTokens. */
  reasoningTokens: number | null
  /** Audio and image parts of inputTokens and outputTokens. Cached tokens count only as cached, so no token is in two parts. */
  inputAudioTokens: number | null
  outputAudioTokens: number | null
  inputImageTokens: number | null
  outputImageTokens: number | null
  /** Of transcribed audio. */
  seconds: number | null
  /** Of spoken text. */
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

/** A lower bound of inputTokens: the sum of its known parts. */
export function minInputTokens(usage: Usage): number {
  return (usage.cachedInputTokens ?? 0) + (usage.cacheWrite5mTokens ?? 0) + (usage.cacheWrite1hTokens ?? 0)
    + (usage.inputAudioTokens ?? 0) + (usage.inputImageTokens ?? 0)
}

/** A lower bound of outputTokens: the sum of its known parts. */
export function minOutputTokens({ reasoningTokens, outputAudioTokens, outputImageTokens }: Usage): number {
  return (reasoningTokens ?? 0) + (outputAudioTokens ?? 0) + (outputImageTokens ?? 0)
}
