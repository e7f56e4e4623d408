import { THINKING_BUDGETS, forcesTool, thinkingBudget } from './anthropic-request.ts'
import type { JsonObject } from '../json.ts'
import { valueFor } from '../opaque.ts'
import type { Message, NeutralRequest, Reasoning } from '../request.ts'
import type { WriteContext } from '../translation.ts'

interface ThinkingContext extends Pick<WriteContext, 'model' | 'provider' | 'report'> {
  /** Maximum tokens of the response, including thinking; null = no limit. */
  readonly maxTokens: number | null
}

/** The fields to write; null = the field is omitted. */
interface WrittenThinking {
  readonly thinking: JsonObject | null
  readonly effort: string | null
}

const NOTHING: WrittenThinking = { thinking: null, effort: null }

/** Writes Claude's `thinking` and `output_config.effort`. Drops and reports reasoning that other parts of the request exclude. */
export function writeThinking(request: NeutralRequest, context: ThinkingContext): WrittenThinking {
  const { reasoning } = request
  if (reasoning === null) return NOTHING
  if (reasoning.enabled === false) return { thinking: { type: 'disabled' }, effort: null }
  const isAdaptive = takesEffort(context.model)
  if (isRuledOut(request, isAdaptive, context.provider)) {
    context.report.dropField('reasoning')
    return NOTHING
  }
  const display = reasoning.showText === false ? { display: 'omitted' } : {}
  if (isAdaptive) return { thinking: { type: 'adaptive', ...display }, effort: effortOf(reasoning) }
  const wanted = reasoning.budgetTokens ?? THINKING_BUDGETS.get(reasoning.effort ?? 'medium') ?? THINKING_BUDGETS.get('medium') as number
  const budget = thinkingBudget(wanted, context.maxTokens)
  if (budget === null) {
    context.report.dropField('reasoning')
    return NOTHING
  }
  return { thinking: { type: 'enabled', budget_tokens: budget, ...display }, effort: null }
}

/** Tells whether the model accepts an effort. Claude 4.6 and later accept an effort; older models accept a budget. */
function takesEffort(model: string): boolean {
  const match = /claude-(?:[a-z]+-)?(\d{1,2})(?:[.-](\d{1,2}))?(?![\d])/.exec(model)
  if (match === null) return false
  const [, major, minor = '0'] = match
  return Number(major) > 4 || (Number(major) === 4 && Number(minor) >= 6)
}

function effortOf({ effort, budgetTokens }: Reasoning): string | null {
  if (effort !== null) return effort === 'minimal' ? 'low' : effort
  if (budgetTokens === null) return null
  return [...THINKING_BUDGETS].find(([name, budget]) => name !== 'minimal' && budgetTokens <= budget)?.[0] ?? 'max'
}

/**
 * Tells whether the request excludes thinking. A forced tool excludes thinking. A model that is not adaptive also requires that a turn with
 * a tool call begins with thinking of this provider: the client may have lost that thinking, or another provider may have made it.
 */
function isRuledOut({ toolChoice, messages }: NeutralRequest, isAdaptive: boolean, provider: string): boolean {
  if (forcesTool(toolChoice)) return true
  if (isAdaptive) return false
  const first = messages.slice(turnStart(messages)).find(({ role }) => role === 'assistant')
  if (first === undefined || !first.parts.some(({ type }) => type === 'tool_call')) return false
  const [begin] = first.parts
  return (begin?.type !== 'thinking' && begin?.type !== 'redacted_thinking') || valueFor(begin.opaque, provider) === null
}

/**
 * The index after the last user messages that have no tool result. Text in a message with a tool result belongs to the turn of the call.
 */
function turnStart(messages: readonly Message[]): number {
  let end = messages.length
  while (end > 0) {
    let run = end
    while (run > 0 && messages[run - 1]?.role !== 'assistant') run--
    const said = messages.slice(run, end)
    if (said.length > 0 && !said.some(({ parts }) => parts.some(({ type }) => type === 'tool_result'))) return end
    end = run
    while (end > 0 && messages[end - 1]?.role === 'assistant') end--
  }
  return 0
}
