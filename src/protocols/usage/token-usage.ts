import { isObject } from '../../base/is-object.ts'
import type { TokenUsage } from '../neutral/response.ts'
import { readUsage, type UsageReader } from './reported-usage.ts'

/**
 * The tokens of a usage object, for a client of another protocol. The ledger has the same counts.
 * @param final false = the response is in progress
 */
export function readTokens(reader: UsageReader, value: unknown, final = true): TokenUsage | null {
  const reported = isObject(value) ? readUsage(reader, value, final) : null
  if (reported === null) return null
  const { inputTokens, cachedInputTokens, cacheWrite5mTokens: short, cacheWrite1hTokens: long, outputTokens, reasoningTokens } = reported.usage
  return {
    input: inputTokens,
    cachedInput: cachedInputTokens,
    cacheWrite: short === null && long === null ? null : (short ?? 0) + (long ?? 0),
    cacheWrite1h: long,
    output: outputTokens,
    reasoning: reasoningTokens,
  }
}
