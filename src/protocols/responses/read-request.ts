import { BodyObject } from '../neutral/dialects/body-object.ts'
import type { CapsuleReader, CarriedThinking } from '../neutral/capsule.ts'
import type { JsonObject } from '../neutral/json.ts'
import {
  IMAGE_DETAILS, REASONING_SUMMARIES, VERBOSITIES, cacheMarkOf, readAudio, readOutputSchema, readServiceTier, urlSource,
} from '../neutral/dialects/openai-request.ts'
import type { OpaqueValue } from '../neutral/opaque.ts'
import { EFFORTS, EMPTY_REQUEST } from '../neutral/request.ts'
import type { MediaSource, Message, NeutralRequest, OutputFormat, Part, Reasoning, Role, TextPart, ToolResultPart } from '../neutral/request.ts'
import type { FieldTable, ReadContext } from '../neutral/translation.ts'
import { toolName } from './namespaces.ts'
import { TOOL_SEARCH, addedTools, foundTools, readToolChoice, readTools } from './read-tools.ts'

const STORED = 'it names something that one provider has stored; send the conversation itself'

/** The fields of a request, and what each means (https://platform.openai.com/docs/api-reference/responses/create). */
export const RESPONSES_FIELDS = {
  model: 'model', stream: 'stream', 'stream_options.include_obfuscation': 'ignored', input: 'messages', instructions: 'messages',
  max_output_tokens: 'maxOutputTokens', temperature: 'temperature', top_p: 'topP',
  tools: 'tools', tool_choice: 'toolChoice', parallel_tool_calls: 'parallelToolCalls',
  'text.format': 'outputFormat', 'text.verbosity': 'verbosity',
  'reasoning.effort': 'reasoning', 'reasoning.summary': 'reasoning', 'reasoning.generate_summary': 'reasoning',
  'reasoning.context': { to: 'dropped', unless: ['auto'] }, 'reasoning.mode': { to: 'dropped', unless: ['standard'] },
  service_tier: 'serviceTier', safety_identifier: 'user', user: 'user', metadata: 'metadata',
  prompt_cache_key: 'cacheKey', prompt_cache_options: 'dropped', prompt_cache_retention: 'dropped',
  // The gateway always includes encrypted reasoning.
  include: { to: 'dropped', unless: [[], ['reasoning.encrypted_content']] },
  store: { to: 'dropped', unless: [false] },
  background: { to: 'refused', unless: [false], why: 'the target responds at once alone' },
  conversation: { to: 'refused', why: STORED },
  previous_response_id: { to: 'refused', why: STORED },
  prompt: { to: 'refused', why: STORED },
  access_programs: 'dropped', context_management: 'dropped', image: 'dropped', max_tool_calls: 'dropped', moderation: 'dropped',
  top_logprobs: { to: 'dropped', unless: [0] }, truncation: { to: 'dropped', unless: ['disabled'] },
} as const satisfies FieldTable

export function readResponsesRequest(given: JsonObject, { report, capsules }: ReadContext): NeutralRequest {
  const body = new BodyObject(given, '', report)
  const text = body.object('text')
  const instructions = body.text('instructions')
  const input = body.content('input')
  const user = body.text('user')
  return {
    ...EMPTY_REQUEST,
    stream: body.boolean('stream') ?? false,
    messages: [
      ...instructions === null ? [] : [{ role: 'system', name: null, parts: [textPart(instructions, 'instructions')] } as const],
      ...new InputReader(capsules).messages(input),
    ],
    tools: readTools([...body.objects('tools'), ...typeof input === 'string' ? [] : addedTools(input)]),
    toolChoice: readToolChoice(body),
    parallelToolCalls: body.boolean('parallel_tool_calls'),
    outputFormat: readOutputFormat(text?.object('format') ?? null),
    maxOutputTokens: body.number('max_output_tokens'),
    temperature: body.number('temperature'),
    topP: body.number('top_p'),
    reasoning: readReasoning(body.object('reasoning')),
    serviceTier: readServiceTier(body),
    verbosity: text?.known('verbosity', VERBOSITIES) ?? null,
    user: body.text('safety_identifier') ?? user,
    metadata: body.record('metadata'),
    cacheKey: body.text('prompt_cache_key'),
  }
}

const ROLES = ['system', 'developer', 'user', 'assistant'] as const

/** Reads the items of a conversation. Consecutive items of the user become one message; so do consecutive items of the assistant. */
class InputReader {
  readonly #messages: { readonly role: Role, readonly name: null, readonly parts: Part[] }[] = []
  readonly #calls = new Map<string, { readonly name: string, readonly isFreeform: boolean }>()
  /** Opaque values by the call's id. Each value is from the reasoning item before the call. */
  readonly #opaque = new Map<string, OpaqueValue>()
  readonly #capsules: CapsuleReader

  constructor(capsules: CapsuleReader) {
    this.#capsules = capsules
  }

  messages(input: string | readonly BodyObject[]): readonly Message[] {
    if (typeof input === 'string') this.#add('user', [textPart(input, 'input')])
    else for (const item of input) this.#item(item)
    return this.#messages
  }

  #add(role: Role, parts: readonly Part[]): void {
    const last = this.#messages.at(-1)
    if (last?.role === role && (role === 'assistant' || role === 'user')) for (const part of parts) last.parts.push(part)
    else this.#messages.push({ role, name: null, parts: [...parts] })
  }

  #item(item: BodyObject): void {
    // Ignores members that have no meaning for the model.
    item.ignore('id', 'status', 'internal_chat_message_metadata_passthrough')
    const type = item.text('type') ?? (item.value('role') === null && item.value('id') !== null ? 'item_reference' : 'message')
    switch (type) {
      case 'message': return this.#add(item.word('role', ROLES) ?? 'user', contentOf(item, 'content', 'input[].content[]'))
      case 'agent_message':
        // An item of Codex: the task or the result of a sub-agent (codex-rs, ResponseItem::AgentMessage).
        item.ignore('author', 'recipient', 'metadata')
        return this.#add('user', contentOf(item, 'content', 'input[].content[]'))
      case 'reasoning': return this.#add('assistant', this.#reasoning(item))
      case 'function_call': return this.#add('assistant', [this.#call(item, toolName(item), item.text('arguments') ?? '', false)])
      case 'custom_tool_call': return this.#add('assistant', [this.#call(item, toolName(item), item.text('input') ?? '', true)])
      case 'tool_search_call':
        item.ignore('execution')
        return this.#add('assistant', [this.#call(item, TOOL_SEARCH, JSON.stringify(item.value('arguments') ?? {}), false)])
      case 'tool_search_output':
        item.ignore('execution')
        return this.#add('user', [this.#result(item, [textPart(foundTools(item.objects('tools')), OUTPUT)])])
      case 'function_call_output':
      case 'custom_tool_call_output':
        return this.#add('user', [this.#result(item, contentOf(item, 'output', OUTPUT).filter(isResultPart))])
      // The tools in this item are read together with the request's tools.
      case 'additional_tools': return item.ignore('role')
      case 'item_reference': return item.refuse('type', STORED)
      case 'compaction_trigger': return item.refuse('type', 'the target cannot compact a conversation; ask for a summary instead')
      case 'compaction':
      case 'compaction_summary': return item.refuse('type', 'its provider alone reads the conversation in it; send the conversation itself')
      default: item.dropWhole(type)
    }
  }

  /** Reads reasoning. The provider encrypted the reasoning, or a gateway sealed it in a capsule. */
  #reasoning(item: BodyObject): Part[] {
    const path = 'input[].reasoning'
    const encrypted = item.text('encrypted_content')
    const capsule = encrypted === null ? null : this.#capsules.open('opaque_value', encrypted, 'input[].encrypted_content')
    const text = [...item.objects('summary'), ...item.objects('content')].map(part => {
      part.ignore('type')
      return part.text('text') ?? ''
    }).join('\n\n')
    if (capsule === null) {
      const opaque = encrypted === null ? null : { provider: null, value: encrypted }
      return text === '' && opaque === null ? [] : [{ type: 'thinking', path, cache: null, text, opaque }]
    }
    if (capsule.id !== null && capsule.opaque !== null) this.#opaque.set(capsule.id, capsule.opaque)
    return capsule.thinking.flatMap(carried => thinkingPart(carried, path))
  }

  #call(item: BodyObject, name: string, input: string, isFreeform: boolean): Part {
    const id = item.text('call_id') ?? ''
    const opaque = this.#opaque.get(id) ?? null
    // Only the first call with an id gets the value: if ids are repeated, the value must not be repeated.
    this.#opaque.delete(id)
    this.#calls.set(id, { name, isFreeform })
    return {
      type: 'tool_call', path: `input[].${isFreeform ? 'custom_tool_call' : 'function_call'}`, cache: null, id, name, isFreeform,
      arguments: input, opaque,
    }
  }

  #result(item: BodyObject, parts: ToolResultPart['parts']): ToolResultPart {
    const callId = item.text('call_id') ?? ''
    const call = this.#calls.get(callId)
    return {
      type: 'tool_result', path: 'input[].output', cache: null, callId, name: call?.name ?? toolName(item),
      isFreeform: call?.isFreeform ?? false, isError: false, parts,
    }
  }
}

const OUTPUT = 'input[].output[]'

/** @param name the member that contains text or parts */
function contentOf(item: BodyObject, name: string, path: string): Part[] {
  const content = item.content(name)
  if (typeof content !== 'string') return content.flatMap(part => readPart(part, path))
  return content === '' ? [] : [textPart(content, path)]
}

/** Matches a Fernet token, which is OpenAI's format for encrypted text (https://github.com/fernet/spec). */
const CIPHERTEXT = /^gAAAA[\w-]+={0,2}$/

function readPart(part: BodyObject, path: string): Part[] {
  const base = { path, cache: cacheMarkOf(part) }
  const type = part.text('type')
  switch (type) {
    case 'input_text':
    case 'output_text':
    case 'summary_text':
    case 'text': return [{ ...base, type: 'text', text: part.text('text') ?? '', opaque: null }]
    case 'refusal': return [{ ...base, type, text: part.text('refusal') ?? '' }]
    case 'encrypted_content': {
      // An agent of Codex sends this part. OpenAI's own models encrypt the content; other models write plain text.
      const text = part.text('encrypted_content') ?? ''
      if (!CIPHERTEXT.test(text)) return [{ ...base, type: 'text', text, opaque: null }]
      part.dropWhole(type)
      return []
    }
    case 'input_image':
      return [{ ...base, type: 'image', source: mediaSource(part, part.text('image_url')), detail: part.known('detail', IMAGE_DETAILS) }]
    case 'input_file': {
      const url = part.text('file_url')
      return [{ ...base, type: 'document', source: mediaSource(part, part.text('file_data') ?? url), name: part.text('filename') }]
    }
    case 'input_audio': return [{ ...base, type: 'audio', source: readAudio(part) }]
    default:
      part.dropWhole(type)
      return []
  }
}

function textPart(text: string, path: string): TextPart {
  return { type: 'text', path, cache: null, text, opaque: null }
}

function thinkingPart({ text, opaque }: CarriedThinking, path: string): Part[] {
  if (text !== null) return [{ type: 'thinking', path, cache: null, text, opaque }]
  return opaque === null ? [] : [{ type: 'redacted_thinking', path, cache: null, opaque }]
}

function isResultPart(part: Part): part is ToolResultPart['parts'][number] {
  return part.type === 'text' || part.type === 'image' || part.type === 'document' || part.type === 'audio'
}

function mediaSource(part: BodyObject, url: string | null): MediaSource {
  const id = part.text('file_id')
  return url === null ? { kind: 'file', id: id ?? '', mediaType: null } : urlSource(url)
}

function readOutputFormat(format: BodyObject | null): OutputFormat | null {
  switch (format?.word('type', ['text', 'json_object', 'json_schema'])) {
    case 'text': return { type: 'text' }
    case 'json_object': return { type: 'json' }
    case 'json_schema': return format && readOutputSchema(format)
    default: return null
  }
}

function readReasoning(reasoning: BodyObject | null): Reasoning | null {
  const effort = reasoning?.known('effort', EFFORTS) ?? null
  const older = reasoning?.known('generate_summary', REASONING_SUMMARIES) ?? null
  const summary = reasoning?.known('summary', REASONING_SUMMARIES) ?? older
  if (effort === null && summary === null) return null
  const isOff = effort === 'none'
  return { enabled: isOff ? false : null, effort: isOff ? null : effort, budgetTokens: null, showText: summary === null ? null : true }
}
