import type { CapsuleKeys } from '../../base/secrets/capsule-keys.ts'
import { seal } from '../neutral/capsule.ts'
import { CONTEXT_LENGTH } from '../neutral/errors.ts'
import { argumentsObject, withoutNulls, type JsonObject } from '../neutral/json.ts'
import type { OpaqueValue } from '../neutral/opaque.ts'
import { PartSequencer } from '../neutral/part-sequencer.ts'
import { NO_USAGE } from '../neutral/response.ts'
import type {
  CollectedPart, ErrorKind, NeutralError, NeutralResponse, ResponseEvent, ResponsePart, StopEvent, StopReason, TokenUsage,
} from '../neutral/response.ts'
import type { ClientContext, ResponseWriter } from '../neutral/translation.ts'
import { parseJsonText } from '../events/stream-event.ts'

const TOOL_ID = /^[a-zA-Z0-9_-]+$/

const STOP_REASONS: Readonly<Record<StopReason, string>> = {
  end: 'end_turn', max_tokens: 'max_tokens', context_window: 'model_context_window_exceeded', stop_sequence: 'stop_sequence',
  tool_calls: 'tool_use', refusal: 'refusal', content_filter: 'refusal', pause: 'pause_turn',
}

const ERROR_TYPES: Readonly<Record<ErrorKind, string>> = {
  invalid_request: 'invalid_request_error', authentication: 'authentication_error', billing: 'billing_error',
  permission: 'permission_error', not_found: 'not_found_error', too_large: 'request_too_large', rate_limit: 'rate_limit_error',
  server: 'api_error', overloaded: 'overloaded_error', timeout: 'timeout_error',
}

/** The error message begins with this text if a prompt exceeds the context window. */
const TOO_LONG = 'prompt is too long'

/** Writes the events of a streamed message. */
export class MessagesResponseWriter implements ResponseWriter {
  readonly #context: ClientContext
  readonly #sequencer = new PartSequencer()
  #usage: TokenUsage = NO_USAGE
  #stop: StopEvent | null = null
  /** Number of the current block, in the order of the stream, because clients number blocks in this order. */
  #block = -1
  #part: ResponsePart = { type: 'text' }

  constructor(context: ClientContext) {
    this.#context = context
  }

  write(event: ResponseEvent): string {
    let text = ''
    for (const next of this.#sequencer.next(event)) text += this.#write(next)
    return text
  }

  #write(event: ResponseEvent): string {
    switch (event.type) {
      case 'start':
        this.#usage = event.usage ?? NO_USAGE
        return named('message_start', {
          message: { ...head(event.id, event.model, this.#context), content: [], stop_reason: null, stop_sequence: null, usage: writeUsage(this.#usage) },
        })
      case 'part_start':
        this.#part = event.part
        if (!hasBlock(event.part)) return ''
        this.#block++
        return named('content_block_start', { index: this.#block, content_block: this.#openBlock(event.part) })
      case 'delta': return this.#delta(event.text)
      case 'part_end': {
        if (!hasBlock(this.#part)) return ''
        const signature = this.#part.type === 'thinking'
          ? this.#blockDelta({ type: 'signature_delta', signature: sealOpaque(event.opaque, this.#context.capsuleKeys) }) : ''
        return signature + named('content_block_stop', { index: this.#block })
      }
      case 'stop':
        this.#stop = event
        return ''
      case 'usage':
        this.#usage = event.usage
        return ''
      case 'end': {
        if (this.#stop === null) return ''
        const delta = named('message_delta', { delta: { ...writeStop(this.#stop), container: null }, usage: writeUsage(this.#usage) })
        return delta + named('message_stop', {})
      }
      case 'error': return `event: error\ndata: ${JSON.stringify(writeMessagesError(event.error, ''))}\n\n`
      case 'ping': return named('ping', {})
    }
  }

  #openBlock(part: ResponsePart): JsonObject {
    switch (part.type) {
      case 'thinking': return { type: 'thinking', thinking: '', signature: '' }
      case 'tool_call': {
        const id = writeToolId(part, `${this.#context.uniqueId}${this.#block}`, this.#context.capsuleKeys)
        return { type: 'tool_use', id, name: part.name, input: {} }
      }
      case 'redacted_thinking': return { type: 'redacted_thinking', data: sealOpaque(part.opaque, this.#context.capsuleKeys) }
      default: return { type: 'text', text: '', citations: null }
    }
  }

  #delta(text: string): string {
    switch (this.#part.type) {
      case 'thinking': return this.#blockDelta({ type: 'thinking_delta', thinking: text })
      case 'tool_call': return this.#blockDelta({ type: 'input_json_delta', partial_json: text })
      default: return this.#blockDelta({ type: 'text_delta', text })
    }
  }

  #blockDelta(delta: JsonObject): string {
    return named('content_block_delta', { index: this.#block, delta })
  }
}

export function writeMessagesBody(response: NeutralResponse, context: ClientContext): JsonObject {
  const { id, model, parts, stop, usage } = response
  return {
    ...head(id, model, context),
    content: parts.flatMap((part, block) => writeBlock(part, `${context.uniqueId}${block}`, context.capsuleKeys)),
    ...writeStop(stop ?? { type: 'stop', reason: 'end', sequence: null, explanation: null }),
    container: null,
    usage: writeUsage(usage ?? NO_USAGE),
  }
}

export function writeMessagesError({ kind, message, code }: NeutralError, requestId: string): JsonObject {
  // Claude Code recognises this message and shortens the conversation. The protocol has no error code for it.
  const text = code === CONTEXT_LENGTH && !message.includes(TOO_LONG) ? `${TOO_LONG}: ${message}` : message
  return { type: 'error', error: { type: ERROR_TYPES[kind], message: text }, request_id: requestId === '' ? null : requestId }
}

/** Tells whether the protocol has a block for the part. It has none for generated media. */
function hasBlock({ type }: ResponsePart): boolean {
  return type !== 'image' && type !== 'audio'
}

function writeBlock({ part, text, opaque }: CollectedPart, uniqueId: string, keys: CapsuleKeys): JsonObject[] {
  switch (part.type) {
    case 'thinking': return [{ type: 'thinking', thinking: text, signature: sealOpaque(opaque, keys) }]
    case 'redacted_thinking': return [{ type: 'redacted_thinking', data: sealOpaque(part.opaque, keys) }]
    case 'tool_call': return [{ type: 'tool_use', id: writeToolId(part, uniqueId, keys), name: part.name, input: parseInput(text) }]
    case 'image':
    case 'audio': return []
    default: return [{ type: 'text', text, citations: null }]
  }
}

function head(id: string | null, model: string | null, context: ClientContext): JsonObject {
  return { id: id ?? `msg_${context.uniqueId}`, type: 'message', role: 'assistant', model: model ?? context.model }
}

/** Writes the id of a call. A valid id stays unchanged. */
function writeToolId({ id, opaque }: ResponsePart & { readonly type: 'tool_call' }, uniqueId: string, keys: CapsuleKeys): string {
  if (id !== '' && opaque === null && TOOL_ID.test(id)) return id
  const plain = id === '' ? `toolu_${uniqueId}` : id
  if (opaque === null && TOOL_ID.test(plain)) return plain
  return seal(keys, 'tool_id', { id: plain, opaque, thinking: [] }) ?? `toolu_${uniqueId}`
}

/**
 * Seals the value, or null if there is none: Anthropic refuses foreign signatures, and the gateway removes a block only if the block has a
 * capsule.
 */
function sealOpaque(opaque: OpaqueValue | null, keys: CapsuleKeys): string {
  const sealed = (value: OpaqueValue | null) => seal(keys, 'opaque_value', { id: null, opaque: value, thinking: [] })
  return sealed(opaque) ?? sealed(null) ?? ''
}

/** Parses the arguments of a call. If they are invalid, the client gets an object that contains them as text. */
function parseInput(text: string): unknown {
  const value = parseJsonText(text)
  return Array.isArray(value) ? value : argumentsObject(text)
}

function writeStop({ reason, sequence, explanation }: StopEvent): JsonObject {
  const isRefusal = reason === 'refusal' || reason === 'content_filter'
  return {
    stop_reason: STOP_REASONS[reason],
    stop_sequence: sequence,
    stop_details: isRefusal ? { type: 'refusal', category: null, explanation } : null,
  }
}

/** In Anthropic's usage, input tokens exclude tokens that are read from the cache or written to it. */
function writeUsage({ input, cachedInput, cacheWrite, cacheWrite1h, output, reasoning }: TokenUsage): JsonObject {
  const written = cacheWrite ?? 0
  return {
    input_tokens: Math.max(0, (input ?? 0) - (cachedInput ?? 0) - written),
    cache_creation_input_tokens: written,
    cache_read_input_tokens: cachedInput ?? 0,
    ...cacheWrite1h !== null && {
      cache_creation: { ephemeral_5m_input_tokens: Math.max(0, written - cacheWrite1h), ephemeral_1h_input_tokens: cacheWrite1h },
    },
    output_tokens: output ?? 0,
    ...withoutNulls({ output_tokens_details: reasoning === null ? null : { thinking_tokens: reasoning } }),
  }
}

function named(type: string, members: JsonObject): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`
}
