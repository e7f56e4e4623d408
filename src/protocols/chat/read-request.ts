import { BodyObject } from '../neutral/dialects/body-object.ts'
import type { CapsuleReader } from '../neutral/capsule.ts'
import type { JsonObject } from '../neutral/json.ts'
import { IMAGE_DETAILS, VERBOSITIES, cacheMarkOf, readAudio, readOutputSchema, readServiceTier, urlSource } from '../neutral/dialects/openai-request.ts'
import { EFFORTS, EMPTY_REQUEST } from '../neutral/request.ts'
import type { MediaSource, Message, NeutralRequest, OutputFormat, Part, Tool, ToolChoice, ToolResultPart } from '../neutral/request.ts'
import type { FieldTable, ReadContext } from '../neutral/translation.ts'

/** The fields of a request, and what each means (https://platform.openai.com/docs/api-reference/chat/create). */
export const CHAT_FIELDS = {
  model: 'model', stream: 'stream',
  'stream_options.include_usage': 'includeUsage', 'stream_options.include_obfuscation': 'ignored',
  messages: 'messages', max_completion_tokens: 'maxOutputTokens', max_tokens: 'maxOutputTokens',
  stop: 'stopSequences', temperature: 'temperature', top_p: 'topP',
  // OpenAI's API does not have `top_k`, but most other servers accept it.
  top_k: 'topK',
  presence_penalty: 'presencePenalty', frequency_penalty: 'frequencyPenalty', seed: 'seed',
  tools: 'tools', tool_choice: 'toolChoice', parallel_tool_calls: 'parallelToolCalls',
  response_format: 'outputFormat', reasoning_effort: 'reasoning', verbosity: 'verbosity',
  service_tier: 'serviceTier', safety_identifier: 'user', user: 'user', metadata: 'metadata',
  prompt_cache_key: 'cacheKey', prompt_cache_options: 'dropped', prompt_cache_retention: 'dropped',
  audio: { to: 'refused', why: 'the target generates no audio' },
  function_call: { to: 'refused', why: 'it is replaced by tool_choice' },
  functions: { to: 'refused', why: 'they are replaced by tools' },
  logit_bias: 'dropped', logprobs: { to: 'dropped', unless: [false] }, top_logprobs: { to: 'dropped', unless: [0] },
  modalities: { to: 'refused', unless: [['text']], why: 'the target generates text alone' },
  moderation: 'dropped',
  n: { to: 'refused', unless: [1], why: 'only one response can be translated' },
  prediction: 'dropped',
  store: { to: 'dropped', unless: [false] },
  web_search_options: 'dropped',
} as const satisfies FieldTable

const CONTENT = 'messages[].content[]'

export function readChatRequest(given: JsonObject, { report, capsules }: ReadContext): NeutralRequest {
  const body = new BodyObject(given, '', report)
  const reader = new MessageReader(capsules)
  const effort = body.known('reasoning_effort', EFFORTS)
  const maxTokens = body.number('max_tokens')
  const user = body.text('user')
  return {
    ...EMPTY_REQUEST,
    stream: body.boolean('stream') ?? false,
    messages: body.conversation('messages').map(message => reader.message(message)),
    tools: body.objects('tools').flatMap(readTool),
    toolChoice: readToolChoice(body),
    parallelToolCalls: body.boolean('parallel_tool_calls'),
    outputFormat: readOutputFormat(body.object('response_format')),
    maxOutputTokens: body.number('max_completion_tokens') ?? maxTokens,
    stopSequences: typeof body.value('stop') === 'string' ? [body.text('stop') ?? ''] : body.texts('stop'),
    temperature: body.number('temperature'),
    topP: body.number('top_p'),
    topK: body.number('top_k'),
    presencePenalty: body.number('presence_penalty'),
    frequencyPenalty: body.number('frequency_penalty'),
    seed: body.number('seed'),
    reasoning: effort === null ? null : { enabled: effort === 'none' ? false : null, effort: effort === 'none' ? null : effort, budgetTokens: null, showText: null },
    serviceTier: readServiceTier(body),
    verbosity: body.known('verbosity', VERBOSITIES),
    user: body.text('safety_identifier') ?? user,
    metadata: body.record('metadata'),
    includeUsage: body.object('stream_options')?.boolean('include_usage') ?? false,
    cacheKey: body.text('prompt_cache_key'),
  }
}

const ROLES = ['system', 'developer', 'user', 'assistant', 'tool'] as const

/** Reads messages in order, so that a tool result gets the name of the call that precedes it. */
class MessageReader {
  readonly #calls = new Map<string, { readonly name: string, readonly isFreeform: boolean }>()
  readonly #capsules: CapsuleReader

  constructor(capsules: CapsuleReader) {
    this.#capsules = capsules
  }

  message(message: BodyObject): Message {
    const role = message.value('role') === 'function' ? message.refuse('role', 'it is replaced by tool') : message.word('role', ROLES) ?? 'user'
    const name = message.text('name')
    switch (role) {
      case 'assistant': return { role, parts: this.#assistant(message), name }
      case 'tool': return { role: 'user', parts: [this.#toolResult(message)], name: null }
      default: return { role, parts: contentOf(message), name }
    }
  }

  #assistant(message: BodyObject): Part[] {
    if (message.value('audio') !== null) message.refuse('audio', 'it names something that one provider has stored; send its transcript')
    if (message.value('function_call') !== null) message.refuse('function_call', 'it is replaced by tool_calls')
    // Ignores reasoning: the thinking that the next request needs is in the ids of tool calls.
    message.ignore('reasoning', 'reasoning_content')
    const calls = message.objects('tool_calls').flatMap(call => this.#toolCall(call))
    const refusal = message.text('refusal')
    return [
      ...calls.filter(isThinking),
      ...contentOf(message),
      ...refusal === null ? [] : [{ type: 'refusal', path: 'messages[].refusal', cache: null, text: refusal } as const],
      ...calls.filter(part => !isThinking(part)),
    ]
  }

  /** Reads a call, and the thinking that is sealed in the call's id. @returns the thinking first, then the call */
  #toolCall(call: BodyObject): Part[] {
    // Clients that join the chunks of a stream leave `index` in each call.
    call.ignore('index')
    const path = 'messages[].tool_calls[]'
    const isFreeform = call.value('type') === 'custom'
    const content = call.object(isFreeform ? 'custom' : 'function')
    const given = call.text('id') ?? ''
    const capsule = this.#capsules.open('tool_id', given, `${path}.id`)
    const id = capsule?.id ?? given
    const name = content?.text('name') ?? ''
    this.#calls.set(id, { name, isFreeform })
    const thinking = (capsule?.thinking ?? []).flatMap(({ text, opaque }): Part[] => {
      if (text !== null) return [{ type: 'thinking', path, cache: null, text, opaque }]
      return opaque === null ? [] : [{ type: 'redacted_thinking', path, cache: null, opaque }]
    })
    return [...thinking, {
      type: 'tool_call', path, cache: null, id, name, isFreeform, opaque: capsule?.opaque ?? null,
      arguments: content?.text(isFreeform ? 'input' : 'arguments') ?? '',
    }]
  }

  #toolResult(message: BodyObject): ToolResultPart {
    const callId = this.#capsules.toolId(message.text('tool_call_id') ?? '', 'messages[].tool_call_id')
    const call = this.#calls.get(callId)
    return {
      type: 'tool_result', path: 'messages[]', cache: null, callId, name: call?.name ?? message.text('name') ?? '',
      isFreeform: call?.isFreeform ?? false, isError: false,
      parts: contentOf(message).filter(part => part.type === 'text' || part.type === 'image' || part.type === 'document' || part.type === 'audio'),
    }
  }
}

function contentOf(message: BodyObject): Part[] {
  const content = message.content('content')
  if (typeof content !== 'string') return content.flatMap(readPart)
  return content === '' ? [] : [{ type: 'text', path: CONTENT, cache: null, text: content, opaque: null }]
}

function readPart(part: BodyObject): Part[] {
  const base = { path: CONTENT, cache: cacheMarkOf(part) }
  const type = part.text('type')
  switch (type) {
    case 'text': return [{ ...base, type, text: part.text('text') ?? '', opaque: null }]
    case 'refusal': return [{ ...base, type, text: part.text('refusal') ?? '' }]
    case 'image_url': {
      const image = part.object('image_url')
      return [{ ...base, type: 'image', source: urlSource(image?.text('url') ?? ''), detail: image?.known('detail', IMAGE_DETAILS) ?? null }]
    }
    case 'input_audio': return [{ ...base, type: 'audio', source: readAudio(part) }]
    case 'file': {
      const file = part.object('file')
      const data = file?.text('file_data') ?? null
      const id = file?.text('file_id') ?? ''
      const source: MediaSource = data === null ? { kind: 'file', id, mediaType: null } : urlSource(data)
      return [{ ...base, type: 'document', source, name: file?.text('filename') ?? null }]
    }
    default:
      part.dropWhole(type)
      return []
  }
}

function isThinking(part: Part): boolean {
  return part.type === 'thinking' || part.type === 'redacted_thinking'
}

function readTool(tool: BodyObject): Tool[] {
  const base = { cache: cacheMarkOf(tool), path: 'tools[]', namespaced: null, isToolSearch: false }
  const type = tool.text('type')
  const custom = type === 'custom' ? tool.object('custom') : null
  if (custom !== null) {
    return [{
      ...base, name: custom.text('name') ?? '', description: custom.text('description'), parameters: null, strict: null,
      freeform: { format: custom.json('format') },
    }]
  }
  const definition = tool.object('function')
  if (definition === null) {
    tool.dropWhole(type)
    return []
  }
  return [{
    ...base, name: definition.text('name') ?? '', description: definition.text('description'),
    parameters: definition.json('parameters'), strict: definition.boolean('strict'), freeform: null,
  }]
}

function readToolChoice(body: BodyObject): ToolChoice | null {
  if (typeof body.value('tool_choice') === 'string') {
    const type = body.word('tool_choice', ['auto', 'none', 'required'])
    return type && { type }
  }
  const choice = body.object('tool_choice')
  if (choice === null) return null
  choice.ignore('type')
  const named = choice.object('function') ?? choice.object('custom')
  if (named !== null) return { type: 'tools', names: [named.text('name') ?? ''], isForced: true }
  const allowed = choice.object('allowed_tools') ?? choice.refuse('type', 'it must be function, custom or allowed_tools, with a member of that name')
  const names = allowed.objects('tools').map(tool => {
    tool.ignore('type')
    return (tool.object('function') ?? tool.object('custom') ?? tool).text('name') ?? ''
  })
  return { type: 'tools', names, isForced: allowed.value('mode') === 'required' }
}

function readOutputFormat(format: BodyObject | null): OutputFormat | null {
  switch (format?.word('type', ['text', 'json_object', 'json_schema'])) {
    case 'text': return { type: 'text' }
    case 'json_object': return { type: 'json' }
    case 'json_schema': {
      const schema = format?.object('json_schema') ?? null
      return schema === null ? { type: 'json_schema', name: null, description: null, schema: {}, strict: null } : readOutputSchema(schema)
    }
    default: return null
  }
}
