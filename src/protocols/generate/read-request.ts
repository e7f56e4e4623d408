import type { BodyObject } from '../neutral/dialects/body-object.ts'
import type { JsonObject } from '../neutral/json.ts'
import { EMPTY_REQUEST } from '../neutral/request.ts'
import type { NeutralRequest, OutputFormat, Reasoning, ServiceTier, Tool, ToolChoice } from '../neutral/request.ts'
import type { FieldTable, ReadContext } from '../neutral/translation.ts'
import { ProtobufObject } from './protobuf-object.ts'
import { ContentReader } from './read-content.ts'
import { readSchema } from './schema.ts'

/** The fields of a request, and what each means (https://ai.google.dev/api/generate-content). */
export const GENERATE_FIELDS = {
  model: 'model', contents: 'messages', systemInstruction: 'messages', tools: 'tools',
  'toolConfig.functionCallingConfig': 'toolChoice',
  'toolConfig.retrievalConfig': 'dropped', 'toolConfig.includeServerSideToolInvocations': 'dropped',
  'generationConfig.maxOutputTokens': 'maxOutputTokens', 'generationConfig.stopSequences': 'stopSequences',
  'generationConfig.temperature': 'temperature', 'generationConfig.topP': 'topP', 'generationConfig.topK': 'topK',
  'generationConfig.presencePenalty': 'presencePenalty', 'generationConfig.frequencyPenalty': 'frequencyPenalty',
  'generationConfig.seed': 'seed', 'generationConfig.thinkingConfig': 'reasoning',
  'generationConfig.responseMimeType': 'outputFormat', 'generationConfig.responseSchema': 'outputFormat',
  'generationConfig.responseJsonSchema': 'outputFormat', 'generationConfig.responseFormat': 'outputFormat',
  'generationConfig.candidateCount': { to: 'refused', unless: [1, '1'], why: 'only one response can be translated' },
  'generationConfig.responseModalities': { to: 'refused', unless: [['TEXT'], ['Text'], ['text'], [], 'TEXT'], why: 'the target generates text alone' },
  'generationConfig.responseLogprobs': { to: 'dropped', unless: [false] },
  'generationConfig.logprobs': 'dropped', 'generationConfig.routingConfig': 'dropped',
  'generationConfig.modelSelectionConfig': 'dropped', 'generationConfig.mediaResolution': 'dropped',
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
  serviceTier: 'serviceTier', labels: 'metadata', safetySettings: 'dropped', modelArmorConfig: 'dropped',
  store: { to: 'dropped', unless: [false] },
  cachedContent: { to: 'refused', why: 'what is cached is at one provider' },
} as const satisfies FieldTable

/** @param given the body, with names in camel case */
export function readGenerateRequest(given: JsonObject, { report, stream, capsules }: ReadContext): NeutralRequest {
  const body = new ProtobufObject(given, '', report)
  const reader = new ContentReader(capsules)
  const config = body.object('generationConfig')
  const system = reader.instruction(body)
  return {
    ...EMPTY_REQUEST,
    stream,
    messages: [
      ...system.length === 0 ? [] : [{ role: 'system', parts: system, name: null } as const],
      ...body.conversation('contents').map(content => reader.message(content)),
    ],
    tools: body.objects('tools').flatMap(readTools),
    toolChoice: readToolChoice(body.object('toolConfig')?.object('functionCallingConfig') ?? null),
    ...config && readConfig(config),
    serviceTier: readServiceTier(body),
    metadata: body.record('labels'),
  }
}

function readConfig(config: BodyObject): Partial<NeutralRequest> {
  return {
    outputFormat: readOutputFormat(config),
    maxOutputTokens: config.number('maxOutputTokens'),
    stopSequences: config.texts('stopSequences'),
    temperature: config.number('temperature'), topP: config.number('topP'), topK: config.number('topK'),
    presencePenalty: config.number('presencePenalty'),
    frequencyPenalty: config.number('frequencyPenalty'),
    seed: config.number('seed'),
    reasoning: readReasoning(config.object('thinkingConfig')),
  }
}

function readTools(tool: BodyObject): Tool[] {
  return tool.objects('functionDeclarations').map(declaration => {
    const own = declaration.json('parameters')
    return {
      name: declaration.text('name') ?? '', description: declaration.text('description'),
      parameters: declaration.json('parametersJsonSchema') ?? (own && readSchema(own)),
      strict: null, freeform: null, namespaced: null, isToolSearch: false, cache: null, path: 'tools[].functionDeclarations[]',
    }
  })
}

function readToolChoice(config: BodyObject | null): ToolChoice | null {
  const names = config?.texts('allowedFunctionNames') ?? []
  switch (config?.word('mode', ['MODE_UNSPECIFIED', 'AUTO', 'ANY', 'NONE', 'VALIDATED'])) {
    case 'NONE': return { type: 'none' }
    case 'ANY': return names.length === 0 ? { type: 'required' } : { type: 'tools', names, isForced: true }
    case 'AUTO':
    case 'VALIDATED': return names.length === 0 ? { type: 'auto' } : { type: 'tools', names, isForced: false }
    default: return null
  }
}

function readOutputFormat(config: BodyObject): OutputFormat | null {
  const format = readTextFormat(config)
  const own = config.json('responseSchema')
  const json = config.json('responseJsonSchema')
  const schema = format?.json('schema') ?? json ?? (own && readSchema(own))
  const plain = config.text('responseMimeType')
  const type = (format?.text('mimeType') ?? plain)?.toLowerCase() ?? null
  if (type === 'application/json') {
    return schema === null ? { type: 'json' } : { type: 'json_schema', name: null, description: null, schema, strict: null }
  }
  if (type !== null && type !== 'text/plain') config.drop('responseMimeType')
  return null
}

/** Reads the format of text; `responseFormat` has one format for each kind of output. */
function readTextFormat(config: BodyObject): BodyObject | null {
  const all = config.objects('responseFormat')
  if (all.some(format => format.names.some(kind => kind !== 'text'))) config.refuse('responseFormat', 'the target generates text alone')
  return all[0]?.object('text') ?? null
}

const LEVELS = ['thinking_level_unspecified', 'minimal', 'low', 'medium', 'high'] as const

function readReasoning(config: BodyObject | null): Reasoning | null {
  if (config === null) return null
  const budget = config.number('thinkingBudget')
  const level = config.known('thinkingLevel', LEVELS)
  return {
    enabled: budget === 0 ? false : null,
    effort: level === 'thinking_level_unspecified' ? null : level,
    // A negative budget means that the model chooses the budget.
    budgetTokens: budget !== null && budget > 0 ? budget : null,
    showText: config.boolean('includeThoughts'),
  }
}

function readServiceTier(body: BodyObject): ServiceTier | null {
  const name = body.text('serviceTier')?.toLowerCase().replace('service_tier_', '')
  if (name === 'standard' || name === 'priority' || name === 'flex') return name
  if (name !== undefined && name !== 'unspecified') body.drop('serviceTier')
  return null
}
