import type { JsonObject } from '../neutral/json.ts'
import { splitInput, splitOutput, unexplainedTokens } from '../usage/openai-usage.ts'
import type { UsageReader } from '../usage/reported-usage.ts'
import type { Figures } from '../usage/usage-figures.ts'
import { blankUsage, type Usage } from '../usage/usage.ts'

export const RESPONSES_USAGE: UsageReader = { read: readResponses }

/** Reads the usage of responses, which has the same counts as chat under other names. */
function readResponses(usage: JsonObject, f: Figures): Usage {
  const input = f.object(usage.input_tokens_details)
  const inputTokens = f.required(usage.input_tokens)
  const outputTokens = f.required(usage.output_tokens)
  const unexplained = unexplainedTokens(usage.total_tokens, inputTokens, outputTokens)
  return {
    ...blankUsage(),
    ...splitInput(f, inputTokens, input.cached_tokens, input),
    ...splitOutput(f, outputTokens, f.object(usage.output_tokens_details), unexplained),
  }
}
