import { MIN_THINKING_BUDGET, THINKING_BUDGETS, forcesTool, thinkingBudget } from '../neutral/anthropic-request.ts'
import type { JsonObject } from '../neutral/json.ts'
import type { TranslationReport } from '../neutral/report.ts'
import type { NeutralRequest, Reasoning } from '../neutral/request.ts'

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
  const wanted = reasoning === null || reasoning.enabled === false ? null : reasoning
  const thinking = wanted === null || forcesTool(toolChoice) ? null : maker?.reasoning(wanted, maxOutputTokens) ?? null
  const sampling = topK === null ? null : maker?.topK?.(topK) ?? null
  if (wanted !== null && thinking === null) report.dropField('reasoning')
  if (topK !== null && sampling === null) report.dropField('topK')
  return { ...sampling, ...thinking }
}

function claudeThinking({ budgetTokens, effort }: Reasoning, maxTokens: number | null): JsonObject | null {
  const budget = thinkingBudget(budgetTokens ?? THINKING_BUDGETS[effort ?? 'medium'] ?? MIN_THINKING_BUDGET, maxTokens)
  return budget === null ? null : { thinking: { type: 'enabled', budget_tokens: budget } }
}
