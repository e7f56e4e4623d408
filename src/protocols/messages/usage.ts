import type { JsonObject } from '../neutral/json.ts'
import type { ServingModels, UsageReader } from '../usage/reported-usage.ts'
import { remainder, type Figures } from '../usage/usage-figures.ts'
import { blankUsage, type Usage } from '../usage/usage.ts'

export const MESSAGES_USAGE: UsageReader = { read: readMessages, servingModels: readServingModels }

/**
 * `input_tokens` excludes tokens that are read from the cache or written to it. Written tokens without a lifetime count as 5m. The
 * top-level counts exclude the compaction of the context (Anthropic's SDK, "BetaIterationsUsage").
 */
function readMessages(usage: JsonObject, f: Figures, final: boolean): Usage {
  let sum = readMessage(usage, f, final)
  for (const iteration of f.array(usage.iterations)) {
    const one = f.object(iteration)
    if (one.type === 'compaction') sum = withCompaction(sum, readMessage(one, f, true))
  }
  return sum
}

function readMessage(usage: JsonObject, f: Figures, final: boolean): Usage {
  const fresh = f.required(usage.input_tokens)
  const cachedInputTokens = f.count(usage.cache_read_input_tokens)
  const split = f.object(usage.cache_creation)
  let short = f.count(split.ephemeral_5m_input_tokens)
  let long = f.count(split.ephemeral_1h_input_tokens)
  const splitSum = short === null && long === null ? null : (short ?? 0) + (long ?? 0)
  const written = f.count(usage.cache_creation_input_tokens) ?? splitSum
  if (splitSum !== null && written !== null && splitSum > written) {
    f.suspect = true
    long = null
  }
  short = remainder(written, long)
  // If a count is invalid, the sum is unknown. An absent count is 0.
  const inputTokens = f.suspect || fresh === null ? null : fresh + (cachedInputTokens ?? 0) + (written ?? 0)
  const outputTokens = final ? f.required(usage.output_tokens) : f.count(usage.output_tokens)
  return {
    ...blankUsage(), inputTokens, cachedInputTokens, cacheWrite5mTokens: short, cacheWrite1hTokens: long, outputTokens,
    reasoningTokens: f.part(f.object(usage.output_tokens_details).thinking_tokens, outputTokens),
  }
}

/** Adds the compaction's usage. A total is known only if both counts are known; for a part, an absent count is 0. */
function withCompaction(message: Usage, compaction: Usage): Usage {
  const total = (a: number | null, b: number | null) => (a === null || b === null ? null : a + b)
  const part = (a: number | null, b: number | null) => (a === null ? b : a + (b ?? 0))
  return {
    ...message,
    inputTokens: total(message.inputTokens, compaction.inputTokens),
    cachedInputTokens: part(message.cachedInputTokens, compaction.cachedInputTokens),
    cacheWrite5mTokens: part(message.cacheWrite5mTokens, compaction.cacheWrite5mTokens),
    cacheWrite1hTokens: part(message.cacheWrite1hTokens, compaction.cacheWrite1hTokens),
    outputTokens: total(message.outputTokens, compaction.outputTokens),
    reasoningTokens: part(message.reasoningTokens, compaction.reasoningTokens),
  }
}

/**
 * Reads the usage of models other than the requested model; null = there is none. The serving model may call an advisor. If a model
 * declines the request, a fallback serves it. Then the top-level counts are the fallback's, and the model that declined costs nothing
 * unless it produced text. Source: Anthropic's SDK, "BetaIterationsUsage", and documentation, "Refusals and fallback".
 */
function readServingModels(usage: JsonObject, f: Figures): ServingModels | null {
  const iterations = f.array(usage.iterations).map(iteration => f.object(iteration))
  const served = iterations.findLast(({ type }) => type === 'fallback_message')
  const server = served ? modelIn(served) : null
  const isDeclined = (one: JsonObject) =>
    one.type === 'message' && modelIn(one) !== server && one.output_tokens !== 0
  const others = iterations.filter(one => one.type === 'advisor_message' || (server !== null && isDeclined(one)))
  if (server === null && others.length === 0) return null
  return { servedBy: server, others: others.map(one => ({ model: modelIn(one), usage: readMessage(one, f, true) })) }
}

function modelIn({ model }: JsonObject): string | null {
  return typeof model === 'string' ? model : null
}
