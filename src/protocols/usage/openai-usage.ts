import type { JsonObject } from '../neutral/json.ts'
import { MAX_COUNT, clampTo, remainder, type Figures } from './usage-figures.ts'

/** The tokens of a total that are neither input nor output; null = none, or the total is not a count. */
export function unexplainedTokens(total: unknown, input: number | null, output: number | null): number | null {
  if (typeof total !== 'number' || input === null || output === null) return null
  const rest = total - input - output
  return Number.isInteger(rest) && rest > 0 && rest <= MAX_COUNT ? rest : null
}

/** Splits input tokens that include cached and written tokens. The details have OpenAI's names. */
export function splitInput(f: Figures, inputTokens: number | null, cached: unknown, details: JsonObject) {
  const cachedInputTokens = f.part(cached, inputTokens)
  const uncached = remainder(inputTokens, cachedInputTokens)
  const written = f.part(cacheWrites(details), uncached)
  const { ttl_12h_tokens: half = null } = f.object(details.cache_write_tokens_details)
  const { ephemeral_1h_input_tokens: hour } = f.object(details.cache_creation_token_details)
  const lasting = f.part(half ?? hour, written)
  const fresh = remainder(uncached, written)
  const inputAudioTokens = clampTo(f.part(details.audio_tokens, inputTokens), fresh)
  const inputImageTokens = clampTo(f.part(details.image_tokens, inputTokens), remainder(fresh, inputAudioTokens))
  const cacheWrite5mTokens = remainder(written, lasting)
  return { inputTokens, cachedInputTokens, cacheWrite5mTokens, cacheWrite1hTokens: lasting, inputAudioTokens, inputImageTokens }
}

/** Tokens written to the cache, under the names that OpenAI, LiteLLM and Qwen use. */
function cacheWrites(details: JsonObject): unknown {
  return details.cache_write_tokens ?? details.cache_creation_tokens ?? details.cache_creation_input_tokens
}

/** Splits output tokens that include reasoning. For xAI, and for Gemini in the chat protocol, only the total includes reasoning. */
export function splitOutput(f: Figures, told: number | null, details: JsonObject, unexplained: number | null) {
  const { reasoning_tokens: reasoning } = details
  const isBeside = unexplained !== null && reasoning === unexplained
  const outputTokens = isBeside && told !== null ? f.count(told + unexplained) : told
  const reasoningTokens = f.part(reasoning, outputTokens)
  const visible = remainder(outputTokens, reasoningTokens)
  const outputAudioTokens = f.part(details.audio_tokens, visible)
  const outputImageTokens = f.part(details.image_tokens, remainder(visible, outputAudioTokens))
  return { outputTokens, reasoningTokens, outputAudioTokens, outputImageTokens }
}
