import { reportOthers } from '../neutral/fields.ts'
import { asList, asNumber, asObject, asText } from '../neutral/json.ts'
import type { JsonObject } from '../neutral/json.ts'
import type { TranslationReport } from '../neutral/report.ts'
import { EMPTY_REQUEST } from '../neutral/request.ts'
import type { NeutralRequest, OutputFormat, Reasoning, ServiceTier, Tool, ToolChoice } from '../neutral/request.ts'
import type { FieldTable, ReadContext } from '../neutral/translation.ts'
import { ContentReader, repeated } from './read-content.ts'
import { readSchema } from './schema.ts'

/** The fields of a request (https://ai.google.dev/api/generate-content). */
export const GENERATE_FIELDS = {
  model: 'model',
  contents: 'messages',
  systemInstruction: 'messages',
  tools: 'tools',
  'toolConfig.functionCallingConfig': 'toolChoice',
  'toolConfig.retrievalConfig': 'dropped',
  'toolConfig.includeServerSideToolInvocations': 'dropped',
  'generationConfig.maxOutputTokens': 'maxOutputTokens',
  'generationConfig.stopSequences': 'stopSequences',
  'generationConfig.temperature': 'temperature',
  'generationConfig.topP': 'topP',
  'generationConfig.topK': 'topK',
  'generationConfig.presencePenalty': 'presencePenalty',
  'generationConfig.frequencyPenalty': 'frequencyPenalty',
  'generationConfig.seed': 'seed',
  'generationConfig.thinkingConfig': 'reasoning',
  'generationConfig.responseMimeType': 'outputFormat',
  'generationConfig.responseSchema': 'outputFormat',
  'generationConfig.responseJsonSchema': 'outputFormat',
  'generationConfig.responseFormat': 'outputFormat',
  'generationConfig.candidateCount': { to: 'refused', unless: [1], why: 'only one response can be translated' },
  'generationConfig.responseModalities': { to: 'refused', unless: [['TEXT'], ['Text'], ['text'], []], why: 'the target generates text alone' },
  'generationConfig.responseLogprobs': { to: 'dropped', unless: [false] },
  'generationConfig.logprobs': 'dropped',
  'generationConfig.routingConfig': 'dropped',
  'generationConfig.modelSelectionConfig': 'dropped',
  'generationConfig.mediaResolution': 'dropped',
  'generationConfig.speechConfig': { to: 'refused', why: 'the target generates no audio' },
  'generationConfig.audioTimestamp': 'dropped',
  'generationConfig.imageConfig': { to: 'refused', why: 'the target generates no images' },
  'generationConfig.enableEnhancedCivicAnswers': 'dropped',
  'generationConfig.enableAffectiveDialog': { to: 'dropped', unless: [false] },
  'generationConfig.translationConfig': { to: 'refused', why: 'the target translates no speech' },
  'generationConfig.audioTranscriptionConfig': 'dropped',
  'generationConfig.continuationToken': { to: 'refused', why: 'its provider alone has what it continues' },
  'generationConfig.automaticContinuation': { to: 'dropped', unless: [false] },
  'generationConfig.generationOutputConfig': 'dropped',
  serviceTier: 'serviceTier',
  labels: 'metadata',
  safetySettings: 'dropped',
  modelArmorConfig: 'dropped',
  store: { to: 'dropped', unless: [false] },
  cachedContent: { to: 'refused', why: 'what is cached is at one provider' },
} as const satisfies FieldTable

/** Reads the body of a request, in camel case. */
export function readGenerateRequest(body: JsonObject, { report, stream }: ReadContext): NeutralRequest {
  const reader = new ContentReader(report)
  const config = asObject(body['generationConfig']) ?? {}
  const system = reader.instruction(body['systemInstruction'])
  return {
    ...EMPTY_REQUEST,
    stream,
    messages: [
      ...system.length === 0 ? [] : [{ role: 'system', parts: system, name: null } as const],
      ...report.conversationOf(repeated(body['contents']), 'contents').map(content => reader.message(content)),
    ],
    tools: report.objectsOf(repeated(body['tools']), 'tools').flatMap(tool => readTools(tool, report)),
    toolChoice: readToolChoice(asObject(asObject(body['toolConfig'])?.['functionCallingConfig'])),
    outputFormat: readOutputFormat(config, report),
    maxOutputTokens: asNumber(config['maxOutputTokens']),
    stopSequences: asList(config['stopSequences']).filter(item => typeof item === 'string'),
    temperature: asNumber(config['temperature']),
    topP: asNumber(config['topP']),
    topK: asNumber(config['topK']),
    presencePenalty: asNumber(config['presencePenalty']),
    frequencyPenalty: asNumber(config['frequencyPenalty']),
    seed: asNumber(config['seed']),
    reasoning: readReasoning(asObject(config['thinkingConfig'])),
    serviceTier: readServiceTier(asText(body['serviceTier'])),
    metadata: readLabels(asObject(body['labels'])),
  }
}

const TOOL_MEMBERS = new Set(['functionDeclarations'])
const DECLARATION_MEMBERS = new Set(['name', 'description', 'parameters', 'parametersJsonSchema'])

function readTools(tool: JsonObject, report: TranslationReport): Tool[] {
  reportOthers(tool, TOOL_MEMBERS, 'tools[]', report)
  return report.objectsOf(repeated(tool['functionDeclarations']), 'tools[].functionDeclarations').map(declaration => {
    reportOthers(declaration, DECLARATION_MEMBERS, 'tools[].functionDeclarations[]', report)
    const own = asObject(declaration['parameters'])
    return {
      name: asText(declaration['name']) ?? '',
      description: asText(declaration['description']),
      parameters: asObject(declaration['parametersJsonSchema']) ?? (own && readSchema(own)),
      strict: null,
      freeform: null,
      namespaced: null,
      isToolSearch: false,
      cache: null,
      path: 'tools[].functionDeclarations[]',
    }
  })
}

function readToolChoice(config: JsonObject | null): ToolChoice | null {
  const names = asList(config?.['allowedFunctionNames']).filter(name => typeof name === 'string')
  switch (asText(config?.['mode'])?.toUpperCase()) {
    case 'NONE':
      return { type: 'none' }
    case 'ANY':
      return names.length === 0 ? { type: 'required' } : { type: 'tools', names, isForced: true }
    case 'AUTO':
    case 'VALIDATED':
      return names.length === 0 ? { type: 'auto' } : { type: 'tools', names, isForced: false }
    default:
      return null
  }
}

function readOutputFormat(config: JsonObject, report: TranslationReport): OutputFormat | null {
  const format = readTextFormat(config['responseFormat'], report)
  const own = asObject(config['responseSchema'])
  const schema = asObject(format?.['schema']) ?? asObject(config['responseJsonSchema']) ?? (own && readSchema(own))
  const type = (asText(format?.['mimeType']) ?? asText(config['responseMimeType']))?.toLowerCase() ?? null
  if (type === 'application/json') {
    return schema === null ? { type: 'json' } : { type: 'json_schema', name: null, description: null, schema, strict: null }
  }
  if (type !== null && type !== 'text/plain') report.drop('generationConfig.responseMimeType')
  return null
}

/** `responseFormat` has a format for each kind of output. */
function readTextFormat(formats: unknown, report: TranslationReport): JsonObject | null {
  const all = asList(formats).map(format => asObject(format) ?? {})
  if (all.some(format => Object.keys(format).some(kind => kind !== 'text'))) {
    report.refuse('generationConfig.responseFormat', 'the target generates text alone')
  }
  return asObject(all[0]?.['text'])
}

function readReasoning(config: JsonObject | null): Reasoning | null {
  if (config === null) return null
  const budget = asNumber(config['thinkingBudget'])
  const level = asText(config['thinkingLevel'])?.toLowerCase() ?? null
  const include = config['includeThoughts']
  return {
    enabled: budget === 0 ? false : null,
    effort: level === 'thinking_level_unspecified' ? null : level,
    // A negative budget leaves it to the model.
    budgetTokens: budget !== null && budget > 0 ? budget : null,
    showText: typeof include === 'boolean' ? include : null,
  }
}

function readServiceTier(tier: string | null): ServiceTier | null {
  const name = tier?.toLowerCase().replace('service_tier_', '')
  return name === 'standard' || name === 'priority' || name === 'flex' ? name : null
}

function readLabels(labels: JsonObject | null): Readonly<Record<string, string>> | null {
  const entries = Object.entries(labels ?? {}).flatMap(([name, value]) => typeof value === 'string' ? [[name, value] as const] : [])
  return entries.length === 0 ? null : Object.fromEntries(entries)
}
