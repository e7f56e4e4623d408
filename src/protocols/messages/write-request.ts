import { JSON_ONLY, toolSchema, writeTurns } from '../neutral/dialects/anthropic-request.ts'
import { writeThinking } from '../neutral/dialects/claude-thinking.ts'
import { conversationOf } from '../neutral/conversation.ts'
import { asObject, withoutNulls, type JsonObject } from '../neutral/json.ts'
import { valueFor } from '../neutral/opaque.ts'
import type { TranslationReport } from '../neutral/report.ts'
import type {
  CacheMark, DocumentPart, ImagePart, MediaSource, Message, NeutralRequest, Part, ServiceTier, Tool, ToolCallPart, ToolResultPart,
} from '../neutral/request.ts'
import { fittingToolId } from '../neutral/tool-ids.ts'
import { namedTools, writeArguments } from '../neutral/tools.ts'
import type { SupportTable, WriteContext, WrittenRequest } from '../neutral/translation.ts'
import { outputSchema } from './output-schema.ts'

export const MESSAGES_SUPPORT: SupportTable = {
  model: 'mapped', stream: 'mapped', messages: 'partly', tools: 'mapped', toolChoice: 'mapped', parallelToolCalls: 'mapped',
  outputFormat: 'partly', maxOutputTokens: 'mapped', stopSequences: 'mapped', temperature: 'partly', topP: 'partly', topK: 'partly',
  presencePenalty: 'dropped', frequencyPenalty: 'dropped', seed: 'dropped', reasoning: 'partly', serviceTier: 'partly',
  verbosity: 'dropped', user: 'mapped', metadata: 'dropped', includeUsage: 'mapped', cacheKey: 'dropped',
}

/** Used if the request has no limit of output tokens, because the protocol requires `max_tokens`. */
const DEFAULT_MAX_TOKENS = 32_000
/** Maximum that Anthropic accepts in one request. */
const MAX_CACHE_MARKS = 4
export const MESSAGES_TOOL_IDS = { pattern: /^[a-zA-Z0-9_-]+$/, maxLength: Infinity, prefix: 'toolu_' }

export function writeMessagesRequest(request: NeutralRequest, context: WriteContext): WrittenRequest {
  const { report } = context
  const writer = new ContentWriter(context)
  const { instructions, messages } = conversationOf(request.messages)
  const { tools, choice } = writeToolChoice(request)
  const maxTokens = request.maxOutputTokens ?? DEFAULT_MAX_TOKENS
  const { thinking, effort } = writeThinking(request, { model: context.model, maxTokens, provider: context.provider, report })
  const isThinking = thinking?.['type'] === 'enabled' || thinking?.['type'] === 'adaptive'
  const format = request.outputFormat
  if (format?.type === 'json') report.dropField('outputFormat')
  const schema = format?.type === 'json_schema' ? { type: 'json_schema', schema: outputSchema(format.schema) } : null
  const outputConfig = withoutNulls({ effort, format: schema })
  const marked = tools.map(tool => writer.tool(tool))
  const system = [
    ...instructions.flatMap(part => writer.content(part)),
    ...format?.type === 'json' ? [{ type: 'text', text: JSON_ONLY }] : [],
  ]
  const body = withoutNulls({
    model: context.model,
    max_tokens: maxTokens,
    system: system.length === 0 ? null : system,
    messages: writer.messages(messages),
    tools: marked.length === 0 ? null : marked,
    tool_choice: marked.length === 0 ? null : choice,
    thinking,
    output_config: Object.keys(outputConfig).length === 0 ? null : outputConfig,
    stop_sequences: request.stopSequences.length === 0 ? null : request.stopSequences.filter(text => text.trim() !== ''),
    ...writeSampling(request, isThinking, report),
    service_tier: writeServiceTier(request.serviceTier, report),
    metadata: request.user === null ? null : { user_id: request.user },
    stream: request.stream ? true : null,
  })
  return { path: '/v1/messages', body: limitCacheMarks(body, report), headers: { 'anthropic-version': '2023-06-01' } }
}

class ContentWriter {
  readonly #context: WriteContext
  /** The upstream's id by the client's id. A client may use one id for two calls: the latest call counts. */
  readonly #ids = new Map<string, string>()
  readonly #used = new Set<string>()
  /** For each repeated id, the next suffix to try. */
  readonly #suffixes = new Map<string, number>()

  constructor(context: WriteContext) {
    this.#context = context
  }

  messages(messages: readonly Message[]): JsonObject[] {
    return writeTurns(messages, this.#report, part => this.content(part))
  }

  content(part: Part): JsonObject[] {
    return this.#block(part).map(block => part.cache === null ? block : { ...block, cache_control: writeMark(part.cache) })
  }

  tool(tool: Tool): JsonObject {
    const { name, description, strict, cache } = tool
    return withoutNulls({
      name, description, input_schema: toolSchema(tool), strict: strict === true ? true : null, cache_control: cache && writeMark(cache),
    })
  }

  #block(part: Part): JsonObject[] {
    switch (part.type) {
      case 'text':
      case 'refusal':
        // The API refuses text that is blank.
        return part.text.trim() === '' ? [] : [{ type: 'text', text: part.text }]
      case 'image': return [writeImage(part, this.#report)]
      case 'document': return [writeDocument(part, this.#report)]
      case 'audio': return this.#report.refuse(part.path, 'the target does not accept audio')
      case 'thinking': {
        const signature = valueFor(part.opaque, this.#context.provider)
        if (signature !== null) return [{ type: 'thinking', thinking: part.text, signature }]
        this.#report.drop(`${part.path}.thinking`)
        return []
      }
      case 'redacted_thinking': {
        const data = valueFor(part.opaque, this.#context.provider)
        if (data !== null) return [{ type: 'redacted_thinking', data }]
        this.#report.drop(`${part.path}.redacted_thinking`)
        return []
      }
      case 'tool_call': return [this.#toolUse(part)]
      case 'tool_result': return [this.#toolResult(part)]
    }
  }

  #toolUse(call: ToolCallPart): JsonObject {
    return { type: 'tool_use', id: this.#newId(call.id), name: call.name, input: writeArguments(call, this.#report) }
  }

  #toolResult({ callId, parts, isError }: ToolResultPart): JsonObject {
    const content = parts.flatMap(part => this.content(part))
    return withoutNulls({
      type: 'tool_result',
      tool_use_id: this.#ids.get(callId) ?? fittingToolId(callId, MESSAGES_TOOL_IDS),
      content: content.length === 0 ? null : content,
      is_error: isError ? true : null,
    })
  }

  /**
   * Makes the id of a call unique in the request. If the client used its id for several calls, a later result belongs to the latest of
   * them.
   */
  #newId(id: string): string {
    const fitting = fittingToolId(id, MESSAGES_TOOL_IDS)
    let unique = fitting
    let n = this.#suffixes.get(fitting) ?? 2
    for (; this.#used.has(unique); n++) unique = `${fitting}_${n}`
    this.#suffixes.set(fitting, n)
    this.#used.add(unique)
    this.#ids.set(id, unique)
    return unique
  }

  get #report(): TranslationReport {
    return this.#context.report
  }
}

function writeMark({ ttl }: CacheMark): JsonObject {
  return withoutNulls({ type: 'ephemeral', ttl })
}

function writeImage(image: ImagePart, report: TranslationReport): JsonObject {
  const { source, path } = image
  report.dropDetail(image)
  return { type: 'image', source: writeSource(source, path, report) }
}

function writeDocument({ source, name, path }: DocumentPart, report: TranslationReport): JsonObject {
  if (source.kind === 'text') return textDocument(source.text, name)
  if (source.kind === 'base64' && source.mediaType.startsWith('text/')) {
    return textDocument(Buffer.from(source.data, 'base64').toString('utf8'), name)
  }
  if (source.kind === 'base64' && source.mediaType !== 'application/pdf') {
    report.refuse(path, `the target accepts PDF and text, not ${source.mediaType}`)
  }
  return withoutNulls({ type: 'document', source: writeSource(source, path, report), title: name })
}

function textDocument(text: string, title: string | null): JsonObject {
  return withoutNulls({ type: 'document', source: { type: 'text', media_type: 'text/plain', data: text }, title })
}

function writeSource(source: MediaSource, path: string, report: TranslationReport): JsonObject {
  switch (source.kind) {
    case 'base64': return { type: 'base64', media_type: source.mediaType, data: source.data }
    case 'url': return { type: 'url', url: source.url }
    case 'file': return report.refuse(path, 'a file uploaded to one provider does not exist at another; send its content as base64')
  }
}

/** Leaves out the tools that the model may not call, because the protocol cannot restrict the choice to some of the tools. */
function writeToolChoice({ tools, toolChoice, parallelToolCalls }: NeutralRequest): { tools: readonly Tool[], choice: JsonObject | null } {
  const parallel = parallelToolCalls === false ? { disable_parallel_tool_use: true } : {}
  switch (toolChoice?.type) {
    case undefined: return { tools, choice: parallelToolCalls === false ? { type: 'auto', ...parallel } : null }
    case 'none': return { tools, choice: { type: 'none' } }
    case 'auto': return { tools, choice: { type: 'auto', ...parallel } }
    case 'required': return { tools, choice: { type: 'any', ...parallel } }
    case 'tools': {
      const { names, isForced } = toolChoice
      const [name] = names
      if (isForced && names.length === 1) return { tools, choice: { type: 'tool', name, ...parallel } }
      return { tools: namedTools(tools, names), choice: { type: isForced ? 'any' : 'auto', ...parallel } }
    }
  }
}

/** Drops sampling parameters if the model thinks, because the model then refuses them. */
function writeSampling({ temperature, topP, topK }: NeutralRequest, isThinking: boolean, report: TranslationReport): JsonObject {
  if (isThinking) {
    if (temperature !== null && temperature !== 1) report.dropField('temperature')
    if (topP !== null) report.dropField('topP')
    if (topK !== null) report.dropField('topK')
    return {}
  }
  return { temperature, top_p: topP, top_k: topK }
}

function writeServiceTier(tier: ServiceTier | null, report: TranslationReport): string | null {
  switch (tier) {
    case null: return null
    case 'auto':
    case 'priority': return 'auto'
    case 'default':
    case 'standard': return 'standard_only'
    case 'flex':
      report.dropField('serviceTier')
      return null
  }
}

/** Keeps the first mark and the last marks. Most requests share the prompt of the first mark; the last marks cover the longest prompts. */
function limitCacheMarks(body: JsonObject, report: TranslationReport): JsonObject {
  const marked: Record<string, unknown>[] = []
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) value.forEach(visit)
    const object = asObject(value)
    if (object === null) return
    if (object['cache_control'] !== undefined) marked.push(object)
    visit(object['content'])
  }
  for (const name of ['tools', 'system', 'messages']) visit(body[name])
  const surplus = marked.slice(1, Math.max(1, marked.length - MAX_CACHE_MARKS + 1))
  for (const object of surplus) delete object['cache_control']
  if (surplus.length > 0) report.drop('cache_control')
  return body
}
