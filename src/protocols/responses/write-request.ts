import { withoutNulls, type JsonObject } from '../neutral/json.ts'
import { dataUrl, inlineSource, resultText, writeEffort, writeUserName } from '../neutral/dialects/openai-request.ts'
import { valueFor } from '../neutral/opaque.ts'
import { plainText } from '../neutral/plain-text.ts'
import type { TranslationReport } from '../neutral/report.ts'
import type {
  DocumentPart, ImagePart, Message, NeutralRequest, OutputFormat, Part, Reasoning, Tool, ToolCallPart, ToolChoice, ToolResultPart,
} from '../neutral/request.ts'
import { fittingToolId } from '../neutral/tool-ids.ts'
import type { SupportTable, WriteContext, WrittenRequest } from '../neutral/translation.ts'

export const RESPONSES_SUPPORT: SupportTable = {
  model: 'mapped', stream: 'mapped', messages: 'partly', tools: 'mapped', toolChoice: 'mapped', parallelToolCalls: 'mapped',
  outputFormat: 'mapped', maxOutputTokens: 'mapped', stopSequences: 'dropped', temperature: 'mapped', topP: 'mapped', topK: 'dropped',
  presencePenalty: 'dropped', frequencyPenalty: 'dropped', seed: 'dropped', reasoning: 'partly', serviceTier: 'mapped',
  verbosity: 'mapped', user: 'mapped', metadata: 'mapped', includeUsage: 'mapped', cacheKey: 'mapped',
}

/** Minimum of `max_output_tokens` that the API accepts. */
const MIN_OUTPUT_TOKENS = 16
export const RESPONSES_TOOL_IDS = { pattern: /^[\x21-\x7e]+$/, maxLength: 64, prefix: 'call_' }
/** Matches models that reason. Other models refuse a request for encrypted reasoning. */
const REASONS = /^(o\d|gpt-[5-9]|gpt-\d{2}|codex)/

/** Writes a request with which the provider stores nothing, because the client keeps the conversation. */
export function writeResponsesRequest(request: NeutralRequest, context: WriteContext): WrittenRequest {
  const { report, model } = context
  const { tools, toolChoice, maxOutputTokens, serviceTier } = request
  const format = request.outputFormat && writeOutputFormat(request.outputFormat)
  const reasoning = request.reasoning && writeReasoning(request.reasoning, context)
  const reasons = REASONS.test(model)
  report.dropNames(request.messages)
  const body = withoutNulls({
    model,
    input: request.messages.flatMap(message => writeMessage(message, context)),
    tools: tools.length === 0 ? null : tools.map(tool => writeTool(tool, report)),
    tool_choice: toolChoice && tools.length > 0 ? writeToolChoice(toolChoice, tools) : null,
    parallel_tool_calls: tools.length === 0 ? null : request.parallelToolCalls,
    text: format === null && request.verbosity === null ? null : withoutNulls({ format, verbosity: request.verbosity }),
    max_output_tokens: maxOutputTokens && Math.max(MIN_OUTPUT_TOKENS, maxOutputTokens),
    // Omit the default, 1: models that reason refuse sampling parameters, and Claude Code always sends 1.
    temperature: request.temperature === 1 && reasons ? null : request.temperature,
    top_p: request.topP === 1 && reasons ? null : request.topP,
    reasoning,
    include: reasoning !== null || reasons ? ['reasoning.encrypted_content'] : null,
    service_tier: serviceTier === 'standard' ? 'default' : serviceTier,
    safety_identifier: writeUserName(request.user),
    metadata: request.metadata,
    prompt_cache_key: request.cacheKey,
    stream: request.stream ? true : null,
    store: false,
  })
  return { path: '/v1/responses', body, headers: {} }
}

function writeMessage({ role, parts }: Message, context: WriteContext): JsonObject[] {
  for (const part of parts) if (part.cache !== null) context.report.drop(`${part.path}.cache_control`)
  if (role === 'assistant') return parts.flatMap(part => writeAssistant(part, context))
  const results = parts.flatMap(part => part.type === 'tool_result' ? [writeResult(part, context.report)] : [])
  const content = parts.flatMap(part => part.type === 'tool_result' ? [] : writeContent(part, context.report))
  return content.length === 0 ? results : [...results, { type: 'message', role, content }]
}

/** Writes a part of the assistant as items without ids, because the API refuses ids of other responses. */
function writeAssistant(part: Part, { provider, report }: WriteContext): JsonObject[] {
  switch (part.type) {
    case 'text': return [{ role: 'assistant', content: part.text }]
    case 'refusal': return [{ type: 'message', role: 'assistant', content: [{ type: 'refusal', refusal: part.text }] }]
    case 'tool_call': return [writeCall(part)]
    case 'thinking':
    case 'redacted_thinking': {
      const encrypted = valueFor(part.opaque, provider)
      if (encrypted === null) {
        report.drop(`${part.path}.${part.type}`)
        return []
      }
      const text = part.type === 'thinking' ? part.text : ''
      return [{ type: 'reasoning', summary: text === '' ? [] : [{ type: 'summary_text', text }], encrypted_content: encrypted }]
    }
    default:
      report.drop(`${part.path}.${part.type}`)
      return []
  }
}

function writeCall({ id, name, arguments: input, isFreeform }: ToolCallPart): JsonObject {
  const call = { call_id: fittingToolId(id, RESPONSES_TOOL_IDS), name }
  if (isFreeform) return { type: 'custom_tool_call', ...call, input }
  return { type: 'function_call', ...call, arguments: input === '' ? '{}' : input }
}

function writeResult(part: ToolResultPart, report: TranslationReport): JsonObject {
  const { callId, parts, isFreeform } = part
  const type = isFreeform ? 'custom_tool_call_output' : 'function_call_output'
  const text = resultText(part)
  const media = parts.filter(part => plainText(part) === null).flatMap(part => writeContent(part, report))
  const output = media.length === 0 ? text : [...text === '' ? [] : [{ type: 'input_text', text }], ...media]
  return { type, call_id: fittingToolId(callId, RESPONSES_TOOL_IDS), output }
}

function writeContent(part: Part, report: TranslationReport): JsonObject[] {
  switch (part.type) {
    case 'text': return [{ type: 'input_text', text: part.text }]
    case 'image': return [writeImage(part, report)]
    case 'document': return [writeDocument(part, report)]
    default:
      report.drop(`${part.path}.${part.type}`)
      return []
  }
}

function writeImage({ source, detail, path }: ImagePart, report: TranslationReport): JsonObject {
  const url = source.kind === 'url' ? source.url : dataUrl(inlineSource(source, path, report))
  return { type: 'input_image', image_url: url, detail: detail ?? 'auto' }
}

function writeDocument({ source, name, path }: DocumentPart, report: TranslationReport): JsonObject {
  if (source.kind === 'text') return { type: 'input_text', text: name === null ? source.text : `${name}\n\n${source.text}` }
  if (source.kind === 'url') return { type: 'input_file', file_url: source.url }
  return { type: 'input_file', filename: name ?? 'document.pdf', file_data: dataUrl(inlineSource(source, path, report)) }
}

function writeTool({ name, description, parameters, strict, freeform, cache, path }: Tool, report: TranslationReport): JsonObject {
  if (cache !== null) report.drop(`${path}.cache_control`)
  if (freeform !== null) return withoutNulls({ type: 'custom', name, description, format: freeform.format })
  // `strict` must be false explicitly: the API's default is strict, and strict tools refuse schemas that other protocols accept.
  const schema = parameters ?? { type: 'object', properties: {} }
  return withoutNulls({ type: 'function', name, description, parameters: schema, strict: strict ?? false })
}

function writeToolChoice(choice: ToolChoice, tools: readonly Tool[]): unknown {
  if (choice.type !== 'tools') return choice.type
  const freeform = new Set(tools.flatMap(({ name, freeform }) => freeform === null ? [] : [name]))
  const named = choice.names.map(name => ({ type: freeform.has(name) ? 'custom' : 'function', name }))
  if (named.length === 1 && choice.isForced) return named[0]
  return { type: 'allowed_tools', mode: choice.isForced ? 'required' : 'auto', tools: named }
}

function writeOutputFormat(format: OutputFormat): JsonObject {
  switch (format.type) {
    case 'text': return { type: 'text' }
    case 'json': return { type: 'json_object' }
    case 'json_schema': {
      const { name, description, schema, strict } = format
      return withoutNulls({ type: 'json_schema', name: name ?? 'response', description, schema, strict: strict ?? false })
    }
  }
}

function writeReasoning(reasoning: Reasoning, { accepts, report }: WriteContext): JsonObject | null {
  const effort = writeEffort(reasoning, accepts, report)
  if (effort === null && reasoning.showText !== true) return null
  return withoutNulls({ effort: effort === 'max' ? 'xhigh' : effort, summary: reasoning.showText === false ? null : 'auto' })
}
