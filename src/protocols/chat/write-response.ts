import type { CapsuleKeys } from '../../base/secrets/capsule-keys.ts'
import { seal, type CarriedThinking } from '../neutral/capsule.ts'
import { withoutNulls, type JsonObject } from '../neutral/json.ts'
import { writeOpenaiError } from '../neutral/dialects/openai-error.ts'
import { ThinkingCarrier } from '../neutral/thinking-carrier.ts'
import { NO_USAGE, isReported } from '../neutral/response.ts'
import type {
  CollectedPart, NeutralResponse, PartStartEvent, ResponseEvent, ResponsePart, StopEvent, StopReason, TokenUsage,
} from '../neutral/response.ts'
import type { ClientContext, ResponseWriter } from '../neutral/translation.ts'

const FINISH_REASONS: Readonly<Record<StopReason, string>> = {
  end: 'stop', max_tokens: 'length', context_window: 'length', stop_sequence: 'stop', tool_calls: 'tool_calls',
  refusal: 'content_filter', content_filter: 'content_filter', pause: 'stop',
}
type ToolCall = ResponsePart & { readonly type: 'tool_call' }

/** Writes the chunks of a streamed chat response. */
export class ChatResponseWriter implements ResponseWriter {
  readonly #context: ClientContext
  readonly #thinking = new ThinkingCarrier()
  /** The open parts by the index of the part; `call` is the number of a tool call. */
  readonly #open = new Map<number, { readonly part: ResponsePart, readonly call: number, hasArguments: boolean }>()
  #head: JsonObject = {}
  #calls = 0
  #hasRefusal = false
  #hasStopped = false
  #usage: TokenUsage = NO_USAGE

  constructor(context: ClientContext) {
    this.#context = context
  }

  write(event: ResponseEvent): string {
    this.#thinking.follow(event)
    switch (event.type) {
      case 'start':
        this.#head = head('chat.completion.chunk', event.id, event.model, this.#context)
        this.#usage = event.usage ?? NO_USAGE
        return this.#chunk({ role: 'assistant', content: '' })
      case 'part_start': return this.#start(event)
      case 'delta': return this.#delta(event.index, event.text)
      case 'part_end': return this.#end(event.index)
      case 'stop': return this.#stop(event)
      case 'usage':
        this.#usage = event.usage
        return ''
      case 'end': return this.#usageChunk() + 'data: [DONE]\n\n'
      case 'error': return data(writeOpenaiError(event.error))
      case 'ping': return ''
    }
  }

  #start({ index, part }: PartStartEvent): string {
    this.#open.set(index, { part, call: part.type === 'tool_call' ? this.#calls : 0, hasArguments: false })
    if (part.type !== 'tool_call') return ''
    const id = writeToolId(part, this.#thinking.take(), `${this.#context.uniqueId}${this.#calls}`, this.#context.capsuleKeys)
    const call = { index: this.#calls++, id, ...writeCall(part, '') }
    return this.#chunk({ tool_calls: [call] })
  }

  #delta(index: number, text: string): string {
    const open = this.#open.get(index)
    switch (open?.part.type) {
      case 'text': return this.#chunk({ content: text })
      case 'thinking': return this.#chunk({ reasoning_content: text })
      case 'refusal':
        this.#hasRefusal = true
        return this.#chunk({ refusal: text })
      case 'tool_call':
        open.hasArguments = true
        return this.#chunk({ tool_calls: [{ index: open.call, ...open.part.isFreeform ? { custom: { input: text } } : { function: { arguments: text } } }] })
      default: return ''
    }
  }

  /** Ends a part. A call without arguments gets an empty object, because clients parse the arguments. */
  #end(index: number): string {
    const open = this.#open.get(index)
    this.#open.delete(index)
    if (open?.part.type !== 'tool_call' || open.part.isFreeform || open.hasArguments) return ''
    return this.#chunk({ tool_calls: [{ index: open.call, function: { arguments: '{}' } }] })
  }

  #stop({ reason, explanation }: StopEvent): string {
    if (this.#hasStopped) return ''
    this.#hasStopped = true
    const isRefused = reason === 'refusal' && !this.#hasRefusal && explanation !== null
    const refusal = isRefused ? this.#chunk({ refusal: explanation }) : ''
    return refusal + this.#chunk({}, this.#hasRefusal ? 'stop' : FINISH_REASONS[reason])
  }

  #usageChunk(): string {
    if (this.#context.request.includeUsage !== true || !isReported(this.#usage)) return ''
    return data({ ...this.#head, choices: [], usage: writeUsage(this.#usage) })
  }

  #chunk(delta: JsonObject, finishReason: string | null = null): string {
    const usage = this.#context.request.includeUsage === true ? { usage: null } : {}
    return data({ ...this.#head, choices: [{ index: 0, delta, logprobs: null, finish_reason: finishReason }], ...usage })
  }
}

export function writeChatBody(response: NeutralResponse, context: ClientContext): JsonObject {
  const { id, model, parts, stop, usage } = response
  const textOf = (type: ResponsePart['type']): string | null => {
    const texts = parts.filter(({ part }) => part.type === type).map(({ text }) => text)
    return texts.length === 0 ? null : texts.join('')
  }
  const calls = writeCalls(parts, context)
  const refusal = textOf('refusal')
  const reason = stop?.reason ?? 'end'
  const message = {
    role: 'assistant',
    content: textOf('text'),
    refusal: refusal ?? (reason === 'refusal' ? stop?.explanation ?? null : null),
    annotations: [],
    ...withoutNulls({ reasoning_content: textOf('thinking'), tool_calls: calls.length === 0 ? null : calls }),
  }
  const finishReason = refusal === null ? FINISH_REASONS[reason] : 'stop'
  return {
    ...head('chat.completion', id, model, context),
    choices: [{ index: 0, message, logprobs: null, finish_reason: finishReason }],
    ...usage && isReported(usage) && { usage: writeUsage(usage) },
  }
}

function writeCalls(parts: readonly CollectedPart[], context: ClientContext): JsonObject[] {
  const thinking = new ThinkingCarrier()
  const calls: JsonObject[] = []
  for (const { part, text, opaque } of parts) {
    if (part.type === 'tool_call') {
      const id = writeToolId(part, thinking.take(), `${context.uniqueId}${calls.length}`, context.capsuleKeys)
      calls.push({ id, ...writeCall(part, text === '' && !part.isFreeform ? '{}' : text) })
    } else thinking.add(part, text, opaque)
  }
  return calls
}

function writeCall({ name, isFreeform }: ToolCall, text: string): JsonObject {
  return isFreeform ? { type: 'custom', custom: { name, input: text } } : { type: 'function', function: { name, arguments: text } }
}

/**
 * Seals the call's opaque value, and the thinking before the call, in the call's id. Chat has no field for these values, clients send ids
 * back unchanged, and the provider refuses a tool result without the thinking.
 */
function writeToolId({ id, opaque }: ToolCall, thinking: readonly CarriedThinking[], uniqueId: string, capsuleKeys: CapsuleKeys): string {
  const plain = id === '' ? `call_${uniqueId}` : id
  if (opaque === null && thinking.length === 0) return plain
  return seal(capsuleKeys, 'tool_id', { id: plain, opaque, thinking }) ?? plain
}

function head(object: string, id: string | null, model: string | null, context: ClientContext): JsonObject {
  return { id: id ?? `chatcmpl-${context.uniqueId}`, object, created: context.created, model: model ?? context.model }
}

function writeUsage({ input, cachedInput, cacheWrite, output, reasoning }: TokenUsage): JsonObject {
  return {
    prompt_tokens: input ?? 0,
    completion_tokens: output ?? 0,
    total_tokens: (input ?? 0) + (output ?? 0),
    prompt_tokens_details: { cached_tokens: cachedInput ?? 0, ...withoutNulls({ cache_write_tokens: cacheWrite }) },
    completion_tokens_details: { reasoning_tokens: reasoning ?? 0 },
  }
}

function data(value: JsonObject): string {
  return `data: ${JSON.stringify(value)}\n\n`
}
