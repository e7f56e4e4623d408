import type { JsonObject } from '../neutral/json.ts'
import type { TranslationReport } from '../neutral/report.ts'
import type { NeutralRequest, Reasoning } from '../neutral/request.ts'

/** Tokens of thinking for an effort, of models that take a budget; at least 1024. */
const BUDGETS: Readonly<Record<string, number>> = {
  minimal: 1024, low: 2048, medium: 8192, high: 16_384, xhigh: 24_576, max: 31_999,
}
const MIN_BUDGET = 1024

/** What Converse has no field for, as the maker of the model names it; null = the maker is not known for it. */
interface Maker {
  readonly topK: ((topK: number) => JsonObject) | null
  readonly reasoning: (reasoning: Reasoning, maxTokens: number | null) => JsonObject | null
}

/** By a part of the model's id. Source: Amazon Bedrock user guide, "Inference request parameters". */
const MAKERS: readonly (readonly [RegExp, Maker])[] = [
  [/anthropic\.claude/, { topK: topK => ({ top_k: topK }), reasoning: claudeThinking }],
  [/amazon\.nova/, { topK: topK => ({ inferenceConfig: { topK } }), reasoning: () => null }],
  [/openai\.gpt/, { topK: null, reasoning: ({ effort }) => (effort === null ? null : { reasoning_effort: effort }) }],
]

/** Writes `additionalModelRequestFields`; reports what the model has no field for. */
export function modelFields({ topK, reasoning, maxOutputTokens, toolChoice }: NeutralRequest, model: string, report: TranslationReport): JsonObject {
  const maker = MAKERS.find(([pattern]) => pattern.test(model))?.[1] ?? null
  const isForced = toolChoice?.type === 'required' || (toolChoice?.type === 'tools' && toolChoice.isForced)
  // A forced tool and thinking exclude each other.
  const wanted = reasoning === null || reasoning.enabled === false ? null : reasoning
  const thinking = wanted === null || isForced ? null : maker?.reasoning(wanted, maxOutputTokens) ?? null
  const sampling = topK === null ? null : maker?.topK?.(topK) ?? null
  if (wanted !== null && thinking === null) report.dropField('reasoning')
  if (topK !== null && sampling === null) report.dropField('topK')
  return { ...sampling, ...thinking }
}

/** Thinking is a part of `maxTokens`: half of them at least are for the response. */
function claudeThinking({ budgetTokens, effort }: Reasoning, maxTokens: number | null): JsonObject | null {
  const wanted = budgetTokens ?? BUDGETS[effort ?? 'medium'] ?? MIN_BUDGET
  const budget = Math.min(Math.max(MIN_BUDGET, wanted), maxTokens === null ? Infinity : Math.floor(maxTokens / 2))
  return budget < MIN_BUDGET ? null : { thinking: { type: 'enabled', budget_tokens: budget } }
}
