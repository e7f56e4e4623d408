import type { JsonObject } from '../neutral/json.ts'
import { splitInput, splitOutput, unexplainedTokens } from '../usage/openai-usage.ts'
import type { UsageReader } from '../usage/reported-usage.ts'
import type { Figures } from '../usage/usage-figures.ts'
import { blankUsage, type Usage } from '../usage/usage.ts'

export const CHAT_USAGE: UsageReader = { read: readChat }
export const EMBEDDING_USAGE: UsageReader = { read: readEmbeddings }

/** In chat, `prompt_tokens` includes cached tokens. */
function readChat(usage: JsonObject, f: Figures): Usage {
  const prompt = f.object(usage.prompt_tokens_details)
  const completion = f.object(usage.completion_tokens_details)
  const inputTokens = f.required(usage.prompt_tokens)
  // DeepSeek and Moonshot report cached tokens at the top level.
  const cached = prompt.cached_tokens ?? usage.prompt_cache_hit_tokens ?? usage.cached_tokens
  const outputTokens = f.required(usage.completion_tokens)
  const reasoning = completion.reasoning_tokens ?? usage.reasoning_tokens
  const unexplained = isPerplexitySearch(usage)
    ? f.count(reasoning) : unexplainedTokens(usage.total_tokens, inputTokens, outputTokens)
  // Unexplained tokens count as reasoning only if they cannot be cached tokens or Mistral's audio.
  const isThought = (cached ?? usage.prompt_audio_seconds ?? null) === null
  const details = { ...completion, reasoning_tokens: reasoning ?? (isThought ? unexplained : null) }
  return { ...blankUsage(), ...splitInput(f, inputTokens, cached, prompt), ...splitOutput(f, outputTokens, details, unexplained) }
}

/**
 * Tells whether the usage is from Perplexity. Perplexity's `completion_tokens` and `total_tokens` exclude `reasoning_tokens`; those of
 * SGLang include `reasoning_tokens`. Source: Perplexity's API reference, "UsageInfo", and the pricing of Sonar Deep Research.
 */
function isPerplexitySearch({ num_search_queries: searches, citation_tokens: citations }: JsonObject): boolean {
  return (searches ?? citations ?? null) !== null
}

/** Voyage reports only `total_tokens`, which counts input only. */
function readEmbeddings(usage: JsonObject, f: Figures): Usage {
  return { ...blankUsage(), inputTokens: f.required(usage.prompt_tokens ?? usage.total_tokens) }
}
