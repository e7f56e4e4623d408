import { JSON_ONLY, toolSchema } from '../neutral/dialects/anthropic-request.ts'
import { conversationOf } from '../neutral/conversation.ts'
import { withoutNulls, type JsonObject } from '../neutral/json.ts'
import type { TranslationReport } from '../neutral/report.ts'
import type { Message, NeutralRequest, OutputFormat, ServiceTier, Tool } from '../neutral/request.ts'
import { namedTools } from '../neutral/tools.ts'
import type { SupportTable, WriteContext, WrittenRequest } from '../neutral/translation.ts'
import { makerOf, modelFields, thinks } from './model-fields.ts'
import { conversePath } from './paths.ts'
import { ContentWriter, cachePoint } from './write-content.ts'

export const CONVERSE_SUPPORT: SupportTable = {
  model: 'mapped', stream: 'mapped', messages: 'partly', tools: 'mapped', toolChoice: 'partly', parallelToolCalls: 'dropped',
  outputFormat: 'partly', maxOutputTokens: 'mapped', stopSequences: 'mapped', temperature: 'mapped', topP: 'mapped', topK: 'partly',
  presencePenalty: 'dropped', frequencyPenalty: 'dropped', seed: 'dropped', reasoning: 'partly', serviceTier: 'partly',
  verbosity: 'dropped', user: 'dropped', metadata: 'partly', includeUsage: 'mapped', cacheKey: 'dropped',
}

/** Allowed names and values of `requestMetadata`. */
const METADATA = /^[a-zA-Z0-9\s:_@$#=/+,.-]{0,256}$/
const MAX_METADATA = 16

/** Writes requests for Converse and ConverseStream. Source: Amazon Bedrock API Reference, "Converse". */
export function writeConverseRequest(request: NeutralRequest, context: WriteContext): WrittenRequest {
  const { model, report } = context
  const fields = modelFields(request, context)
  const { temperature, topP } = writeSampling(request, thinks(fields), report)
  const stopSequences = request.stopSequences.filter(text => text.trim() !== '')
  const writer = new ContentWriter(context)
  const { instructions, messages } = conversationOf(request.messages)
  const { outputFormat: format, metadata } = request
  if (format?.type === 'json') report.dropField('outputFormat')
  const system = [...instructions.flatMap(part => writer.content(part)), ...format?.type === 'json' ? [{ text: JSON_ONLY }] : []]
  const body = withoutNulls({
    system: system.length === 0 ? null : system,
    messages: writer.messages(messages),
    inferenceConfig: unlessEmpty({
      maxTokens: request.maxOutputTokens, temperature, topP, stopSequences: stopSequences.length === 0 ? null : stopSequences,
    }),
    toolConfig: writeTools(request, context),
    additionalModelRequestFields: unlessEmpty(fields),
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

/** Writes only the tools that the model may call. */
function writeTools({ tools, toolChoice, messages }: NeutralRequest, context: WriteContext): JsonObject | null {
  const choice = toolChoice?.type === 'tools' ? toolChoice : null
  const allowed = choice === null ? tools : namedTools(tools, choice.names)
  if (allowed.length === 0) return calledTools(messages)
  const specs = allowed.flatMap(tool => writeTool(tool, context))
  switch (toolChoice?.type) {
    case 'none': {
      // Send the tools even if the model may not call any, because Converse requires tools if the conversation has calls.
      if (!messages.some(({ parts }) => parts.some(({ type }) => type === 'tool_call'))) return null
      context.report.dropField('toolChoice')
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

/** Tools for a conversation that has calls although the request has no tools: Converse requires tools in that case. */
function calledTools(messages: readonly Message[]): JsonObject | null {
  const names = new Set(messages.flatMap(({ parts }) => parts.flatMap(part => part.type === 'tool_call' || part.type === 'tool_result' ? [part.name] : [])))
  names.delete('')
  if (names.size === 0) return null
  return { tools: [...names].map(name => ({ toolSpec: { name, inputSchema: { json: { type: 'object', properties: {} } } } })) }
}

/** With thinking, Claude accepts only a temperature of 1, and refuses `topP`. */
function writeSampling({ temperature, topP }: NeutralRequest, isThinking: boolean, report: TranslationReport): Pick<NeutralRequest, 'temperature' | 'topP'> {
  if (!isThinking) return { temperature, topP }
  if (temperature !== null && temperature !== 1) report.dropField('temperature')
  if (topP !== null) report.dropField('topP')
  return { temperature: null, topP: null }
}

function writeTool(tool: Tool, { model, report }: WriteContext): JsonObject[] {
  const { name, description, strict, cache, path } = tool
  const toolSpec = withoutNulls({
    name, description: description === '' ? null : description, strict: strict === true ? true : null,
    inputSchema: { json: toolSchema(tool) },
  })
  if (cache === null) return [{ toolSpec }]
  if (makerOf(model).cache?.amongTools === true) return [{ toolSpec }, cachePoint(cache, model)]
  report.drop(`${path}.cache_control`)
  return [{ toolSpec }]
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
