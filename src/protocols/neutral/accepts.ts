import { foldInstructions, schemaInstruction, withoutIdleThinking } from './conversation.ts'
import { EFFORTS, type NeutralRequest, type Reasoning } from './request.ts'
import type { TranslationReport } from './report.ts'

/** Values of a number that a model accepts; false = it refuses the field. An absent bound = none. */
export type NumberRule = false | { readonly only?: readonly number[], readonly min?: number, readonly max?: number }

/** What a model at a target accepts, if that is less than its protocol allows. Absent = everything. */
export interface Accepts {
  readonly temperature?: NumberRule
  readonly topP?: NumberRule
  readonly topK?: NumberRule
  readonly presencePenalty?: NumberRule
  readonly frequencyPenalty?: NumberRule
  /** false = `temperature` and `topP` exclude each other. */
  readonly temperatureWithTopP?: boolean
  /** false = no sampling parameters while the model reasons. */
  readonly samplingWithReasoning?: boolean
  readonly stop?: boolean
  /** Supported efforts of reasoning. With `none`, reasoning can be switched off. */
  readonly efforts?: readonly string[]
  /** `first` = instructions only at the beginning; `anywhere` = also inside the conversation. */
  readonly system?: 'first' | 'anywhere'
  /** The name of the token bound at chat servers. */
  readonly maxTokens?: 'max_tokens' | 'max_completion_tokens'
  readonly without?: readonly OptionalField[]
  /** The name of the seed at chat servers. */
  readonly seed?: 'seed' | 'random_seed'
  /** Exact length of the ids of calls, which may contain only letters and digits. */
  readonly toolIdLength?: number
  /** false = after a tool result, the target requires an assistant message before a user message. */
  readonly userBehindResult?: boolean
  /** true = thinking with a signature may end a turn: Gemini can send a signature as a part of its own. */
  readonly thinkingLast?: boolean
  /** Supported beta features of Anthropic's protocol. */
  readonly betas?: readonly string[]
  /** Maximum characters, and regular expressions for any character and for the first; absent `start` = `pattern`. */
  readonly toolName?: { readonly length: number, readonly pattern: string, readonly start?: string }
}

/** Members that a request does not need to keep its meaning, by their names at chat servers. */
const OPTIONAL = {
  seed: 'seed', service_tier: 'serviceTier', verbosity: 'verbosity', user: 'user', prompt_cache_key: 'cacheKey', metadata: 'metadata',
  parallel_tool_calls: 'parallelToolCalls',
} as const

/** Also `name` of messages, `json_schema` (replaced by an instruction), and `stream_options` (asks for usage). */
export type OptionalField = keyof typeof OPTIONAL | 'name' | 'json_schema' | 'stream_options'

const NUMBERS = ['temperature', 'topP', 'topK', 'presencePenalty', 'frequencyPenalty'] as const

/** A value that the model refuses is dropped and reported, or replaced by the nearest accepted value if the meaning stays. */
export function fitRequest(request: NeutralRequest, accepts: Accepts, report: TranslationReport): NeutralRequest {
  const reasoning = fitReasoning(request.reasoning, accepts.efforts, report)
  const numbers: Partial<Record<typeof NUMBERS[number], number | null>> = {}
  const refusesSampling = accepts.samplingWithReasoning === false && reasons(reasoning)
  for (const field of NUMBERS) {
    const value = request[field]
    if (value === null) continue
    const fitting = fitNumber(value, refusesSampling ? SAMPLING_DEFAULT : accepts[field])
    if (fitting !== value) report.dropField(field)
    numbers[field] = fitting
  }
  const temperature = numbers.temperature ?? null
  if (accepts.temperatureWithTopP === false && temperature !== null && (numbers.topP ?? null) !== null) {
    report.dropField('topP')
    numbers.topP = null
  }
  const left: Partial<Record<typeof OPTIONAL[keyof typeof OPTIONAL], null>> = {}
  for (const [name, field] of Object.entries(OPTIONAL)) {
    if (!accepts.without?.includes(name as keyof typeof OPTIONAL)) continue
    if (request[field] !== null) report.dropField(field)
    left[field] = null
  }
  const refusesStop = accepts.stop === false && request.stopSequences.length > 0
  if (refusesStop) report.dropField('stopSequences')
  const conversation = fitConversation(request, accepts, report)
  return { ...request, ...numbers, ...left, reasoning, ...refusesStop && { stopSequences: [] }, ...conversation }
}

function fitConversation(
  { messages, outputFormat }: NeutralRequest, { system, thinkingLast, without = [] }: Accepts, report: TranslationReport,
): Pick<NeutralRequest, 'messages' | 'outputFormat'> {
  let fitting = withoutIdleThinking(messages, report, thinkingLast === true)
  let format = outputFormat
  if (without.includes('json_schema') && outputFormat?.type === 'json_schema') {
    report.dropField('outputFormat')
    fitting = [schemaInstruction(outputFormat.schema), ...fitting]
    format = { type: 'json' }
  }
  if (without.includes('name') && fitting.some(({ name }) => name !== null)) {
    report.dropNames(fitting)
    fitting = fitting.map(message => ({ ...message, name: null }))
  }
  if (system === 'first') fitting = foldInstructions(fitting)
  return { messages: fitting, outputFormat: format }
}

/** 1 is the default of models that reason, so clients that always send it lose nothing. */
const SAMPLING_DEFAULT: NumberRule = { only: [1] }

/** @returns null = the model accepts no value near the given one */
function fitNumber(value: number, rule: NumberRule | undefined): number | null {
  if (rule === undefined) return value
  if (rule === false) return null
  if (rule.only !== undefined && !rule.only.includes(value)) return null
  if (rule.min !== undefined && value < rule.min) return null
  return rule.max !== undefined && value > rule.max ? rule.max : value
}

function reasons(reasoning: Reasoning | null): boolean {
  return reasoning !== null && reasoning.enabled !== false && (reasoning.enabled === true || reasoning.effort !== null || reasoning.budgetTokens !== null)
}

function fitReasoning(reasoning: Reasoning | null, efforts: readonly string[] | undefined, report: TranslationReport): Reasoning | null {
  if (reasoning === null) return null
  const { effort, enabled } = reasoning
  if (efforts === undefined) return reasoning
  const isOff = enabled === false
  if (efforts.length === 0 || (isOff && !efforts.includes('none'))) {
    report.dropField('reasoning')
    return null
  }
  return isOff || effort === null ? reasoning : { ...reasoning, effort: nearestEffort(effort, efforts) }
}

/** The highest effort that is not above the requested one, or else the lowest. `none` does not count. */
function nearestEffort(wanted: string, efforts: readonly string[]): string | null {
  const rank = (effort: string): number => EFFORTS.findIndex(known => known === effort)
  const ordered = efforts.filter(effort => effort !== 'none').toSorted((a, b) => rank(a) - rank(b))
  return ordered.findLast(effort => rank(effort) <= rank(wanted)) ?? ordered[0] ?? null
}
