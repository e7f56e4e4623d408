import { alternatingTurns } from '../conversation.ts'
import type { JsonObject } from '../json.ts'
import type { TranslationReport } from '../report.ts'
import type { Message, Part, Tool, ToolChoice } from '../request.ts'

/*
 * Parts of requests that Anthropic's protocol and Converse have in common.
 */

/** Says in the instructions what neither protocol has a field for: any JSON object. */
export const JSON_ONLY = 'Respond with one JSON object and nothing else.'

/** Tokens of thinking for an effort, of models that take a budget. */
export const THINKING_BUDGETS: Readonly<Record<string, number>> = {
  minimal: 1024, low: 2048, medium: 8192, high: 16_384, xhigh: 24_576, max: 31_999,
}
/** The least budget that is taken. */
export const MIN_THINKING_BUDGET = 1024

/**
 * The budget for thinking. It is a part of the tokens of the response: half of them at least are for the rest.
 *
 * @param wanted tokens
 * @param maxTokens of the response; null = no bound
 * @returns tokens; null = there is no room for thinking
 */
export function thinkingBudget(wanted: number, maxTokens: number | null): number | null {
  const room = maxTokens === null ? Infinity : Math.floor(maxTokens / 2)
  return room < MIN_THINKING_BUDGET ? null : Math.min(Math.max(MIN_THINKING_BUDGET, wanted), room)
}

/** Must the model call a tool? Thinking is then refused. */
export function forcesTool(choice: ToolChoice | null): boolean {
  return choice?.type === 'required' || (choice?.type === 'tools' && choice.isForced)
}

/** The JSON Schema of a tool's arguments, which has to be one of an object. */
export function toolSchema({ parameters }: Tool): JsonObject {
  return { type: 'object', properties: {}, ...parameters }
}

/** Writes the turns of a conversation. @param write the content blocks of a part */
export function writeTurns(messages: readonly Message[], report: TranslationReport, write: (part: Part) => JsonObject[]): JsonObject[] {
  report.dropNames(messages)
  return alternatingTurns(messages).flatMap(({ role, parts }) => {
    const content = parts.flatMap(write)
    return content.length === 0 ? [] : [{ role, content }]
  })
}
