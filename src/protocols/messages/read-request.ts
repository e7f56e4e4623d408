import { unseal } from '../neutral/capsule.ts'
import { reportOthers } from '../neutral/fields.ts'
import { asBoolean, asList, asNumber, asObject, asText } from '../neutral/json.ts'
import type { JsonObject } from '../neutral/json.ts'
import type { OpaqueValue } from '../neutral/opaque.ts'
import type { TranslationReport } from '../neutral/report.ts'
import { EMPTY_REQUEST } from '../neutral/request.ts'
import type {
  CacheMark, MediaSource, Message, NeutralRequest, OutputFormat, Part, Reasoning, Role, ServiceTier, Tool, ToolChoice,
  ToolResultPart,
} from '../neutral/request.ts'
import type { FieldTable, ReadContext } from '../neutral/translation.ts'

/** The fields of a request (https://docs.anthropic.com/en/api/messages), with those behind beta headers. */
export const MESSAGES_FIELDS = {
  model: 'model',
  stream: 'stream',
  messages: 'messages',
  system: 'messages',
  max_tokens: 'maxOutputTokens',
  stop_sequences: 'stopSequences',
  temperature: 'temperature',
  top_p: 'topP',
  top_k: 'topK',
  tools: 'tools',
  tool_choice: 'toolChoice',
  thinking: 'reasoning',
  'output_config.effort': 'reasoning',
  'output_config.format': 'outputFormat',
  'output_config.task_budget': 'dropped',
  output_format: 'outputFormat',
  service_tier: 'serviceTier',
  'metadata.user_id': 'user',
  cache_control: 'dropped',
  betas: 'ignored',
  billing_policy: 'dropped',
  compaction: 'dropped',
  container: { to: 'refused', why: 'a container is at one provider' },
  context_management: 'dropped',
  diagnostics: 'dropped',
  fallback_credit_token: 'dropped',
  fallbacks: 'dropped',
  inference_geo: 'dropped',
  mcp_servers: { to: 'refused', why: 'the provider itself calls these servers' },
  speed: { to: 'dropped', unless: ['standard'] },
  thread: { to: 'refused', why: 'a thread is at one provider' },
  user_profile_id: 'dropped',
  workspace_id: 'dropped',
} as const satisfies FieldTable

const CONTENT = 'messages[].content[]'

/** Reads the body of a messages request. */
export function readMessagesRequest(body: JsonObject, { report }: ReadContext): NeutralRequest {
  const reader = new ContentReader(report)
  const system = reader.parts(body['system'], 'system')
  const choice = asObject(body['tool_choice'])
  return {
    ...EMPTY_REQUEST,
    stream: body['stream'] === true,
    messages: [
      ...system.length === 0 ? [] : [{ role: 'system', parts: system, name: null } as const],
      ...report.conversationOf(body['messages'], 'messages').map(message => reader.message(message)),
    ],
    tools: report.objectsOf(body['tools'], 'tools').flatMap(tool => readTool(tool, report)),
    toolChoice: readToolChoice(choice),
    parallelToolCalls: choice?.['disable_parallel_tool_use'] === true ? false : null,
    outputFormat: readOutputFormat(body),
    maxOutputTokens: asNumber(body['max_tokens']),
    stopSequences: asList(body['stop_sequences']).filter(item => typeof item === 'string'),
    temperature: asNumber(body['temperature']),
    topP: asNumber(body['top_p']),
    topK: asNumber(body['top_k']),
    reasoning: readReasoning(body),
    serviceTier: readServiceTier(asText(body['service_tier'])),
    user: asText(asObject(body['metadata'])?.['user_id']),
  }
}

/** Reads messages in their order: a tool result gets the name of the call before it. */
class ContentReader {
  readonly #report: TranslationReport
  readonly #toolNames = new Map<string, string>()

  constructor(report: TranslationReport) {
    this.#report = report
  }

  message(message: JsonObject): Message {
    return { role: roleOf(message['role']), parts: this.parts(message['content'], CONTENT), name: null }
  }

  /** @param content text, or a list of blocks */
  parts(content: unknown, path: string): Part[] {
    if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content, path, cache: null, opaque: null }]
    return this.#report.objectsOf(content, path.replace(/\[\]$/, '')).flatMap(block => this.#part(block, path))
  }

  #part(block: JsonObject, path: string): Part[] {
    const base = { path, cache: cacheMarkOf(block) }
    switch (block['type']) {
      case 'text':
        if (asList(block['citations']).length > 0) this.#report.drop(`${path}.citations`)
        return [{ ...base, type: 'text', text: asText(block['text']) ?? '', opaque: null }]
      case 'image':
        return this.#media(block, path).map(source => ({ ...base, type: 'image', source, detail: null }))
      case 'document':
        return this.#document(block, path)
      case 'search_result':
        return [{ ...base, type: 'text', text: searchResultText(block), opaque: null }]
      case 'thinking':
        return [{ ...base, type: 'thinking', text: asText(block['thinking']) ?? '', opaque: readOpaque(block['signature']) }]
      case 'redacted_thinking': {
        const opaque = readOpaque(block['data'])
        return opaque === null ? [] : [{ ...base, type: 'redacted_thinking', opaque }]
      }
      case 'tool_use':
        return [this.#toolCall(block, path)]
      case 'tool_result':
        return [this.#toolResult(block, path)]
      default:
        // Calls and results of tools that the provider runs itself, and what is new.
        this.#report.drop(`${path}.${asText(block['type']) ?? 'type'}`)
        return []
    }
  }

  #toolCall(block: JsonObject, path: string): Part {
    const { id, opaque } = readToolId(block['id'])
    const name = asText(block['name']) ?? ''
    this.#toolNames.set(id, name)
    const input = JSON.stringify(block['input'] ?? {})
    return { type: 'tool_call', path, cache: cacheMarkOf(block), id, name, arguments: input, isFreeform: false, opaque }
  }

  #toolResult(block: JsonObject, path: string): ToolResultPart {
    const { id } = readToolId(block['tool_use_id'])
    const parts = this.parts(block['content'], `${path}.content[]`).filter(isResultPart)
    return {
      type: 'tool_result', path, cache: cacheMarkOf(block), callId: id, name: this.#toolNames.get(id) ?? '',
      isFreeform: false, parts, isError: block['is_error'] === true,
    }
  }

  #document(block: JsonObject, path: string): Part[] {
    const base = { path, cache: cacheMarkOf(block), type: 'document', name: asText(block['title']) } as const
    if (asObject(block['citations'])?.['enabled'] === true) this.#report.drop(`${path}.citations`)
    const source = asObject(block['source'])
    const text = (value: string): Part => ({ ...base, source: { kind: 'text', text: value } })
    const context = asText(block['context'])
    const before = context === null ? [] : [{ ...base, type: 'text', text: context, opaque: null } as const]
    if (source?.['type'] === 'text') return [...before, text(asText(source['data']) ?? '')]
    if (source?.['type'] === 'content') {
      const content = this.parts(source['content'], `${path}.source.content[]`)
      return [...before, ...content]
    }
    return [...before, ...this.#media(block, path).map(media => ({ ...base, source: media }))]
  }

  #media(block: JsonObject, path: string): MediaSource[] {
    const source = asObject(block['source'])
    const mediaType = asText(source?.['media_type'])
    switch (source?.['type']) {
      case 'base64':
        return [{ kind: 'base64', mediaType: mediaType ?? 'application/octet-stream', data: asText(source['data']) ?? '' }]
      case 'url':
        return [{ kind: 'url', url: asText(source['url']) ?? '', mediaType }]
      case 'file':
        return [{ kind: 'file', id: asText(source['file_id']) ?? '', mediaType }]
      default:
        this.#report.drop(`${path}.source`)
        return []
    }
  }
}

function isResultPart(part: Part): part is ToolResultPart['parts'][number] {
  return part.type === 'text' || part.type === 'image' || part.type === 'document' || part.type === 'audio'
}

function roleOf(role: unknown): Role {
  return role === 'assistant' || role === 'system' ? role : 'user'
}

function cacheMarkOf(block: JsonObject): CacheMark | null {
  const control = asObject(block['cache_control'])
  return control === null ? null : { ttl: asText(control['ttl']) }
}

/** A signature, or `data` of redacted thinking: the client's own provider made it, or it came through a gateway. */
function readOpaque(value: unknown): OpaqueValue | null {
  if (typeof value !== 'string' || value === '') return null
  const capsule = unseal(value)
  return capsule === null ? { provider: null, value } : capsule.opaque
}

function readToolId(value: unknown): { readonly id: string, readonly opaque: OpaqueValue | null } {
  const id = asText(value) ?? ''
  const capsule = unseal(id)
  return { id: capsule?.id ?? id, opaque: capsule?.opaque ?? null }
}

function searchResultText(block: JsonObject): string {
  const texts = asList(block['content']).map(item => asText(asObject(item)?.['text']) ?? '')
  return [asText(block['title']), asText(block['source']), ...texts].filter(text => text !== null && text !== '').join('\n')
}

/** Of a tool: every tool is loaded, and its input comes as the upstream streams it. */
const TOOL_MEMBERS = new Set(['type', 'name', 'description', 'input_schema', 'strict', 'cache_control', 'defer_loading', 'eager_input_streaming'])

function readTool(tool: JsonObject, report: TranslationReport): Tool[] {
  const schema = asObject(tool['input_schema'])
  if (schema === null) {
    // A tool that the provider runs itself, or knows the schema of.
    report.drop(`tools[].${asText(tool['type']) ?? 'type'}`)
    return []
  }
  reportOthers(tool, TOOL_MEMBERS, 'tools[]', report)
  return [{
    name: asText(tool['name']) ?? '',
    description: asText(tool['description']),
    parameters: schema,
    strict: asBoolean(tool['strict']),
    freeform: null,
    namespaced: null,
    isToolSearch: false,
    cache: cacheMarkOf(tool),
    path: 'tools[]',
  }]
}

function readToolChoice(choice: JsonObject | null): ToolChoice | null {
  switch (choice?.['type']) {
    case 'auto':
    case 'none':
      return { type: choice['type'] }
    case 'any':
      return { type: 'required' }
    case 'tool':
      return { type: 'tools', names: [asText(choice['name']) ?? ''], isForced: true }
    default:
      return null
  }
}

function readOutputFormat(body: JsonObject): OutputFormat | null {
  const format = asObject(asObject(body['output_config'])?.['format']) ?? asObject(body['output_format'])
  const schema = asObject(format?.['schema'])
  return schema === null ? null : { type: 'json_schema', name: null, description: null, schema, strict: true }
}

function readReasoning(body: JsonObject): Reasoning | null {
  const thinking = asObject(body['thinking'])
  const effort = asText(asObject(body['output_config'])?.['effort'])
  if (thinking === null && effort === null) return null
  const type = asText(thinking?.['type'])
  const display = asText(thinking?.['display'])
  return {
    enabled: type === null ? null : type !== 'disabled',
    effort,
    budgetTokens: asNumber(thinking?.['budget_tokens']),
    showText: display === null ? null : display !== 'omitted',
  }
}

function readServiceTier(tier: string | null): ServiceTier | null {
  if (tier === null) return null
  return tier === 'standard_only' ? 'standard' : 'auto'
}
