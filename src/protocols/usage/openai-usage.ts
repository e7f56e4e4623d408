import type { JsonObject } from '../neutral/json.ts'
import { MAX_COUNT, clampTo, remainder } from './usage-figures.ts'
import type { Figures } from './usage-figures.ts'

/** What a total has beside input and output; null where that is nothing, or no count. */
export function unexplainedTokens(total: unknown, input: number | null, output: number | null): number | null {
  if (typeof total !== 'number' || input === null || output === null) return null
  const rest = total - input - output
  return Number.isInteger(rest) && rest > 0 && rest <= MAX_COUNT ? rest : null
}

/** The parts of an input that includes them, with OpenAI's names for the details. */
export function splitInput(f: Figures, inputTokens: number | null, cached: unknown, details: JsonObject) {
  const cachedInputTokens = f.part(cached, inputTokens)
  const uncached = remainder(inputTokens, cachedInputTokens)
  const written = f.part(cacheWrites(details), uncached)
  const { ttl_12h_tokens: half = null } = f.object(details.cache_write_tokens_details)
  const { ephemeral_1h_input_tokens: hour } = f.object(details.cache_creation_token_details)
  const lasting = f.part(half ?? hour, written)
  const fresh = remainder(uncached, written)
  const inputAudioTokens = clampTo(f.part(details.audio_tokens, inputTokens), fresh)
  const image = clampTo(f.part(details.image_tokens, inputTokens), remainder(fresh, inputAudioTokens))
  return {
    inputTokens,
    cachedInputTokens,
    cacheWrite5mTokens: remainder(written, lasting),
    cacheWrite1hTokens: lasting,
    inputAudioTokens,
    inputImageTokens: image,
  }
}

/** OpenAI's name, LiteLLM's, and Qwen's. */
function cacheWrites(details: JsonObject): unknown {
  return details.cache_write_tokens ?? details.cache_creation_tokens ?? details.cache_creation_input_tokens
}

/**
 * The output includes the reasoning, as OpenAI has it. xAI reports the two side by
 * side, and Gemini, as chat, the output alone: then the total has it besides.
 */
export function splitOutput(f: Figures, told: number | null, details: JsonObject, unexplained: number | null) {
  const { reasoning_tokens: reasoning } = details
  const isBeside = unexplained !== null && reasoning === unexplained
  const outputTokens = isBeside && told !== null ? f.count(told + unexplained) : told
  const reasoningTokens = f.part(reasoning, outputTokens)
  const visible = remainder(outputTokens, reasoningTokens)
  const outputAudioTokens = f.part(details.audio_tokens, visible)
  return {
    outputTokens,
    reasoningTokens,
    outputAudioTokens,
    outputImageTokens: f.part(details.image_tokens, remainder(visible, outputAudioTokens)),
  }
}
