import { withoutNulls, type JsonObject } from '../neutral/json.ts'
import type { Reasoning } from '../neutral/request.ts'

/** Tells whether the model accepts a thinking level. Models before Gemini 3 accept a token budget instead. */
export function takesThinkingLevel(model: string): boolean {
  return !/gemini-[12](?!\d)/.test(model)
}

/** Token budgets by effort, for models that accept a token budget. */
const BUDGETS: ReadonlyMap<string, number> = new Map(Object.entries({ minimal: 512, low: 1024, medium: 8192, high: 24_576, xhigh: 24_576, max: 24_576 }))
/** Levels by the maximum token budget for which each level is used. */
const LEVELS: readonly (readonly [level: string, tokens: number])[] = [['low', 4096], ['medium', 16_384]]

export function writeThinking({ enabled, effort, budgetTokens, showText }: Reasoning, model: string): JsonObject {
  const isLevel = takesThinkingLevel(model)
  // Gemini 3 always thinks, so `low` is sent instead of off.
  if (enabled === false) return isLevel ? { thinkingLevel: 'low' } : { thinkingBudget: 0 }
  const level = effort ?? (budgetTokens === null ? null : LEVELS.find(([, tokens]) => budgetTokens <= tokens)?.[0] ?? 'high')
  const amount = isLevel
    ? { thinkingLevel: level && (level === 'xhigh' || level === 'max' ? 'high' : level) }
    : { thinkingBudget: budgetTokens ?? (effort === null ? null : BUDGETS.get(effort) ?? null) }
  return withoutNulls({ includeThoughts: showText ?? true, ...amount })
}
