import { unseal } from '../neutral/capsule.ts'
import { asBoolean, asList, asNumber, asObject, asText } from '../neutral/json.ts'
import type { JsonObject } from '../neutral/json.ts'
import { cacheMarkOf, readMetadata, readServiceTier, urlSource } from '../neutral/openai-request.ts'
import type { TranslationReport } from '../neutral/report.ts'
import { EMPTY_REQUEST } from '../neutral/request.ts'
import type {
  MediaSource, Message, NeutralRequest, OutputFormat, Part, Tool, ToolChoice, ToolResultPart,
} from '../neutral/request.ts'
import type { FieldTable, ReadContext } from '../neutral/translation.ts'

/** The fields of a request (https://platform.openai.com/docs/api-reference/chat/create). */
export const CHAT_FIELDS = {
  model: 'model',
  stream: 'stream',
  'stream_options.include_usage': 'includeUsage',
  'stream_options.include_obfuscation': 'ignored',
  messages: 'messages',
  max_completion_tokens: 'maxOutputTokens',
  max_tokens: 'maxOutputTokens',
  stop: 'stopSequences',
  temperature: 'temperature',
  top_p: 'topP',
  // Not OpenAI's; most other servers take it.
  top_k: 'topK',
  presence_penalty: 'presencePenalty',
  frequency_penalty: 'frequencyPenalty',
  seed: 'seed',
  tools: 'tools',
  tool_choice: 'toolChoice',
  parallel_tool_calls: 'parallelToolCalls',
  response_format: 'outputFormat',
  reasoning_effort: 'reasoning',
  verbosity: 'verbosity',
  service_tier: 'serviceTier',
  safety_identifier: 'user',
  user: 'user',
  metadata: 'metadata',
  prompt_cache_key: 'cacheKey',
  prompt_cache_options: 'dropped',
  prompt_cache_retention: 'dropped',
  audio: { to: 'refused', why: 'the target generates no audio' },
  function_call: { to: 'refused', why: 'it is replaced by tool_choice' },
  functions: { to: 'refused', why: 'they are replaced by tools' },
  logit_bias: 'dropped',
  logprobs: { to: 'dropped', unless: [false] },
  top_logprobs: { to: 'dropped', unless: [0] },
  modalities: { to: 'refused', unless: [['text']], why: 'the target generates text alone' },
  moderation: 'dropped',
  n: { to: 'refused', unless: [1], why: 'only one response can be translated' },
  prediction: 'dropped',
  store: { to: 'dropped', unless: [false] },
  web_search_options: 'dropped',
} as const satisfies FieldTable

const CONTENT = 'messages[].content[]'

/** Reads the body of a chat request. */
export function readChatRequest(body: JsonObject, { report }: ReadContext): NeutralRequest {
  const reader = new MessageReader(report)
  const effort = asText(body['reasoning_effort'])
  return {
    ...EMPTY_REQUEST,
    stream: body['stream'] === true,
    messages: report.conversationOf(body['messages'], 'messages').map(message => reader.message(message)),
    tools: report.objectsOf(body['tools'], 'tools').flatMap(tool => readTool(tool, report)),
    toolChoice: readToolChoice(body['tool_choice']),
    parallelToolCalls: asBoolean(body['parallel_tool_calls']),
    outputFormat: readOutputFormat(asObject(body['response_format'])),
    maxOutputTokens: asNumber(body['max_completion_tokens']) ?? asNumber(body['max_tokens']),
    stopSequences: [body['stop']].flat().filter(item => typeof item === 'string'),
    temperature: asNumber(body['temperature']),
    topP: asNumber(body['top_p']),
    topK: asNumber(body['top_k']),
    presencePenalty: asNumber(body['presence_penalty']),
    frequencyPenalty: asNumber(body['frequency_penalty']),
    seed: asNumber(body['seed']),
    reasoning: effort === null ? null : { enabled: effort === 'none' ? false : null, effort: effort === 'none' ? null : effort, budgetTokens: null, showText: null },
    serviceTier: readServiceTier(asText(body['service_tier'])),
    verbosity: asText(body['verbosity']),
    user: asText(body['safety_identifier']) ?? asText(body['user']),
    metadata: readMetadata(body['metadata']),
    includeUsage: asBoolean(asObject(body['stream_options'])?.['include_usage']) ?? false,
    cacheKey: asText(body['prompt_cache_key']),
  }
}

/** Reads messages in their order: a tool result gets the name of the call before it. */
class MessageReader {
  readonly #report: TranslationReport
  readonly #calls = new Map<string, { readonly name: string, readonly isFreeform: boolean }>()

  constructor(report: TranslationReport) {
    this.#report = report
  }

  message(message: JsonObject): Message {
    const name = asText(message['name'])
    switch (message['role']) {
      case 'system':
      case 'developer':
        return { role: message['role'], parts: this.#content(message['content']), name }
      case 'assistant':
        return { role: 'assistant', parts: this.#assistant(message), name }
      case 'tool':
      case 'function':
        return { role: 'user', parts: [this.#toolResult(message)], name: null }
      default:
        return { role: 'user', parts: this.#content(message['content']), name }
    }
  }

  #assistant(message: JsonObject): Part[] {
    const calls = this.#report.objectsOf(message['tool_calls'], 'messages[].tool_calls').flatMap(call => this.#toolCall(call))
    const refusal = asText(message['refusal'])
    return [
      // The thinking of a turn comes before all that it led to.
      ...calls.filter(isThinking),
      ...this.#content(message['content']),
      ...refusal === null ? [] : [{ type: 'refusal', path: 'messages[].refusal', cache: null, text: refusal } as const],
      ...calls.filter(part => !isThinking(part)),
    ]
  }

  /** A call, behind the thinking that its id carries. */
  #toolCall(call: JsonObject): Part[] {
    const path = 'messages[].tool_calls[]'
    const isFreeform = call['type'] === 'custom'
    const content = asObject(isFreeform ? call['custom'] : call['function']) ?? {}
    const given = asText(call['id']) ?? ''
    const capsule = unseal(given)
    const id = capsule?.id ?? given
    const name = asText(content['name']) ?? ''
    this.#calls.set(id, { name, isFreeform })
    const thinking = (capsule?.thinking ?? []).flatMap(({ text, opaque }): Part[] => {
      if (text !== null) return [{ type: 'thinking', path, cache: null, text, opaque }]
      return opaque === null ? [] : [{ type: 'redacted_thinking', path, cache: null, opaque }]
    })
    return [...thinking, {
      type: 'tool_call', path, cache: null, id, name, isFreeform, opaque: capsule?.opaque ?? null,
      arguments: asText(isFreeform ? content['input'] : content['arguments']) ?? '',
    }]
  }

  #toolResult(message: JsonObject): ToolResultPart {
    const given = asText(message['tool_call_id']) ?? ''
    const callId = unseal(given)?.id ?? given
    const call = this.#calls.get(callId)
    return {
      type: 'tool_result', path: 'messages[]', cache: null, callId, name: call?.name ?? asText(message['name']) ?? '',
      isFreeform: call?.isFreeform ?? false, isError: false,
      parts: this.#content(message['content']).filter(part => part.type === 'text' || part.type === 'image' || part.type === 'document' || part.type === 'audio'),
    }
  }

  /** @param content text, or a list of parts */
  #content(content: unknown): Part[] {
    const base = { path: CONTENT, cache: null }
    if (typeof content === 'string') return content === '' ? [] : [{ ...base, type: 'text', text: content, opaque: null }]
    return this.#report.objectsOf(content, 'messages[].content').flatMap(part => this.#part(part))
  }

  #part(part: JsonObject): Part[] {
    const base = { path: CONTENT, cache: cacheMarkOf(part) }
    switch (part['type']) {
      case 'text':
        return [{ ...base, type: 'text', text: asText(part['text']) ?? '', opaque: null }]
      case 'refusal':
        return [{ ...base, type: 'refusal', text: asText(part['refusal']) ?? '' }]
      case 'image_url': {
        const image = asObject(part['image_url'])
        return [{ ...base, type: 'image', source: urlSource(asText(image?.['url']) ?? ''), detail: asText(image?.['detail']) }]
      }
      case 'input_audio': {
        const audio = asObject(part['input_audio'])
        const mediaType = `audio/${asText(audio?.['format']) ?? 'wav'}`
        return [{ ...base, type: 'audio', source: { kind: 'base64', mediaType, data: asText(audio?.['data']) ?? '' } }]
      }
      case 'file': {
        const file = asObject(part['file'])
        const data = asText(file?.['file_data'])
        const source: MediaSource = data === null
          ? { kind: 'file', id: asText(file?.['file_id']) ?? '', mediaType: null }
          : urlSource(data)
        return [{ ...base, type: 'document', source, name: asText(file?.['filename']) }]
      }
      default:
        this.#report.drop(`${CONTENT}.${asText(part['type']) ?? 'type'}`)
        return []
    }
  }
}

function isThinking(part: Part): boolean {
  return part.type === 'thinking' || part.type === 'redacted_thinking'
}

function readTool(tool: JsonObject, report: TranslationReport): Tool[] {
  const path = 'tools[]'
  const base = { cache: cacheMarkOf(tool), path }
  const custom = asObject(tool['custom'])
  if (tool['type'] === 'custom' && custom !== null) {
    return [{
      ...base, name: asText(custom['name']) ?? '', description: asText(custom['description']), parameters: null, strict: null,
      freeform: { format: asObject(custom['format']) }, namespaced: null, isToolSearch: false,
    }]
  }
  const definition = asObject(tool['function'])
  if (definition === null) {
    report.drop(`${path}.${asText(tool['type']) ?? 'type'}`)
    return []
  }
  return [{
    ...base, name: asText(definition['name']) ?? '', description: asText(definition['description']),
    parameters: asObject(definition['parameters']), strict: asBoolean(definition['strict']), freeform: null, namespaced: null, isToolSearch: false,
  }]
}

function readToolChoice(value: unknown): ToolChoice | null {
  if (value === 'auto' || value === 'none' || value === 'required') return { type: value }
  const choice = asObject(value)
  const named = asObject(choice?.['function']) ?? asObject(choice?.['custom'])
  if (named !== null) return { type: 'tools', names: [asText(named['name']) ?? ''], isForced: true }
  const allowed = asObject(choice?.['allowed_tools'])
  if (allowed === null) return null
  const names = asList(allowed['tools']).map(tool => {
    const item = asObject(tool)
    return asText((asObject(item?.['function']) ?? asObject(item?.['custom']) ?? item)?.['name']) ?? ''
  })
  return { type: 'tools', names, isForced: allowed['mode'] === 'required' }
}

function readOutputFormat(format: JsonObject | null): OutputFormat | null {
  switch (format?.['type']) {
    case 'text':
      return { type: 'text' }
    case 'json_object':
      return { type: 'json' }
    case 'json_schema': {
      const given = asObject(format['json_schema'])
      return {
        type: 'json_schema', name: asText(given?.['name']), description: asText(given?.['description']),
        schema: asObject(given?.['schema']) ?? {}, strict: asBoolean(given?.['strict']),
      }
    }
    default:
      return null
  }
}
