import { foldInstructions, schemaInstruction, withoutIdleThinking } from './conversation.ts'
import { EFFORTS, type NeutralRequest, type Reasoning } from './request.ts'
import type { TranslationReport } from './report.ts'

/** The numbers that a model accepts in a field; false = the model refuses the field. An absent `min` or `max` is no limit. */
export type NumberRule = false | { readonly only?: readonly number[], readonly min?: number, readonly max?: number }

/** What a model at a target accepts, if it accepts less than the protocol allows. An absent member means no restriction. */
export interface Accepts {
  readonly temperature?: NumberRule
  readonly topP?: NumberRule
  readonly topK?: NumberRule
  readonly presencePenalty?: NumberRule
  readonly frequencyPenalty?: NumberRule
  /** false = a request may have `temperature` or `topP`, but not both. */
  readonly temperatureWithTopP?: boolean
  /** false = the model refuses sampling parameters while it reasons. */
  readonly samplingWithReasoning?: boolean
  readonly stop?: boolean
  /** Supported efforts of reasoning. The effort `none` switches reasoning off. */
  readonly efforts?: readonly string[]
  /** Where instructions are accepted: `first` = only at the beginning; `anywhere` = also inside the conversation. */
  readonly system?: 'first' | 'anywhere'
  /** The name of the limit of output tokens at chat servers. */
  readonly maxTokens?: 'max_tokens' | 'max_completion_tokens'
  readonly without?: readonly OptionalField[]
  /** The name of the seed at chat servers. */
  readonly seed?: 'seed' | 'random_seed'
  /** Exact length of a call's id, which may contain only letters and digits. */
  readonly toolIdLength?: number
  /** false = the target requires an assistant message between a tool result and a user message. */
  readonly userBehindResult?: boolean
  /** true = a turn may end with thinking that has a signature: Gemini can send a signature as a separate part. */
  readonly thinkingLast?: boolean
  /** Supported beta features of Anthropic's protocol. */
  readonly betas?: readonly string[]
  /**
   * Maximum number of characters, and regular expressions for each character and for the first character. Without `start`, `pattern` is
   * used for the first character too.
   */
  readonly toolName?: { readonly length: number, readonly pattern: string, readonly start?: string }
}

/** Members that a request can lose without a change of meaning, by their names at chat servers. */
const OPTIONAL = {
  seed: 'seed', service_tier: 'serviceTier', verbosity: 'verbosity', user: 'user', prompt_cache_key: 'cacheKey', metadata: 'metadata',
  parallel_tool_calls: 'parallelToolCalls',
} as const

/** Also `name` of messages, `json_schema` (an instruction replaces it), and `stream_options` (asks for usage). */
export type OptionalField = keyof typeof OPTIONAL | 'name' | 'json_schema' | 'stream_options'

const NUMBERS = ['temperature', 'topP', 'topK', 'presencePenalty', 'frequencyPenalty'] as const

/**
 * Fits a request to what the model accepts. A refused value is replaced by the nearest accepted value if the meaning stays, or else dropped
 * and reported.
 */
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

/** Only 1 is accepted: it is the default of models that reason, so a client that always sends 1 loses nothing. */
const SAMPLING_DEFAULT: NumberRule = { only: [1] }

/** @returns null = the model accepts no value near `value` */
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

/** The highest supported effort that does not exceed the requested effort, or else the lowest. `none` is never chosen. */
function nearestEffort(wanted: string, efforts: readonly string[]): string | null {
  const rank = (effort: string): number => EFFORTS.findIndex(known => known === effort)
  const ordered = efforts.filter(effort => effort !== 'none').toSorted((a, b) => rank(a) - rank(b))
  return ordered.findLast(effort => rank(effort) <= rank(wanted)) ?? ordered[0] ?? null
}
