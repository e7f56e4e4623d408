import { BodyObject } from '../neutral/dialects/body-object.ts'
import type { CapsuleReader } from '../neutral/capsule.ts'
import type { JsonObject } from '../neutral/json.ts'
import { registeredType } from '../neutral/media-type.ts'
import type { OpaqueValue } from '../neutral/opaque.ts'
import { EFFORTS, EMPTY_REQUEST } from '../neutral/request.ts'
import type {
  CacheMark, MediaSource, Message, NeutralRequest, OutputFormat, Part, Reasoning, ServiceTier, Tool, ToolChoice, ToolResultPart,
} from '../neutral/request.ts'
import type { FieldTable, ReadContext } from '../neutral/translation.ts'
import { fitsStrict } from './output-schema.ts'

/** The fields of a request, and what each means (https://docs.anthropic.com/en/api/messages), including fields that need beta headers. */
export const MESSAGES_FIELDS = {
  model: 'model', stream: 'stream', messages: 'messages', system: 'messages',
  max_tokens: 'maxOutputTokens', stop_sequences: 'stopSequences', temperature: 'temperature', top_p: 'topP', top_k: 'topK',
  tools: 'tools', tool_choice: 'toolChoice', thinking: 'reasoning',
  'output_config.effort': 'reasoning', 'output_config.format': 'outputFormat', 'output_config.task_budget': 'dropped',
  output_format: 'outputFormat', service_tier: 'serviceTier', 'metadata.user_id': 'user',
  cache_control: 'dropped', betas: 'ignored', billing_policy: 'dropped', compaction: 'dropped',
  container: { to: 'refused', why: 'a container is at one provider' },
  context_management: 'dropped', diagnostics: 'dropped', fallback_credit_token: 'dropped', fallbacks: 'dropped', inference_geo: 'dropped',
  mcp_servers: { to: 'refused', why: 'the provider itself calls these servers' },
  speed: { to: 'dropped', unless: ['standard'] },
  thread: { to: 'refused', why: 'a thread is at one provider' },
  user_profile_id: 'dropped', workspace_id: 'dropped',
} as const satisfies FieldTable

const CONTENT = 'messages[].content[]'

export function readMessagesRequest(given: JsonObject, { report, capsules }: ReadContext): NeutralRequest {
  const body = new BodyObject(given, '', report)
  const reader = new ContentReader(capsules)
  const system = reader.parts(body, 'system', 'system')
  const choice = body.object('tool_choice')
  const output = body.object('output_config')
  return {
    ...EMPTY_REQUEST,
    stream: body.boolean('stream') ?? false,
    messages: [
      ...system.length === 0 ? [] : [{ role: 'system', parts: system, name: null } as const],
      ...body.conversation('messages').map(message => reader.message(message)),
    ],
    tools: body.objects('tools').flatMap(readTool),
    toolChoice: readToolChoice(choice),
    parallelToolCalls: choice?.boolean('disable_parallel_tool_use') === true ? false : null,
    outputFormat: readOutputFormat(output?.object('format') ?? body.object('output_format')),
    maxOutputTokens: body.number('max_tokens'),
    stopSequences: body.texts('stop_sequences'),
    temperature: body.number('temperature'), topP: body.number('top_p'), topK: body.number('top_k'),
    reasoning: readReasoning(body.object('thinking'), output?.known('effort', EFFORTS) ?? null),
    serviceTier: readServiceTier(body.known('service_tier', ['auto', 'standard_only'])),
    user: body.object('metadata')?.text('user_id') ?? null,
  }
}

const ROLES = ['user', 'assistant', 'system'] as const

/** Reads messages in order, so that a tool result gets the name of the call that precedes it. */
class ContentReader {
  readonly #toolNames = new Map<string, string>()
  readonly #capsules: CapsuleReader

  constructor(capsules: CapsuleReader) {
    this.#capsules = capsules
  }

  message(message: BodyObject): Message {
    return { role: message.word('role', ROLES) ?? 'user', parts: this.parts(message, 'content', CONTENT), name: null }
  }

  /** @param name the member that contains text or blocks */
  parts(object: BodyObject, name: string, path: string): Part[] {
    const content = object.content(name)
    if (typeof content !== 'string') return content.flatMap(block => this.#part(block, path))
    return content === '' ? [] : [{ type: 'text', text: content, path, cache: null, opaque: null }]
  }

  #part(block: BodyObject, path: string): Part[] {
    const type = block.text('type')
    switch (type) {
      case 'text': return [{ ...baseOf(block, path), type, text: block.text('text') ?? '', opaque: null }]
      case 'image': return readMedia(block, block.object('source')).map(source => ({ ...baseOf(block, path), type, source, detail: null }))
      case 'document': return this.#document(block, path)
      case 'search_result': return [{ ...baseOf(block, path), type: 'text', text: searchResultText(block), opaque: null }]
      case 'thinking':
        return [{ ...baseOf(block, path), type, text: block.text('thinking') ?? '', opaque: this.#opaque(block.text('signature'), `${path}.signature`) }]
      case 'redacted_thinking': {
        const opaque = this.#opaque(block.text('data'), `${path}.data`)
        return opaque === null ? [] : [{ ...baseOf(block, path), type, opaque }]
      }
      case 'compaction': {
        const summary = block.text('content')
        // Only the provider that wrote these members can read them. The text is in `content`.
        block.ignore('encrypted_content', 'signature')
        if (summary !== null) return [{ ...baseOf(block, path), type: 'text', text: summary, opaque: null }]
        block.dropWhole(type)
        return []
      }
      case 'tool_use': return [this.#toolCall(block, path)]
      case 'tool_result': return [this.#toolResult(block, path)]
      default:
        // Drops calls and results of the provider's own tools, and blocks of unknown types.
        block.dropWhole(type)
        return []
    }
  }

  #toolCall(block: BodyObject, path: string): Part {
    const given = block.text('id') ?? ''
    const capsule = this.#capsules.open('tool_id', given, `${path}.id`)
    const id = capsule?.id ?? given
    const name = block.text('name') ?? ''
    this.#toolNames.set(id, name)
    const input = JSON.stringify(block.json('input') ?? {})
    return { ...baseOf(block, path), type: 'tool_call', id, name, arguments: input, isFreeform: false, opaque: capsule?.opaque ?? null }
  }

  #toolResult(block: BodyObject, path: string): ToolResultPart {
    const id = this.#capsules.toolId(block.text('tool_use_id') ?? '', `${path}.tool_use_id`)
    const parts = this.parts(block, 'content', `${path}.content[]`).filter(isResultPart)
    return {
      ...baseOf(block, path), type: 'tool_result', callId: id, name: this.#toolNames.get(id) ?? '',
      isFreeform: false, parts, isError: block.boolean('is_error') ?? false,
    }
  }

  /** Reads a signature, or the `data` of redacted thinking. The value is from the provider itself, or is a capsule of a gateway. */
  #opaque(value: string | null, field: string): OpaqueValue | null {
    if (value === null || value === '') return null
    const capsule = this.#capsules.open('opaque_value', value, field)
    return capsule === null ? { provider: null, value } : capsule.opaque
  }

  #document(block: BodyObject, path: string): Part[] {
    const base = { ...baseOf(block, path), type: 'document', name: block.text('title') } as const
    reportCitations(block)
    const context = block.text('context')
    const before = context === null ? [] : [{ ...base, type: 'text', text: context, opaque: null } as const]
    const source = block.object('source')
    if (source?.value('type') === 'content') return [...before, ...this.parts(source, 'content', `${path}.source.content[]`)]
    if (source?.value('type') === 'text') {
      // `media_type` can be ignored, because it is always plain text.
      source.ignore('media_type')
      return [...before, { ...base, source: { kind: 'text', text: source.text('data') ?? '' } }]
    }
    return [...before, ...readMedia(block, source).map(media => ({ ...base, source: media }))]
  }
}

function baseOf(block: BodyObject, path: string): { readonly path: string, readonly cache: CacheMark | null } {
  return { path, cache: cacheMarkOf(block) }
}

function readMedia(block: BodyObject, source: BodyObject | null): MediaSource[] {
  const type = source?.text('type')
  const written = source?.text('media_type') ?? null
  const mediaType = written && registeredType(written)
  switch (type) {
    case 'base64': return [{ kind: 'base64', mediaType: mediaType ?? 'application/octet-stream', data: source?.text('data') ?? '' }]
    case 'url': return [{ kind: 'url', url: source?.text('url') ?? '', mediaType }]
    case 'file': return [{ kind: 'file', id: source?.text('file_id') ?? '', mediaType }]
    default:
      if (source === null) block.drop('source')
      source?.dropWhole(type ?? null)
      return []
  }
}

/** Reports citations only if they are turned on: `citations` may be present but turned off. */
function reportCitations(block: BodyObject): void {
  if (block.object('citations')?.boolean('enabled') === true) block.drop('citations')
}

function isResultPart(part: Part): part is ToolResultPart['parts'][number] {
  return part.type === 'text' || part.type === 'image' || part.type === 'document' || part.type === 'audio'
}

function cacheMarkOf(block: BodyObject): CacheMark | null {
  const control = block.object('cache_control')
  // `type` can be ignored, because it has only one value.
  control?.ignore('type')
  return control && { ttl: control.known('ttl', ['5m', '1h']) }
}

function searchResultText(block: BodyObject): string {
  reportCitations(block)
  const texts = block.objects('content').map(item => {
    item.ignore('type')
    return item.text('text')
  })
  return [block.text('title'), block.text('source'), ...texts].filter(text => text !== null && text !== '').join('\n')
}

function readTool(tool: BodyObject): Tool[] {
  const parameters = tool.json('input_schema')
  if (parameters === null) {
    // Drops a tool that the provider itself runs, or whose schema only the provider knows.
    tool.dropWhole(tool.text('type'))
    return []
  }
  // Ignores members that have no effect: all tools are loaded, and inputs arrive as the upstream streams them.
  tool.ignore('type', 'defer_loading', 'eager_input_streaming')
  return [{
    name: tool.text('name') ?? '', description: tool.text('description'), parameters, strict: readStrict(tool, parameters),
    freeform: null, namespaced: null, isToolSearch: false, cache: cacheMarkOf(tool), path: 'tools[]',
  }]
}

function readStrict(tool: BodyObject, parameters: JsonObject): boolean | null {
  const strict = tool.boolean('strict')
  if (strict !== true || fitsStrict(parameters)) return strict
  tool.drop('strict')
  return null
}

function readToolChoice(choice: BodyObject | null): ToolChoice | null {
  const type = choice?.word('type', ['auto', 'none', 'any', 'tool']) ?? null
  switch (type) {
    case 'any': return { type: 'required' }
    case 'tool': return { type: 'tools', names: [choice?.text('name') ?? ''], isForced: true }
    default: return type && { type }
  }
}

function readOutputFormat(format: BodyObject | null): OutputFormat | null {
  // `type` can be ignored, because it has only one value.
  format?.ignore('type')
  const schema = format?.json('schema') ?? null
  return schema && { type: 'json_schema', name: null, description: null, schema, strict: fitsStrict(schema) }
}

function readReasoning(thinking: BodyObject | null, effort: string | null): Reasoning | null {
  const type = thinking?.known('type', ['enabled', 'adaptive', 'between_tools', 'disabled']) ?? null
  const display = thinking?.known('display', ['summarized', 'omitted']) ?? null
  const budgetTokens = thinking?.number('budget_tokens') ?? null
  if (type === null && effort === null && display === null && budgetTokens === null) return null
  return { enabled: type && type !== 'disabled', effort, budgetTokens, showText: display && display !== 'omitted' }
}

function readServiceTier(tier: 'auto' | 'standard_only' | null): ServiceTier | null {
  return tier === 'standard_only' ? 'standard' : tier
}
