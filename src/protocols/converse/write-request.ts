import { JSON_ONLY, toolSchema } from '../neutral/anthropic-request.ts'
import { conversationOf } from '../neutral/conversation.ts'
import { withoutNulls } from '../neutral/json.ts'
import type { JsonObject } from '../neutral/json.ts'
import type { TranslationReport } from '../neutral/report.ts'
import type { NeutralRequest, OutputFormat, ServiceTier, Tool } from '../neutral/request.ts'
import { namedTools } from '../neutral/tools.ts'
import type { SupportTable, WriteContext, WrittenRequest } from '../neutral/translation.ts'
import { modelFields } from './model-fields.ts'
import { conversePath } from './paths.ts'
import { ContentWriter, cachePoint } from './write-content.ts'

/** What an upstream of Converse gets of each field of a request. */
export const CONVERSE_SUPPORT: SupportTable = {
  model: 'mapped',
  stream: 'mapped',
  messages: 'partly',
  tools: 'mapped',
  toolChoice: 'partly',
  parallelToolCalls: 'dropped',
  outputFormat: 'partly',
  maxOutputTokens: 'mapped',
  stopSequences: 'mapped',
  temperature: 'mapped',
  topP: 'mapped',
  topK: 'partly',
  presencePenalty: 'dropped',
  frequencyPenalty: 'dropped',
  seed: 'dropped',
  reasoning: 'partly',
  serviceTier: 'partly',
  verbosity: 'dropped',
  user: 'dropped',
  metadata: 'partly',
  includeUsage: 'mapped',
  cacheKey: 'dropped',
}

/** Of names and values of `requestMetadata`, and how many there may be. */
const METADATA = /^[a-zA-Z0-9\s:_@$#=/+,.-]{0,256}$/
const MAX_METADATA = 16

/**
 * Writes the body of a request to Converse or ConverseStream.
 *
 * Source: Amazon Bedrock API Reference, "Converse".
 */
export function writeConverseRequest(request: NeutralRequest, context: WriteContext): WrittenRequest {
  const { model, report } = context
  const writer = new ContentWriter(context)
  const { instructions, messages } = conversationOf(request.messages)
  const { outputFormat: format, metadata } = request
  if (format?.type === 'json') report.dropField('outputFormat')
  const system = [
    ...instructions.flatMap(part => writer.content(part)),
    ...format?.type === 'json' ? [{ text: JSON_ONLY }] : [],
  ]
  const body = withoutNulls({
    system: system.length === 0 ? null : system,
    messages: writer.messages(messages),
    inferenceConfig: unlessEmpty({
      maxTokens: request.maxOutputTokens,
      temperature: request.temperature,
      topP: request.topP,
      stopSequences: request.stopSequences.length === 0 ? null : request.stopSequences,
    }),
    toolConfig: writeTools(request, report),
    additionalModelRequestFields: unlessEmpty(modelFields(request, model, report)),
    outputConfig: writeFormat(format),
    serviceTier: writeTier(request.serviceTier, report),
    requestMetadata: metadata && unlessEmpty(writeMetadata(metadata, report)),
  })
  return { path: conversePath(model, request.stream), body, headers: {} }
}

function unlessEmpty(members: JsonObject): JsonObject | null {
  const given = withoutNulls(members)
  return Object.keys(given).length === 0 ? null : given
}

/** Where only some tools are allowed, the others are left out. */
function writeTools({ tools, toolChoice, messages }: NeutralRequest, report: TranslationReport): JsonObject | null {
  const choice = toolChoice?.type === 'tools' ? toolChoice : null
  const allowed = choice === null ? tools : namedTools(tools, choice.names)
  if (allowed.length === 0) return null
  const specs = allowed.flatMap(writeTool)
  switch (toolChoice?.type) {
    case 'none': {
      // A conversation with calls needs its tools.
      if (!messages.some(({ parts }) => parts.some(({ type }) => type === 'tool_call'))) return null
      report.dropField('toolChoice')
      return { tools: specs }
    }
    case 'required':
      return { tools: specs, toolChoice: { any: {} } }
    case 'tools': {
      const [only] = allowed
      if (choice?.isForced !== true) return { tools: specs, toolChoice: { auto: {} } }
      return { tools: specs, toolChoice: allowed.length === 1 ? { tool: { name: only?.name } } : { any: {} } }
    }
    default:
      return toolChoice === null ? { tools: specs } : { tools: specs, toolChoice: { auto: {} } }
  }
}

function writeTool(tool: Tool): JsonObject[] {
  const { name, description, strict, cache } = tool
  const toolSpec = withoutNulls({
    name, description: description === '' ? null : description, strict: strict === true ? true : null,
    inputSchema: { json: toolSchema(tool) },
  })
  return cache === null ? [{ toolSpec }] : [{ toolSpec }, cachePoint(cache)]
}

function writeFormat(format: OutputFormat | null): JsonObject | null {
  if (format?.type !== 'json_schema') return null
  const { schema, name, description } = format
  const jsonSchema = withoutNulls({ schema: JSON.stringify(schema), name, description })
  return { textFormat: { type: 'json_schema', structure: { jsonSchema } } }
}

function writeTier(tier: ServiceTier | null, report: TranslationReport): JsonObject | null {
  if (tier === null || tier === 'auto' || tier === 'default') return null
  if (tier === 'priority' || tier === 'flex') return { type: tier }
  report.dropField('serviceTier')
  return null
}

function writeMetadata(metadata: Readonly<Record<string, string>>, report: TranslationReport): JsonObject {
  const fitting = Object.entries(metadata).filter(([name, value]) => name !== '' && METADATA.test(name) && METADATA.test(value))
  if (fitting.length < Object.keys(metadata).length || fitting.length > MAX_METADATA) report.dropField('metadata')
  return Object.fromEntries(fitting.slice(0, MAX_METADATA))
}
