import { alternatingTurns } from '../conversation.ts'
import type { JsonObject } from '../json.ts'
import type { TranslationReport } from '../report.ts'
import type { Message, Part, Tool, ToolChoice } from '../request.ts'

/* Parts of requests that Anthropic's protocol and Converse have in common. */

/** Instruction for any JSON object: Anthropic's protocol and Converse have no field for that. */
export const JSON_ONLY = 'Respond with one JSON object and nothing else.'

/** Thinking budgets in tokens by effort, for models that accept a budget. */
export const THINKING_BUDGETS: ReadonlyMap<string, number> = new Map(Object.entries({
  minimal: 1024, low: 2048, medium: 8192, high: 16_384, xhigh: 24_576, max: 31_999,
}))
/** Minimum tokens of a thinking budget. */
const MIN_THINKING_BUDGET = 1024

/**
 * The thinking budget to send. At least half of the response's tokens remain for other content, because thinking counts as output.
 *
 * @param maxTokens of the response; null = no limit
 * @returns tokens; null = the response has too few tokens for thinking
 */
export function thinkingBudget(wanted: number, maxTokens: number | null): number | null {
  const room = maxTokens === null ? Infinity : Math.floor(maxTokens / 2)
  return room < MIN_THINKING_BUDGET ? null : Math.min(Math.max(MIN_THINKING_BUDGET, wanted), room)
}

/** Tells whether the model must call a tool. Thinking is then refused. */
export function forcesTool(choice: ToolChoice | null): boolean {
  return choice?.type === 'required' || (choice?.type === 'tools' && choice.isForced)
}

/** The schema of a tool's parameters. The type is always `object`, because the API requires it. */
export function toolSchema({ parameters }: Tool): JsonObject {
  return { type: 'object', properties: {}, ...parameters }
}

/** @param write writes a part as content blocks */
export function writeTurns(messages: readonly Message[], report: TranslationReport, write: (part: Part) => JsonObject[]): JsonObject[] {
  report.dropNames(messages)
  return alternatingTurns(messages).flatMap(({ role, parts }) => {
    const content = parts.flatMap(write)
    return content.length === 0 ? [] : [{ role, content }]
  })
}
