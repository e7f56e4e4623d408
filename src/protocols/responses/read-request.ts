import { unseal } from '../neutral/capsule.ts'
import type { CarriedThinking } from '../neutral/capsule.ts'
import { asBoolean, asList, asNumber, asObject, asText } from '../neutral/json.ts'
import type { JsonObject } from '../neutral/json.ts'
import { cacheMarkOf, readMetadata, readServiceTier, urlSource } from '../neutral/openai-request.ts'
import type { OpaqueValue } from '../neutral/opaque.ts'
import type { TranslationReport } from '../neutral/report.ts'
import { EMPTY_REQUEST } from '../neutral/request.ts'
import type {
  MediaSource, Message, NeutralRequest, OutputFormat, Part, Reasoning, Role, ToolResultPart,
} from '../neutral/request.ts'
import type { FieldTable, ReadContext } from '../neutral/translation.ts'
import { toolName } from './namespaces.ts'
import { TOOL_SEARCH, addedTools, foundTools, readToolChoice, readTools } from './read-tools.ts'

const STORED = 'it names something that one provider has stored; send the conversation itself'

/** The fields of a request (https://platform.openai.com/docs/api-reference/responses/create). */
export const RESPONSES_FIELDS = {
  model: 'model',
  stream: 'stream',
  'stream_options.include_obfuscation': 'ignored',
  input: 'messages',
  instructions: 'messages',
  max_output_tokens: 'maxOutputTokens',
  temperature: 'temperature',
  top_p: 'topP',
  tools: 'tools',
  tool_choice: 'toolChoice',
  parallel_tool_calls: 'parallelToolCalls',
  'text.format': 'outputFormat',
  'text.verbosity': 'verbosity',
  'reasoning.effort': 'reasoning',
  'reasoning.summary': 'reasoning',
  'reasoning.generate_summary': 'reasoning',
  'reasoning.context': { to: 'dropped', unless: ['auto'] },
  'reasoning.mode': { to: 'dropped', unless: ['standard'] },
  service_tier: 'serviceTier',
  safety_identifier: 'user',
  user: 'user',
  metadata: 'metadata',
  prompt_cache_key: 'cacheKey',
  prompt_cache_options: 'dropped',
  prompt_cache_retention: 'dropped',
  // Encrypted reasoning is always there.
  include: { to: 'dropped', unless: [[], ['reasoning.encrypted_content']] },
  store: { to: 'dropped', unless: [false] },
  background: { to: 'refused', unless: [false], why: 'the target responds at once alone' },
  conversation: { to: 'refused', why: STORED },
  previous_response_id: { to: 'refused', why: STORED },
  prompt: { to: 'refused', why: STORED },
  access_programs: 'dropped',
  context_management: 'dropped',
  image: 'dropped',
  max_tool_calls: 'dropped',
  moderation: 'dropped',
  top_logprobs: { to: 'dropped', unless: [0] },
  truncation: { to: 'dropped', unless: ['disabled'] },
} as const satisfies FieldTable

/** Reads the body of a responses request. */
export function readResponsesRequest(body: JsonObject, { report }: ReadContext): NeutralRequest {
  const text = asObject(body['text'])
  const instructions = asText(body['instructions'])
  return {
    ...EMPTY_REQUEST,
    stream: body['stream'] === true,
    messages: [
      ...instructions === null ? [] : [{ role: 'system', name: null, parts: [textPart(instructions, 'instructions')] } as const],
      ...new InputReader(report).messages(body['input']),
    ],
    tools: readTools([...report.objectsOf(body['tools'], 'tools'), ...addedTools(body['input'])], report),
    toolChoice: readToolChoice(body['tool_choice']),
    parallelToolCalls: asBoolean(body['parallel_tool_calls']),
    outputFormat: readOutputFormat(asObject(text?.['format'])),
    maxOutputTokens: asNumber(body['max_output_tokens']),
    temperature: asNumber(body['temperature']),
    topP: asNumber(body['top_p']),
    reasoning: readReasoning(asObject(body['reasoning'])),
    serviceTier: readServiceTier(asText(body['service_tier'])),
    verbosity: asText(text?.['verbosity']),
    user: asText(body['safety_identifier']) ?? asText(body['user']),
    metadata: readMetadata(body['metadata']),
    cacheKey: asText(body['prompt_cache_key']),
  }
}

/** Reads the items of a conversation. Items of one role in a row, such as reasoning and calls, are one message. */
class InputReader {
  readonly #report: TranslationReport
  readonly #messages: { readonly role: Role, readonly name: null, readonly parts: Part[] }[] = []
  readonly #calls = new Map<string, { readonly name: string, readonly isFreeform: boolean }>()
  /** Opaque values of calls, which came in the reasoning item before them; by the call's id. */
  readonly #opaque = new Map<string, OpaqueValue>()

  constructor(report: TranslationReport) {
    this.#report = report
  }

  /** @param input text, or a list of items */
  messages(input: unknown): readonly Message[] {
    if (typeof input === 'string') this.#add('user', [textPart(input, 'input')])
    else for (const item of this.#report.objectsOf(input, 'input')) this.#item(item)
    return this.#messages
  }

  #add(role: Role, parts: readonly Part[]): void {
    const last = this.#messages.at(-1)
    if (last?.role === role && (role === 'assistant' || role === 'user')) last.parts.push(...parts)
    else this.#messages.push({ role, name: null, parts: [...parts] })
  }

  #item(item: JsonObject): void {
    switch (item['type'] ?? 'message') {
      case 'message':
        this.#add(roleOf(item['role']), this.#content(item['content'], 'input[].content[]'))
        break
      case 'reasoning':
        this.#add('assistant', this.#reasoning(item))
        break
      case 'function_call':
        this.#add('assistant', [this.#call(item, asText(item['arguments']) ?? '', false)])
        break
      case 'custom_tool_call':
        this.#add('assistant', [this.#call(item, asText(item['input']) ?? '', true)])
        break
      case 'tool_search_call':
        this.#add('assistant', [this.#call({ ...item, name: TOOL_SEARCH }, JSON.stringify(item['arguments'] ?? {}), false)])
        break
      case 'tool_search_output':
        this.#add('user', [this.#result({ ...item, output: foundTools(asList(item['tools'])) })])
        break
      case 'function_call_output':
      case 'custom_tool_call_output':
        this.#add('user', [this.#result(item)])
        break
      case 'additional_tools':
        // They are read with those of the request.
        break
      case 'item_reference':
        this.#report.refuse('input[].item_reference', STORED)
        break
      default:
        this.#report.drop(`input[].${asText(item['type']) ?? 'type'}`)
    }
  }

  /** The reasoning that the client's own provider encrypted, or what came through a gateway. */
  #reasoning(item: JsonObject): Part[] {
    const path = 'input[].reasoning'
    const encrypted = asText(item['encrypted_content'])
    const capsule = encrypted === null ? null : unseal(encrypted)
    if (capsule === null) {
      const text = [...asList(item['summary']), ...asList(item['content'])].map(part => asText(asObject(part)?.['text']) ?? '').join('\n\n')
      const opaque = encrypted === null ? null : { provider: null, value: encrypted }
      return text === '' && opaque === null ? [] : [{ type: 'thinking', path, cache: null, text, opaque }]
    }
    if (capsule.id !== null && capsule.opaque !== null) this.#opaque.set(capsule.id, capsule.opaque)
    return capsule.thinking.flatMap(carried => thinkingPart(carried, path))
  }

  #call(item: JsonObject, input: string, isFreeform: boolean): Part {
    const id = asText(item['call_id']) ?? ''
    const name = toolName(item)
    this.#calls.set(id, { name, isFreeform })
    return {
      type: 'tool_call', path: `input[].${isFreeform ? 'custom_tool_call' : 'function_call'}`, cache: null, id, name, isFreeform,
      arguments: input, opaque: this.#opaque.get(id) ?? null,
    }
  }

  #result(item: JsonObject): ToolResultPart {
    const callId = asText(item['call_id']) ?? ''
    const call = this.#calls.get(callId)
    return {
      type: 'tool_result', path: 'input[].output', cache: null, callId, name: call?.name ?? toolName(item),
      isFreeform: call?.isFreeform ?? false, isError: false,
      parts: this.#content(item['output'], 'input[].output[]').filter(isResultPart),
    }
  }

  /** @param content text, or a list of parts */
  #content(content: unknown, path: string): Part[] {
    if (typeof content === 'string') return content === '' ? [] : [textPart(content, path)]
    return this.#report.objectsOf(content, path.replace(/\[\]$/, '')).flatMap(part => this.#part(part, path))
  }

  #part(part: JsonObject, path: string): Part[] {
    const base = { path, cache: cacheMarkOf(part) }
    switch (part['type']) {
      case 'input_text':
      case 'output_text':
      case 'summary_text':
      case 'text':
        return [{ ...base, type: 'text', text: asText(part['text']) ?? '', opaque: null }]
      case 'refusal':
        return [{ ...base, type: 'refusal', text: asText(part['refusal']) ?? '' }]
      case 'input_image': {
        const source = mediaSource(asText(part['image_url']), part['file_id'])
        return [{ ...base, type: 'image', source, detail: asText(part['detail']) }]
      }
      case 'input_file': {
        const source = mediaSource(asText(part['file_data']) ?? asText(part['file_url']), part['file_id'])
        return [{ ...base, type: 'document', source, name: asText(part['filename']) }]
      }
      case 'input_audio': {
        const audio = asObject(part['input_audio'])
        const mediaType = `audio/${asText(audio?.['format']) ?? 'wav'}`
        return [{ ...base, type: 'audio', source: { kind: 'base64', mediaType, data: asText(audio?.['data']) ?? '' } }]
      }
      default:
        this.#report.drop(`${path}.${asText(part['type']) ?? 'type'}`)
        return []
    }
  }
}

function textPart(text: string, path: string): Part {
  return { type: 'text', path, cache: null, text, opaque: null }
}

function thinkingPart({ text, opaque }: CarriedThinking, path: string): Part[] {
  if (text !== null) return [{ type: 'thinking', path, cache: null, text, opaque }]
  return opaque === null ? [] : [{ type: 'redacted_thinking', path, cache: null, opaque }]
}

function isResultPart(part: Part): part is ToolResultPart['parts'][number] {
  return part.type === 'text' || part.type === 'image' || part.type === 'document' || part.type === 'audio'
}

function roleOf(role: unknown): Role {
  return role === 'assistant' || role === 'system' || role === 'developer' ? role : 'user'
}

function mediaSource(url: string | null, fileId: unknown): MediaSource {
  return url === null ? { kind: 'file', id: asText(fileId) ?? '', mediaType: null } : urlSource(url)
}

function readOutputFormat(format: JsonObject | null): OutputFormat | null {
  switch (format?.['type']) {
    case 'text':
      return { type: 'text' }
    case 'json_object':
      return { type: 'json' }
    case 'json_schema':
      return {
        type: 'json_schema', name: asText(format['name']), description: asText(format['description']),
        schema: asObject(format['schema']) ?? {}, strict: asBoolean(format['strict']),
      }
    default:
      return null
  }
}

function readReasoning(reasoning: JsonObject | null): Reasoning | null {
  if (reasoning === null) return null
  const effort = asText(reasoning['effort'])
  const summary = asText(reasoning['summary']) ?? asText(reasoning['generate_summary'])
  if (effort === null && summary === null) return null
  const isOff = effort === 'none'
  return { enabled: isOff ? false : null, effort: isOff ? null : effort, budgetTokens: null, showText: summary === null ? null : true }
}
