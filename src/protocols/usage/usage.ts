/**
 * What one exchange used, in one vocabulary for all protocols. null means that
 * nobody said; 0 is a value that somebody reported.
 */
export interface Usage {
  /** All input, cached reads and cache writes included. */
  inputTokens: number | null
  /** Part of inputTokens that was read from the prompt cache. */
  cachedInputTokens: number | null
  /**
   * Parts of inputTokens that were written to the prompt cache, by lifetime. A
   * vendor with other lifetimes counts its short one as 5m, its long one as 1h.
   */
  cacheWrite5mTokens: number | null
  cacheWrite1hTokens: number | null
  /** All output, reasoning included. */
  outputTokens: number | null
  /** Part of outputTokens. */
  reasoningTokens: number | null
  /**
   * Parts of inputTokens and outputTokens that were audio or images. What came
   * from the cache counts as cached alone, so that no token stands in two parts.
   */
  inputAudioTokens: number | null
  outputAudioTokens: number | null
  inputImageTokens: number | null
  outputImageTokens: number | null
  /** Of audio transcribed. */
  seconds: number | null
  /** Of text spoken. */
  characters: number | null
  /** Pictures made. */
  images: number | null
}

/** A Usage of which nobody said anything yet. */
export function blankUsage(): Usage {
  return {
    inputTokens: null,
    cachedInputTokens: null,
    cacheWrite5mTokens: null,
    cacheWrite1hTokens: null,
    outputTokens: null,
    reasoningTokens: null,
    inputAudioTokens: null,
    outputAudioTokens: null,
    inputImageTokens: null,
    outputImageTokens: null,
    seconds: null,
    characters: null,
    images: null,
  }
}

/** The least that all input can be, by what is known of its parts. */
export function minInputTokens(usage: Usage): number {
  return (usage.cachedInputTokens ?? 0) + (usage.cacheWrite5mTokens ?? 0) + (usage.cacheWrite1hTokens ?? 0)
    + (usage.inputAudioTokens ?? 0) + (usage.inputImageTokens ?? 0)
}

/** The same for all output. */
export function minOutputTokens({ reasoningTokens, outputAudioTokens, outputImageTokens }: Usage): number {
  return (reasoningTokens ?? 0) + (outputAudioTokens ?? 0) + (outputImageTokens ?? 0)
}
