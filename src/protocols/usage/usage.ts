/**
 * What one request used, with the same names for all protocols. null = unknown: neither reported nor counted; 0 is a
 * known value.
 */
export interface Usage {
  /** All input, cached reads and cache writes included. */
  inputTokens: number | null
  /** Part of inputTokens that was read from the prompt cache. */
  cachedInputTokens: number | null
  /**
   * Parts of inputTokens that were written to the prompt cache, by lifetime. For a vendor with other lifetimes, the
   * short one counts as 5m, and the long one as 1h.
   */
  cacheWrite5mTokens: number | null
  cacheWrite1hTokens: number | null
  /** All output, reasoning included. */
  outputTokens: number | null
  /** Part of outputTokens. */
  reasoningTokens: number | null
  /**
   * Parts of inputTokens and outputTokens that were audio or images. Cached tokens count only as cached, so that no
   * token is in two parts.
   */
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

/** A usage of which nothing is known yet. */
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

/** A lower bound of all input: the sum of its known parts. */
export function minInputTokens(usage: Usage): number {
  return (usage.cachedInputTokens ?? 0) + (usage.cacheWrite5mTokens ?? 0) + (usage.cacheWrite1hTokens ?? 0)
    + (usage.inputAudioTokens ?? 0) + (usage.inputImageTokens ?? 0)
}

/** A lower bound of all output: the sum of its known parts. */
export function minOutputTokens({ reasoningTokens, outputAudioTokens, outputImageTokens }: Usage): number {
  return (reasoningTokens ?? 0) + (outputAudioTokens ?? 0) + (outputImageTokens ?? 0)
}
