import { alternatingTurns, conversationOf } from '../neutral/conversation.ts'
import { withoutNulls, type JsonObject } from '../neutral/json.ts'
import type { TranslationReport } from '../neutral/report.ts'
import type { NeutralRequest, OutputFormat, ServiceTier, Tool } from '../neutral/request.ts'
import { namedTools } from '../neutral/tools.ts'
import type { SupportTable, WriteContext, WrittenRequest } from '../neutral/translation.ts'
import { writeSchema } from './schema.ts'
import { writeThinking } from './thinking.ts'
import { writeContents } from './write-content.ts'

export const GENERATE_SUPPORT: SupportTable = {
  model: 'mapped', stream: 'mapped', messages: 'partly', tools: 'partly', toolChoice: 'mapped', parallelToolCalls: 'partly',
  outputFormat: 'mapped', maxOutputTokens: 'mapped', stopSequences: 'partly', temperature: 'mapped', topP: 'mapped', topK: 'mapped',
  presencePenalty: 'mapped', frequencyPenalty: 'mapped', seed: 'mapped', reasoning: 'mapped', serviceTier: 'partly',
  verbosity: 'dropped', user: 'dropped', includeUsage: 'mapped', cacheKey: 'dropped',
  // Only Vertex AI accepts `labels`.
  metadata: 'dropped',
}

/** Maximum that Gemini accepts. */
const MAX_STOP_SEQUENCES = 5

export function writeGenerateRequest(request: NeutralRequest, context: WriteContext): WrittenRequest {
  const { report, model } = context
  const { instructions, messages } = conversationOf(request.messages)
  const { tools, config } = writeTools(request, report)
  report.dropNames(request.messages)
  const system = instructions.flatMap(part => {
    if (part.cache !== null) report.drop(`${part.path}.cache_control`)
    if (part.type === 'text') return part.text === '' ? [] : [{ text: part.text }]
    report.drop(`${part.path}.${part.type}`)
    return []
  })
  if (request.parallelToolCalls === false) report.dropField('parallelToolCalls')
  const generationConfig = writeConfig(request, context)
  const body = withoutNulls({
    systemInstruction: system.length === 0 ? null : { parts: system },
    contents: writeContents(alternatingTurns(messages), context),
    tools: tools.length === 0 ? null : [{ functionDeclarations: tools }],
    toolConfig: config === null || tools.length === 0 ? null : { functionCallingConfig: config },
    generationConfig: Object.keys(generationConfig).length === 0 ? null : generationConfig,
    serviceTier: writeServiceTier(request.serviceTier),
  })
  const verb = request.stream ? 'streamGenerateContent?alt=sse' : 'generateContent'
  return { path: `/v1beta/models/${encodeURIComponent(model)}:${verb}`, body, headers: {} }
}

function writeConfig(request: NeutralRequest, { model, report }: WriteContext): JsonObject {
  const { stopSequences, outputFormat, reasoning } = request
  if (stopSequences.length > MAX_STOP_SEQUENCES) report.dropField('stopSequences')
  return withoutNulls({
    maxOutputTokens: request.maxOutputTokens,
    stopSequences: stopSequences.length === 0 ? null : stopSequences.slice(0, MAX_STOP_SEQUENCES),
    temperature: request.temperature,
    topP: request.topP,
    topK: request.topK,
    presencePenalty: request.presencePenalty,
    frequencyPenalty: request.frequencyPenalty,
    seed: request.seed,
    thinkingConfig: reasoning && writeThinking(reasoning, model),
    ...outputFormat && writeOutputFormat(outputFormat),
  })
}

function writeOutputFormat(format: OutputFormat): JsonObject {
  switch (format.type) {
    case 'text': return {}
    case 'json': return { responseMimeType: 'application/json' }
    case 'json_schema': return { responseMimeType: 'application/json', responseJsonSchema: writeSchema(format.schema) }
  }
}

/** Writes the tools that the choice allows. If a call is required, all tools are written, and `config` names the allowed tools. */
function writeTools({ tools, toolChoice }: NeutralRequest, report: TranslationReport): { tools: JsonObject[], config: JsonObject | null } {
  const all = (list: readonly Tool[]): JsonObject[] => list.map(tool => writeTool(tool, report))
  switch (toolChoice?.type) {
    case undefined: return { tools: all(tools), config: null }
    case 'auto': return { tools: all(tools), config: { mode: 'AUTO' } }
    case 'none': return { tools: all(tools), config: { mode: 'NONE' } }
    case 'required': return { tools: all(tools), config: { mode: 'ANY' } }
    case 'tools': {
      const { names, isForced } = toolChoice
      if (isForced) return { tools: all(tools), config: { mode: 'ANY', allowedFunctionNames: names } }
      return { tools: all(namedTools(tools, names)), config: { mode: 'AUTO' } }
    }
  }
}

function writeTool({ name, description, parameters, strict, cache, path }: Tool, report: TranslationReport): JsonObject {
  if (cache !== null) report.drop(`${path}.cache_control`)
  if (strict === true) report.drop(`${path}.strict`)
  return withoutNulls({ name, description: description ?? name, parametersJsonSchema: parameters && writeSchema(parameters) })
}

function writeServiceTier(tier: ServiceTier | null): string | null {
  return tier === 'standard' || tier === 'priority' || tier === 'flex' ? tier : null
}
