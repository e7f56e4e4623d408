import type { Accepts } from '../neutral/accepts.ts'
import { splitInstructions } from '../neutral/conversation.ts'
import { withoutNulls, type JsonObject } from '../neutral/json.ts'
import { valueFor } from '../neutral/opaque.ts'
import { dataUrl, inlineSource, resultText, writeEffort, writeUserName } from '../neutral/dialects/openai-request.ts'
import { pairResults } from '../neutral/pair-results.ts'
import type { TranslationReport } from '../neutral/report.ts'
import type {
  AudioPart, DocumentPart, ImagePart, Message, NeutralRequest, OutputFormat, Part, Tool, ToolCallPart, ToolChoice,
} from '../neutral/request.ts'
import { plainText } from '../neutral/plain-text.ts'
import { fittingToolId, type ToolIdRule } from '../neutral/tool-ids.ts'
import { resultHeading } from '../neutral/tools.ts'
import type { SupportTable, WriteContext, WrittenRequest } from '../neutral/translation.ts'
import { writeContentThinking } from './content-thinking.ts'

export const CHAT_SUPPORT: SupportTable = {
  model: 'mapped', stream: 'mapped', messages: 'partly', tools: 'partly', toolChoice: 'mapped', parallelToolCalls: 'mapped',
  outputFormat: 'mapped', maxOutputTokens: 'mapped', stopSequences: 'partly', temperature: 'mapped', topP: 'mapped', topK: 'dropped',
  presencePenalty: 'mapped', frequencyPenalty: 'mapped', seed: 'mapped', reasoning: 'partly', serviceTier: 'mapped',
  verbosity: 'mapped', user: 'mapped', includeUsage: 'mapped', cacheKey: 'mapped',
  // OpenAI accepts metadata only for stored responses.
  metadata: 'dropped',
}

/** Maximum that OpenAI accepts. */
const MAX_STOP_SEQUENCES = 4
export const CHAT_TOOL_IDS = { pattern: /^[\x21-\x7e]+$/, maxLength: 40, prefix: 'call_' }

function toolIds({ toolIdLength: length }: Accepts): ToolIdRule {
  return length === undefined ? CHAT_TOOL_IDS : { pattern: new RegExp(`^[a-zA-Z0-9]{${length}}$`), maxLength: length, prefix: '' }
}

export function writeChatRequest(request: NeutralRequest, context: WriteContext): WrittenRequest {
  const { report } = context
  const { toolChoice, tools, reasoning, stopSequences, user } = request
  if (stopSequences.length > MAX_STOP_SEQUENCES) report.dropField('stopSequences')
  const asksForUsage = request.stream && context.asksForUsage && !context.accepts.without?.includes('stream_options')
  const body = withoutNulls({
    model: context.model,
    messages: writeMessages(request.messages, context),
    tools: tools.length === 0 ? null : tools.map(tool => writeTool(tool, report)),
    tool_choice: toolChoice && tools.length > 0 ? writeToolChoice(toolChoice) : null,
    parallel_tool_calls: tools.length === 0 ? null : request.parallelToolCalls,
    response_format: request.outputFormat && writeOutputFormat(request.outputFormat),
    [context.accepts.maxTokens ?? 'max_tokens']: request.maxOutputTokens,
    stop: stopSequences.length === 0 ? null : stopSequences.slice(0, MAX_STOP_SEQUENCES),
    temperature: request.temperature,
    top_p: request.topP,
    presence_penalty: request.presencePenalty,
    frequency_penalty: request.frequencyPenalty,
    [context.accepts.seed ?? 'seed']: request.seed,
    reasoning_effort: reasoning && writeEffort(reasoning, context.accepts, report),
    service_tier: request.serviceTier === 'standard' ? 'default' : request.serviceTier,
    verbosity: request.verbosity,
    user: writeUserName(user),
    prompt_cache_key: request.cacheKey,
    stream: request.stream ? true : null,
    stream_options: asksForUsage ? { include_usage: true } : null,
  })
  return { path: '/v1/chat/completions', body, headers: {} }
}

/** The assistant message that some targets require between a tool result and a user message. */
const SEEN = { role: 'assistant', content: 'I have the results.' }

function writeMessages(messages: readonly Message[], context: WriteContext): JsonObject[] {
  const written = joinInstructions(pairResults(messages)).flatMap(message => writeMessage(message, context))
  const joined = context.accepts.system === 'first' ? joinUserMessages(written) : written
  if (context.accepts.userBehindResult !== false) return joined
  return joined.flatMap((message, at) => (message['role'] === 'user' && joined[at - 1]?.['role'] === 'tool' ? [SEEN, message] : [message]))
}

/** Joins consecutive user messages, because chat templates of open models require alternating turns. */
function joinUserMessages(messages: readonly JsonObject[]): JsonObject[] {
  const joined: { readonly message: JsonObject, parts: unknown[] | null }[] = []
  for (const message of messages) {
    const last = joined.at(-1)
    if (last?.message['role'] === 'user' && message['role'] === 'user' && last.message['name'] === message['name']) {
      last.parts ??= [...contentParts(last.message)]
      for (const part of contentParts(message)) last.parts.push(part)
    } else joined.push({ message, parts: null })
  }
  return joined.map(({ message, parts }) => (parts === null ? message : { ...message, content: parts }))
}

function contentParts({ content }: JsonObject): readonly unknown[] {
  return Array.isArray(content) ? content : [{ type: 'text', text: content }]
}

/** Joins the leading instructions into one message, because chat templates of open models refuse a second system message. */
function joinInstructions(messages: readonly Message[]): readonly Message[] {
  const { leading, rest } = splitInstructions(messages)
  if (leading.length < 2 || leading.some(({ name }) => name !== null)) return messages
  return [{ role: 'system', parts: leading.flatMap(({ parts }) => parts), name: null }, ...rest]
}

function writeMessage({ role, parts, name }: Message, context: WriteContext): JsonObject[] {
  for (const part of parts) if (part.cache !== null) context.report.drop(`${part.path}.cache_control`)
  switch (role) {
    case 'system':
    case 'developer':
      // Developer messages become system messages: all servers accept system messages, and only OpenAI's accepts developer messages.
      return [withoutNulls({ role: 'system', content: textOf(parts, context.report), name })]
    case 'assistant': return writeAssistant(parts, name, context)
    case 'user': return writeUser(parts, name, context)
  }
}

function writeAssistant(parts: readonly Part[], name: string | null, { provider, report, accepts }: WriteContext): JsonObject[] {
  const texts: string[] = []
  const refusals: string[] = []
  const calls: JsonObject[] = []
  const reasoning = new Map<string, string>()
  /** Reasoning for servers that expect it inside the content. */
  const thoughts: JsonObject[] = []
  for (const part of parts) {
    switch (part.type) {
      case 'text':
        texts.push(part.text)
        break
      case 'refusal':
        refusals.push(part.text)
        break
      case 'tool_call':
        calls.push(writeToolCall(part, accepts))
        break
      case 'thinking': {
        // The server gets reasoning back in the field in which the server sent it.
        const field = valueFor(part.opaque, provider)
        const thought = field === null ? null : writeContentThinking(field, part.text)
        if (field === null) report.drop(`${part.path}.thinking`)
        else if (thought !== null) thoughts.push(thought)
        else reasoning.set(field, (reasoning.get(field) ?? '') + part.text)
        break
      }
      case 'redacted_thinking':
        report.drop(`${part.path}.redacted_thinking`)
        break
      default:
        report.drop(`${part.path}.${part.type}`)
    }
  }
  const isEmpty = thoughts.length === 0 && texts.length === 0 && refusals.length === 0 && calls.length === 0
  if (isEmpty && reasoning.size === 0) return []
  const text = texts.length > 0 ? texts.join('') : calls.length > 0 || refusals.length > 0 ? null : ''
  return [{
    role: 'assistant',
    content: thoughts.length === 0 ? text : [...thoughts, ...texts.map(text => ({ type: 'text', text }))],
    ...withoutNulls({ name, refusal: refusals.length === 0 ? null : refusals.join(''), tool_calls: calls.length === 0 ? null : calls }),
    ...Object.fromEntries(reasoning),
  }]
}

function writeToolCall({ id, name, arguments: input }: ToolCallPart, accepts: Accepts): JsonObject {
  return { id: fittingToolId(id, toolIds(accepts)), type: 'function', function: { name, arguments: input === '' ? '{}' : input } }
}

/** Writes each tool result as a separate message before the other content of the user. */
function writeUser(parts: readonly Part[], name: string | null, { report, accepts }: WriteContext): JsonObject[] {
  const results: JsonObject[] = []
  const content: JsonObject[] = []
  for (const part of parts) {
    if (part.type === 'tool_result') {
      const media = part.parts.filter(item => plainText(item) === null)
      results.push({ role: 'tool', tool_call_id: fittingToolId(part.callId, toolIds(accepts)), content: resultText(part) })
      if (media.length === 0) continue
      // A tool message accepts only text, so media of a tool result go into the user message after the tool message.
      content.push({ type: 'text', text: resultHeading(part) })
      for (const item of media) content.push(...writeContent(item, report))
    } else content.push(...writeContent(part, report))
  }
  if (content.length === 0) return results
  const [first] = content
  const isText = content.length === 1 && first?.['type'] === 'text'
  return [...results, withoutNulls({ role: 'user', content: isText ? first['text'] : content, name })]
}

function writeContent(part: Part, report: TranslationReport): JsonObject[] {
  switch (part.type) {
    case 'text': return [{ type: 'text', text: part.text }]
    case 'image': return [writeImage(part, report)]
    case 'document': return [writeDocument(part, report)]
    case 'audio': return [writeAudio(part, report)]
    default:
      report.drop(`${part.path}.${part.type}`)
      return []
  }
}

function writeImage({ source, detail, path }: ImagePart, report: TranslationReport): JsonObject {
  const url = source.kind === 'url' ? source.url : dataUrl(inlineSource(source, path, report))
  return { type: 'image_url', image_url: withoutNulls({ url, detail }) }
}

function writeDocument({ source, name, path }: DocumentPart, report: TranslationReport): JsonObject {
  if (source.kind === 'text') return { type: 'text', text: name === null ? source.text : `${name}\n\n${source.text}` }
  return { type: 'file', file: { filename: name ?? 'document.pdf', file_data: dataUrl(inlineSource(source, path, report)) } }
}

function writeAudio({ source, path }: AudioPart, report: TranslationReport): JsonObject {
  const { data, mediaType } = inlineSource(source, path, report)
  const format = /wav/.test(mediaType) ? 'wav' : /mpeg|mp3/.test(mediaType) ? 'mp3' : mediaType.slice('audio/'.length)
  return { type: 'input_audio', input_audio: { data, format } }
}

function textOf(parts: readonly Part[], report: TranslationReport): string {
  return parts.flatMap(part => {
    if (part.type === 'text') return [part.text]
    report.drop(`${part.path}.${part.type}`)
    return []
  }).join('\n\n')
}

/** Sent for a tool without parameters: Mistral's server and some others require `parameters`. */
const NO_PARAMETERS = { type: 'object', properties: {} }

function writeTool({ name, description, parameters, strict, cache, path }: Tool, report: TranslationReport): JsonObject {
  if (cache !== null) report.drop(`${path}.cache_control`)
  return { type: 'function', function: withoutNulls({ name, description, parameters: parameters ?? NO_PARAMETERS, strict }) }
}

function writeToolChoice(choice: ToolChoice): unknown {
  if (choice.type !== 'tools') return choice.type
  const named = choice.names.map(name => ({ type: 'function', function: { name } }))
  if (named.length === 1 && choice.isForced) return named[0]
  return { type: 'allowed_tools', allowed_tools: { mode: choice.isForced ? 'required' : 'auto', tools: named } }
}

function writeOutputFormat(format: OutputFormat): JsonObject {
  switch (format.type) {
    case 'text': return { type: 'text' }
    case 'json': return { type: 'json_object' }
    case 'json_schema': {
      const { name, description, schema, strict } = format
      return { type: 'json_schema', json_schema: withoutNulls({ name: name ?? 'response', description, schema, strict }) }
    }
  }
}
