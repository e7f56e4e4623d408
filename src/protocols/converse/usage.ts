import type { JsonObject } from '../neutral/json.ts'
import type { UsageReader } from '../usage/reported-usage.ts'
import { remainder, type Figures } from '../usage/usage-figures.ts'
import { blankUsage, type Usage } from '../usage/usage.ts'

export const CONVERSE_USAGE: UsageReader = { read: readConverse }

/**
 * `inputTokens` excludes tokens that are read from the cache or written to it. `cacheDetails` lists the written tokens by lifetime. Source:
 * Amazon Bedrock API Reference, "TokenUsage".
 */
function readConverse(usage: JsonObject, f: Figures): Usage {
  const fresh = f.required(usage.inputTokens)
  const cachedInputTokens = f.count(usage.cacheReadInputTokens)
  const written = f.count(usage.cacheWriteInputTokens)
  const hour = f.array(usage.cacheDetails).map(detail => f.object(detail)).find(({ ttl }) => ttl === '1h')
  const long = hour === undefined ? null : f.part(hour.inputTokens, written)
  return {
    ...blankUsage(),
    inputTokens: f.suspect || fresh === null ? null : fresh + (cachedInputTokens ?? 0) + (written ?? 0),
    cachedInputTokens,
    cacheWrite5mTokens: remainder(written, long),
    cacheWrite1hTokens: long,
    outputTokens: f.required(usage.outputTokens),
  }
}
