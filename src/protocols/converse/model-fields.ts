import { writeThinking } from '../neutral/dialects/claude-thinking.ts'
import { withoutNulls, type JsonObject } from '../neutral/json.ts'
import type { NeutralRequest } from '../neutral/request.ts'
import type { WriteContext } from '../neutral/translation.ts'

/** How to write, for one vendor, the settings that Converse has no field for; null = the vendor has no field either. */
interface Maker {
  readonly topK: ((topK: number) => JsonObject) | null
  readonly reasoning: ((request: NeutralRequest, context: WriteContext) => JsonObject | null) | null
  /** Where the vendor allows cache marks, and whether a mark has a lifetime; null = nowhere. */
  readonly cache: { readonly amongTools: boolean, readonly ttl: boolean, readonly behindDocuments: boolean } | null
}

const OTHER: Maker = { topK: null, reasoning: null, cache: null }
/** For custom inference profiles: their names do not show the model's vendor. */
const UNKNOWN: Maker = { ...OTHER, cache: { amongTools: true, ttl: true, behindDocuments: true } }
/** Matches `meta.llama3-1-70b-instruct-v1:0` and `us.meta.llama3-1-70b-instruct-v1:0`. */
const NAMES_MAKER = /^(?:[a-z-]+\.)?[a-z0-9]+\.[a-z]/

/** Vendors by a part of the model's id. Source: Amazon Bedrock user guide, "Inference request parameters" and "Prompt caching". */
const MAKERS: readonly (readonly [RegExp, Maker])[] = [
  [/anthropic\.claude/, { topK: topK => ({ top_k: topK }), reasoning: claudeReasoning, cache: { amongTools: true, ttl: true, behindDocuments: false } }],
  [/amazon\.nova/, { topK: topK => ({ inferenceConfig: { topK } }), reasoning: null, cache: { amongTools: false, ttl: false, behindDocuments: true } }],
  [/openai\.gpt/, { ...OTHER, reasoning: ({ reasoning }) => (reasoning?.effort ? { reasoning_effort: reasoning.effort } : null) }],
]

export function makerOf(model: string): Maker {
  return MAKERS.find(([pattern]) => pattern.test(model))?.[1] ?? (NAMES_MAKER.test(model) ? OTHER : UNKNOWN)
}

/** Writes `additionalModelRequestFields`, and reports each setting that the model has no field for. */
export function modelFields(request: NeutralRequest, context: WriteContext): JsonObject {
  const { topK, reasoning } = request
  const { report, model } = context
  const maker = makerOf(model)
  const wanted = reasoning !== null && reasoning.enabled !== false
  const thinking = wanted ? maker.reasoning?.(request, context) ?? null : null
  if (wanted && thinking === null) report.dropField('reasoning')
  const sampling = topK === null || thinks(thinking) ? null : maker.topK?.(topK) ?? null
  if (topK !== null && sampling === null) report.dropField('topK')
  return { ...sampling, ...thinking }
}

/** Tells whether thinking is on. Claude with thinking refuses most sampling parameters (Amazon Bedrock user guide, "Extended thinking"). */
export function thinks(fields: JsonObject | null): boolean {
  return fields?.['thinking'] !== undefined
}

function claudeReasoning(request: NeutralRequest, { model, provider, report }: WriteContext): JsonObject | null {
  const { thinking, effort } = writeThinking(request, { model, maxTokens: request.maxOutputTokens, provider, report })
  return thinking && withoutNulls({ thinking, output_config: effort === null ? null : { effort } })
}
